"""The docs and the schema say what the code says; `make docs` brings them in step."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from qnnci.process import run
from qnnci.project import Project
from tests import generated

TEXTS = generated.wanted()


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_it_is_in_step_with_the_code(path: Path) -> None:
    assert not generated.difference(path, TEXTS[path]), "run `make docs`"


def test_every_block_stands_somewhere() -> None:
    found = [name for path in TEXTS for name in re.findall(r"<!-- generated: ([\w-]+) -->", path.read_text("utf-8"))]
    assert set(found) == set(generated.BLOCKS)


def test_a_stale_block_is_told_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# Top\n\n<!-- generated: exit-codes -->\nold\n<!-- end -->\n\nthe rest\n", encoding="utf-8")
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    assert generated.main() == 1
    assert "-old" in capsys.readouterr().out
    assert generated.main("--write") == 0
    assert generated.main() == 0
    text = readme.read_text(encoding="utf-8")
    assert "| `130` | stopped by Ctrl-C" in text
    assert text.startswith("# Top\n")
    assert text.endswith("<!-- end -->\n\nthe rest\n")


def test_every_key_of_a_project_is_described() -> None:
    rows = list(generated.Keys(Project.model_json_schema()).rows())
    assert len(rows) > 40
    assert [path for path, _, _, about in rows if not about] == []
    assert len({path for path, *_ in rows}) == len(rows)


def test_the_schema_takes_the_examples() -> None:
    examples = sorted(generated.ROOT.glob("examples/*/qnn.yaml"))
    tool = Path(sys.executable).parent / "check-jsonschema"
    done = run([str(tool), "--schemafile", str(generated.ROOT / "qnn.schema.json"), *map(str, examples)], timeout=60)
    assert len(examples) > 1
    assert done.code == 0, done.output
