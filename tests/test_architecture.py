"""Imports point one way, as README's section on architecture says."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Each imports only from below itself. What is not named here is below all of these.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("commands",),
    ("report",),
    ("runtime",),
    ("build", "ship", "device"),
    ("gates", "budget", "manifest_check"),
    ("model", "toolchain", "context"),
)
HEAVY = {"onnx", "onnxruntime", "onnxsim", "numpy", "pydantic", "rich", "requests", "huggingface_hub", "yaml", "jiwer"}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted((ROOT / "qnnci").rglob("*.py"))}


def imports(module: str) -> Iterator[str]:
    """Our own modules that a module imports, those inside functions too, and those named as text for a worker."""
    text = MODULES[module].read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} imports relatively"
            names = [
                each if each in MODULES else node.module
                for alias in node.names
                if (each := f"{node.module}.{alias.name}")
            ]
        yield from (name for name in names if name in MODULES and name != module)


EDGES = {module: set(imports(module)) for module in MODULES}


def room(module: str) -> str:
    """The folder or module right below `qnnci`."""
    return module.split(".")[1] if "." in module else "qnnci"


def layer(module: str) -> int:
    return next((number for number, rooms in enumerate(LAYERS) if room(module) in rooms), len(LAYERS))


def test_every_layer_is_there() -> None:
    assert {name for rooms in LAYERS for name in rooms} <= {room(module) for module in MODULES}
    assert len(MODULES) > 40


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    others = [each for each in EDGES[module] if room(each) != room(module)]
    lowest = len(LAYERS)
    wrong = [each for each in others if layer(each) < layer(module) or layer(each) == layer(module) < lowest]
    assert wrong == []


def test_no_cycles() -> None:
    graphlib.TopologicalSorter(EDGES).prepare()
    rooms: dict[str, set[str]] = {}
    for module, found in EDGES.items():
        rooms.setdefault(room(module), set()).update(room(each) for each in found if room(each) != room(module))
    graphlib.TopologicalSorter(rooms).prepare()


def test_what_is_private_stays_inside() -> None:
    """No module takes a name with a leading underscore from another."""
    taken = [
        f"{module}: {alias.name}"
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module in MODULES
        for alias in node.names
        if re.match(r"_[^_]", alias.name)
    ]
    assert taken == []


@pytest.mark.parametrize("verb", ["--help", "socs"])
def test_what_answers_at_once_imports_nothing_heavy(verb: str) -> None:
    run = f"cli([{verb!r}], obj={{}}, standalone_mode=False)"
    code = f"import sys; from qnnci.cli.main import cli; {run}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "qnnci.cli.main" in done.stdout.splitlines()[-1].split()
    assert set(done.stdout.splitlines()[-1].split()) & HEAVY == set()
