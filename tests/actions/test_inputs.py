"""The actions, the reusable workflow and the command line agree on the names between them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from qnnci.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]


def load(path: Path) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return made


ACTION = load(ROOT / "action.yml")
VERBS = {path.parent.name: load(path) for path in sorted(ROOT.glob("actions/*/action.yml"))}
ACTIONS = {"": ACTION, **VERBS}
WORKFLOW = load(ROOT / ".github/workflows/compile.yml")
CALL = WORKFLOW[True]["workflow_call"]  # `on` is true in YAML 1.1


def test_every_verb_has_its_action() -> None:
    wanted = {"setup", "plan", "prepare", "check", "compile", "inspect", "verify", "gate", "manifest", "bundle"}
    wanted |= {"runtime-libs", "setup-qairt", "convert", "publish-release", "publish-huggingface", "export"}
    assert set(VERBS) == wanted


def command(step: dict[str, Any]) -> click.Command | None:
    """The verb that a step runs."""
    words = re.fullmatch(r'exec "\$QNNCI" ([a-z -]+) 2>&1', step.get("run", ""))
    if words is None:
        return None
    found: click.Command = cli
    for word in words[1].split():
        assert isinstance(found, click.Group)
        found = found.commands[word]
    return found


@pytest.mark.parametrize("name", ACTIONS)
def test_every_input_is_used(name: str) -> None:
    used = re.findall(r"\binputs\.([\w-]+)", str(ACTIONS[name]["runs"]))
    assert set(used) == set(ACTIONS[name]["inputs"])


@pytest.mark.parametrize("name", ACTIONS)
def test_the_command_line_reads_what_the_action_sets(name: str) -> None:
    verbs = [(step, verb) for step in ACTIONS[name]["runs"]["steps"] if (verb := command(step))]
    assert len(verbs) == {"": 2, "setup": 0}.get(name, 1)
    for step, verb in verbs:
        given = {each for each in step["env"] if each.startswith("QNNCI_INPUT_")}
        assert given
        assert given <= {option.envvar for option in verb.params}


@pytest.mark.parametrize("name", ACTIONS)
def test_inputs_arrive_under_their_own_names(name: str) -> None:
    for step in ACTIONS[name]["runs"]["steps"]:
        for variable, value in step.get("env", {}).items():
            if variable.startswith("QNNCI_INPUT_") and "${{" in value:
                wanted = variable.removeprefix("QNNCI_INPUT_").lower().replace("_", "-")
                assert value == f"${{{{ inputs.{wanted} }}}}"


@pytest.mark.parametrize("name", VERBS)
def test_required_arguments_are_required_inputs(name: str) -> None:
    for step in VERBS[name]["runs"]["steps"]:
        if verb := command(step):
            for option in verb.params:
                given = (option.envvar or "").removeprefix("QNNCI_INPUT_").lower().replace("_", "-")
                if option.required:
                    assert VERBS[name]["inputs"][given].get("required") is True


def test_one_name_means_one_thing() -> None:
    """An input that several actions have is described alike, but for those whose place gives them another sense."""
    differ = {("check", "model"), ("gate", "fail-on"), ("gate", "output"), ("manifest", "output")}
    differ |= {("export", name) for name in ("config", "graph", "name", "jobs")}
    differ |= {("bundle", "config"), ("bundle", "manifest"), ("bundle", "output")}
    differ |= {("runtime-libs", name) for name in ("manifest", "socs", "layout", "archive", "output")}
    differ |= {("publish-release", name) for name in ("manifest", "name", "license")} | {("setup", "cache")}
    differ |= {
        ("publish-huggingface", name) for name in ("repo", "config", "manifest", "add", "layout", "license", "token")
    }
    differ |= {("publish-huggingface", "allowed-because")}
    said: dict[str, tuple[str, Any]] = {}
    for name, action in ACTIONS.items():
        for each, about in action["inputs"].items():
            if (name, each) not in differ:
                text = " ".join(about["description"].split())
                assert said.setdefault(each, (text, about.get("default"))) == (text, about.get("default"))


TYPES = {
    name: load(ROOT / "actions" / name / "action-types.yml" if name else ROOT / "action-types.yml") for name in ACTIONS
}


@pytest.mark.parametrize("name", ACTIONS)
def test_every_input_and_output_has_a_type(name: str) -> None:
    for part in ("inputs", "outputs"):
        assert list(TYPES[name][part]) == list(ACTIONS[name][part])
        for about in TYPES[name][part].values():
            assert set(about) == SHAPES[about["type"]]
    # What may be true or false says so, in the words of its default where it has one.
    for each, about in TYPES[name]["inputs"].items():
        default = ACTIONS[name]["inputs"][each].get("default", "")
        assert about["type"] != "boolean" or default in ("", "true", "false")
        assert about["type"] != "enum" or default in ("", *about["allowed-values"])


SHAPES = {
    **{kind: {"type"} for kind in ("string", "boolean", "integer", "float")},
    "enum": {"type", "allowed-values"},
    "list": {"type", "separator", "list-item"},
}


@pytest.mark.parametrize("name", ACTIONS)
def test_what_a_type_allows_the_command_line_takes_and_nothing_else(name: str) -> None:
    for step in ACTIONS[name]["runs"]["steps"]:
        if verb := command(step):
            for option in (each for each in verb.params if "inputs." in step["env"].get(each.envvar, "")):
                about = TYPES[name]["inputs"][option.envvar.removeprefix("QNNCI_INPUT_").lower().replace("_", "-")]
                taken, refused = SAMPLES[about["type"]](about)
                assert [value for value in taken if not takes(verb, option, value)] == []
                assert [value for value in refused if takes(verb, option, value)] == []


SAMPLES: dict[str, Callable[[dict[str, Any]], tuple[list[str], list[str]]]] = {
    "string": lambda _: (["x"], []),
    "boolean": lambda _: (["true", "false"], ["maybe"]),
    "integer": lambda _: (["1"], ["x", "1.5"]),
    "float": lambda _: (["0.5"], ["x"]),
    "enum": lambda about: (about["allowed-values"], ["x"]),
    "list": lambda about: (["x", about["separator"].join("xy")], []),
}


def takes(verb: click.Command, option: click.Parameter, value: str) -> bool:
    """Whether a verb takes a value of one input as the action gives it; lists come apart at their separator."""
    context = click.Context(verb)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(str(option.envvar), value)
        try:
            option.process_value(context, option.value_from_envvar(context))
        except click.BadParameter:
            return False
    return True


@pytest.mark.parametrize("name", VERBS)
def test_outputs_are_those_of_a_step(name: str) -> None:
    ids = {step["id"] for step in VERBS[name]["runs"]["steps"] if "id" in step}
    for output, about in VERBS[name]["outputs"].items():
        found = re.fullmatch(r"\$\{\{ steps\.(\w+)\.outputs\.([\w-]+)( \|\| '.*')? \}\}", about["value"])
        assert found is not None
        assert found[1] in ids
        assert found[2] == output


def test_the_workflow_uses_the_actions_as_they_are() -> None:
    steps = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    ours = [step for step in steps if "/.qnnci/" in step.get("uses", "")]
    used = [(step["uses"].removeprefix("./.qnnci/actions/"), step) for step in ours]
    assert [name for name, _ in used] == ["plan", "convert", "compile", "gate"]
    for name, step in used:
        assert set(step["with"]) <= set(VERBS[name]["inputs"])
        assert set(re.findall(r"steps\.(\w+)\.outputs\.", str(step))) == set()
    text = str(WORKFLOW["jobs"])
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(CALL["inputs"])
    assert set(re.findall(r"secrets\.([\w-]+)", text)) == set(CALL["secrets"])
    for step, output in re.findall(r"steps\.(\w+)\.outputs\.([\w-]+)", text):
        assert output in (("artifact-url",) if step == "page" else VERBS[step]["outputs"])
