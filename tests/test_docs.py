"""What the docs say to write or to type is right: links, project files, workflows, commands."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from qnnci.cli.main import cli
from qnnci.process import run
from qnnci.project_file import validate
from tests.generated import ROOT, documents

PAGES = [*documents(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def about(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


# What `uses:` names, and its inputs and outputs. `on` is true in YAML 1.1.
OURS = {
    "org/qnn-compile@v1": about("action.yml"),
    **{
        f"org/qnn-compile/{path.parent.relative_to(ROOT)}@v1": about(str(path.relative_to(ROOT)))
        for path in ROOT.glob("actions/*/action.yml")
    },
    **{
        f"org/qnn-compile/.github/workflows/{name}@v1": about(f".github/workflows/{name}")[True]["workflow_call"]
        for name in ("compile.yml", "release.yml")
    },
}


def blocks(kind: str) -> Iterator[str]:
    for page in PAGES:
        yield from re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


YAML = list(blocks("yaml"))
WORKFLOWS = [text for text in YAML if "\njobs:" in text]
PROJECTS = [text for text in YAML if text not in WORKFLOWS]


def title(text: str) -> str:
    return str(yaml.safe_load(text)["name"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Links to files of the repository, and to headings in them."""
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text(encoding="utf-8")):
        to = (page.parent / target).resolve() if target else page
        assert to.exists(), target
        if anchor:
            assert anchor in anchors(to.read_text(encoding="utf-8")), f"{target}#{anchor}"


def anchors(text: str) -> set[str]:
    """What GitHub makes of headings, and anchors of our own."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    made = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([\w-]+)">', text))


@pytest.mark.parametrize("text", PROJECTS, ids=title)
def test_project_files_hold(text: str) -> None:
    validate(yaml.safe_load(text), "docs")


@pytest.mark.parametrize("text", WORKFLOWS, ids=title)
def test_workflows_hold(text: str, tmp_path: Path) -> None:
    path = tmp_path / "workflow.yml"
    path.write_text(text, encoding="utf-8")
    tools = Path(sys.executable).parent
    done = run(
        [str(tools / "actionlint"), "-color=false", "-shellcheck", str(tools / "shellcheck"), "-pyflakes=", str(path)],
        timeout=60,
    )
    assert done.code == 0, done.output


@pytest.mark.parametrize("text", WORKFLOWS, ids=title)
def test_workflows_use_the_action_as_it_is(text: str) -> None:
    """Actionlint does not know our inputs and outputs."""
    uses = [
        (OURS[step["uses"]], step, f"steps.{step['id']}" if "id" in step else f"needs.{name}" if step is job else "")
        for name, job in yaml.safe_load(text)["jobs"].items()
        for step in (job, *job.get("steps", ()))
        if "org/qnn-compile" in step.get("uses", "")
    ]
    assert uses
    for ours, step, place in uses:
        assert set(step.get("with", {})) <= set(ours["inputs"])
        if place:
            assert set(re.findall(rf"\b{place}\.outputs\.([\w-]+)", text)) <= set(ours["outputs"])


def commands() -> list[str]:
    shell = [line for text in blocks("sh") for line in text.splitlines()]
    shown = [line[2:] for text in blocks("text") for line in text.splitlines() if line.startswith("$ ")]
    return sorted({line for line in [*shell, *shown] if line.startswith("qnnci ")})


def test_commands_are_found() -> None:
    assert len(commands()) > 10


@pytest.mark.parametrize("line", commands())
def test_commands_have_their_verbs_and_options(line: str) -> None:
    verb, *arguments = shlex.split(line, comments=True)[1:]
    command = cli.commands[verb]
    while isinstance(command, click.Group):
        verb, *arguments = arguments
        command = command.commands[verb]
    assert isinstance(command.make_context(verb, arguments), click.Context)


def test_make_targets_are_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        target
        for page in PAGES
        for target in re.findall(r"(?:`|^)make ([a-z]+)", page.read_text("utf-8"), re.MULTILINE)
    }
    assert {"demo", "test", "docs", "bench"} <= named <= targets


def test_every_file_that_is_named_is_there() -> None:
    """Paths in backticks, such as `qnnci/files.py` and `tests/test_lint.py`."""
    paths = {
        path
        for page in PAGES
        for path in re.findall(r"`((?:qnnci|tests|docs|examples)/[\w./-]+)`", page.read_text("utf-8"))
    }
    assert len(paths) > 10
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []
