"""What a release is held to: this tree passes but for its changelog, and each way to be out of step is told."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from qnnci import __version__
from qnnci.toolchain.sdk import DEFAULT_VERSION

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("release", ROOT / "tools/release.py")
assert _SPEC is not None
assert _SPEC.loader is not None
release = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(release)

READ = (
    "README.md", "CHANGELOG.md", "pyproject.toml", "action.yml", "qnnci/__init__.py", "qnnci/cli/machine.py",
    "qnnci/toolchain/sdk.py",
)  # fmt: skip
TAG = f"v{__version__}"
NOTES = "### Added\n\n- This."


def dated(text: str, version: str = __version__) -> str:
    """A changelog whose unreleased part is that of a version."""
    return text.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{version}] - 2026-12-01\n", 1)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (".github", "actions", "docker", "docs", *READ):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, tmp_path / name)
    change(tmp_path, "CHANGELOG.md", dated)
    return tmp_path


def change(root: Path, path: str, edit: Callable[[str], str]) -> None:
    old = (root / path).read_text(encoding="utf-8")
    new = edit(old)
    assert new != old
    (root / path).write_text(new, encoding="utf-8")


def test_this_tree_can_be_released_once_its_changelog_has_a_date(tree: Path) -> None:
    assert list(release.problems(tree, TAG)) == []


SHA = re.compile(r"(actions/checkout@)[0-9a-f]{40}")
EDITS: dict[str, tuple[str, Callable[[str], str], str]] = {
    "version": ("qnnci/__init__.py", lambda text: text.replace(__version__, "9.9.9"), "says version 9.9.9"),
    "own version": (
        "pyproject.toml",
        lambda text: text.replace('dynamic = ["version"]', 'version = "1"'),
        "a version of its own",
    ),
    "no date": ("CHANGELOG.md", lambda text: text.replace("- 2026-12-01", "- soon"), "no date"),
    "wrong date": ("CHANGELOG.md", lambda text: text.replace("2026-12-01", "2026-13-01"), "no date"),
    "another on top": (
        "CHANGELOG.md",
        lambda text: text.replace(f"## [{__version__}]", f"## [9.9.9] - 2026-12-02\n\n- x\n\n## [{__version__}]"),
        "does not begin with",
    ),
    "says nothing": ("CHANGELOG.md", lambda text: text[: text.index("2026-12-01") + 10] + "\n", "says nothing"),
    "unreleased": (
        "CHANGELOG.md",
        lambda text: text.replace("## [Unreleased]\n", "## [Unreleased]\n\n- more\n"),
        "under Unreleased",
    ),
    "default sdk": (
        "qnnci/toolchain/sdk.py",
        lambda text: text.replace(DEFAULT_VERSION, "2.99.0.301231"),
        f"action.yml names the QAIRT SDK {DEFAULT_VERSION}, the default is 2.99.0.301231",
    ),
    "sdk of the action": (
        "actions/setup-qairt/action.yml",
        lambda text: text.replace(DEFAULT_VERSION, "2.99.0.301231"),
        "setup-qairt/action.yml names the QAIRT SDK 2.99.0.301231",
    ),
    "one of the pair": (
        "pyproject.toml",
        lambda text: text.replace("onnxruntime==1.32.0", "onnxruntime==1.33.0"),
        "docs/routes.md says onnxruntime 1.32.0, the pin is 1.33.0",
    ),
    "no pin": (
        "pyproject.toml",
        lambda text: text.replace("onnxruntime-qnn==", "onnxruntime-qnn>="),
        "does not pin onnxruntime-qnn",
    ),
    "other commit": (
        ".github/workflows/docker.yml",
        lambda text: SHA.sub(r"\g<1>" + "0" * 40, text),
        "pins actions/checkout to another commit",
    ),
    "no commit": (
        "actions/setup/action.yml",
        lambda text: re.sub(r"(cache/save@)[0-9a-f]{40}", r"\1v5", text),
        "does not pin actions/cache/save",
    ),
    "callers": ("README.md", lambda text: text.replace("@v1", "@v2"), "README.md tells to use @v2, but v1"),
}


@pytest.mark.parametrize("which", EDITS)
def test_what_is_out_of_step_is_told(tree: Path, which: str) -> None:
    path, edit, said = EDITS[which]
    change(tree, path, edit)
    found = list(release.problems(tree, TAG))
    assert found
    assert any(said in problem for problem in found), found


@pytest.mark.parametrize("tag", ["", "1.2.3", "v1", "v1.2", "v1.2.3-rc1", "v01.2.3", "v1.2.3\n", "v1.2.3; id", "$(id)"])
def test_what_is_no_tag_of_a_release_is_refused(tag: str) -> None:
    (problem,) = release.problems(ROOT, tag)
    assert "no tag of a release" in problem
    with pytest.raises(SystemExit, match="no tag of a release"):
        release.main("moving", tag)


@pytest.mark.parametrize(
    ("tag", "moving"), [("v0.1.0", "v1"), ("v1.0.0", "v1"), ("v1.20.3", "v1"), ("v2.0.0", "v2"), ("v10.1.1", "v10")]
)
def test_the_tag_that_moves(tag: str, moving: str) -> None:
    assert release.moving(tag) == moving


def test_notes_are_the_section_of_the_version() -> None:
    text = (
        f"# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2026-12-01\n\n{NOTES}\n\n## [1.0.0] - 2026-11-01\n\n- Old.\n"
    )
    text += "\n[1.0.0]: https://example.org\n"
    assert release.notes(text, "1.1.0") == NOTES
    assert release.notes(text, "1.0.0") == "- Old."
    assert release.notes(text, "Unreleased") == ""
    assert release.notes(text, "1.1") == ""


def test_check_prints_each_problem_and_fails(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main("check", TAG, tree) == 0
    assert release.main("check", "v1.9.9", tree) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2
