"""action.yml and the command line agree on the names between them."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from qnnci.cli import cli

ACTION = yaml.safe_load((Path(__file__).resolve().parents[2] / "action.yml").read_text())
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}


def test_every_input_is_used() -> None:
    used = re.findall(r"\binputs\.([\w-]+)", str(ACTION["runs"]))
    assert set(used) == set(ACTION["inputs"])


def test_the_command_line_reads_what_the_action_sets() -> None:
    for step, command in (("build", cli.commands["build"]), ("sdk", cli.commands["sdk"].commands["install"])):
        given = {name for name in STEPS[step]["env"] if name.startswith("QNNCI_INPUT_")}
        assert given <= {option.envvar for option in command.params}
    given = {name for name in STEPS["build"]["env"] if name.startswith("QNNCI_INPUT_")}
    assert {"QNNCI_INPUT_CONFIG", "QNNCI_INPUT_SOCS"} <= given


def test_inputs_arrive_under_their_own_names() -> None:
    for step in STEPS.values():
        for name, value in step["env"].items():
            if name.startswith("QNNCI_INPUT_"):
                wanted = name.removeprefix("QNNCI_INPUT_").lower().replace("_", "-")
                assert value == f"${{{{ inputs.{wanted} }}}}"
