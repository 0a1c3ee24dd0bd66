"""What `install.sh light` leaves out, and that the verbs of the actions with it do without."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import yaml

if sys.version_info < (3, 11):
    pytest.skip("tomllib came with Python 3.11", allow_module_level=True)
import tomllib
from support.command import qnnci

from qnnci.manifest import save
from tests.test_shards import entry, manifest

ROOT = Path(__file__).resolve().parents[1]
ALL: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
LIGHT = [line for line in (ROOT / "actions/light.txt").read_text().splitlines() if not line.startswith("#")]
MODULES = {"huggingface-hub": "huggingface_hub", "onnxruntime-qnn": "onnxruntime_qnn", "pyelftools": "elftools"}


def test_its_needs_are_ours() -> None:
    assert set(LIGHT) < set(ALL)


def test_these_actions_are_light() -> None:
    found = {
        path.parent.name
        for path in ROOT.glob("actions/*/action.yml")
        for step in yaml.safe_load(path.read_text())["runs"]["steps"]
        if step.get("run", "").endswith('install.sh" light')
    }
    assert found == {"plan", "gate", "manifest"}


def test_their_verbs_do_without_the_rest(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    left_out = {re.split("[=><;]", each)[0] for each in set(ALL) - set(LIGHT)}
    for name in left_out:
        (hidden / f"{MODULES.get(name, name)}.py").write_text(f"raise ImportError('{name} is not light')\n")
    with_it = {"cwd": tmp_path, "PYTHONPATH": f"{hidden}{os.pathsep}{ROOT}"}
    (tmp_path / "qnn.yaml").write_text("{name: n, socs: [SM8550], graphs: {g: {source: g.onnx}}}")
    assert '"socs":"SM8550"' in qnnci("matrix", **with_it).said
    for soc in ("SM8550", "SM8650"):
        save(tmp_path / soc / "manifest.json", manifest(entry("g", soc)))
    assert qnnci("manifest", "join", "SM8550", "SM8650", "--output", "joined/manifest.json", **with_it).code == 0
    github = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary"}
    ended = qnnci("gate", "joined", **with_it, **github)
    assert (ended.code, "passed: 2 of 2 binaries are good" in ended.said) == (0, True), ended.said
    # A test that hides nothing would prove nothing.
    assert "numpy is not light" in qnnci("doctor", **with_it).said
