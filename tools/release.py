"""What has to hold before a version is released, and what the release says: used by release-action.yml.

`check TAG` prints every problem and fails where there is one; `notes TAG` prints the changelog of the version; `moving
TAG` prints the tag that callers name, which moves to each release.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_TAG = re.compile(r"v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\S+))?$", re.MULTILINE)
_ACTION = re.compile(r"uses: *([\w.-]+/[\w./-]+)@(\w+)(?: # (\S+))?")
_PAIR = ("onnxruntime", "onnxruntime-qnn")
_FOUR_PARTS = r"\b\d+\.\d+\.\d+\.\d{6}\b"
# Where users read which SDK comes by default. docs/sdk.md names others too, on purpose.
_SDK_PLACES = ("action.yml", "actions/setup-qairt/action.yml", "qnnci/cli/machine.py", "docker/Dockerfile-2.40")


def problems(root: Path, tag: str) -> Iterator[str]:
    """All that is wrong with releasing this tree as `tag`; nothing where it may go out."""
    if not _TAG.fullmatch(tag):
        yield f"{tag!r} is no tag of a release: they are v1.2.3"
        return
    yield from _version(root, tag[1:])
    yield from _changelog(_read(root, "CHANGELOG.md"), tag[1:])
    yield from _sdk(root)
    yield from _compiler(root)
    yield from _pins(root)
    yield from _callers(root, moving(tag))


def notes(changelog: str, version: str) -> str:
    """The changelog's section of a version, without its heading; empty where it has none."""
    sections = _HEADING.split(changelog)
    found = [sections[at + 2] for at in range(1, len(sections), 3) if sections[at] == version]
    # Links at the end of the file belong to no section.
    return re.sub(r"^\[[^\]]+\]: \S+$", "", found[0], flags=re.MULTILINE).strip() if found else ""


def moving(tag: str) -> str:
    """The tag that workflows name: v1 until there is a version 2, also for 0.x, whose inputs are those of v1."""
    return f"v{max(1, int(tag[1:].partition('.')[0]))}"


def _version(root: Path, version: str) -> Iterator[str]:
    own = _one(r'^__version__ = "([^"]+)"$', _read(root, "qnnci/__init__.py"))
    if own != version:
        yield f"qnnci/__init__.py says version {own}, the tag says {version}"
    project = _read(root, "pyproject.toml")
    if not re.search(r'^dynamic = \["version"\]$', project, re.MULTILINE):
        yield "pyproject.toml has a version of its own: it has to be taken from qnnci/__init__.py"


def _changelog(text: str, version: str) -> Iterator[str]:
    dated = [heading for heading in _HEADING.finditer(text) if heading["version"] != "Unreleased"]
    if not dated or dated[0]["version"] != version:
        yield f"CHANGELOG.md does not begin with version {version}: `## [{version}] - YYYY-MM-DD`"
        return
    try:
        dt.date.fromisoformat(dated[0]["date"] or "")
    except ValueError:
        yield f"CHANGELOG.md has no date of version {version}: `## [{version}] - YYYY-MM-DD`"
    if not notes(text, version):
        yield f"CHANGELOG.md says nothing of version {version}"
    if notes(text, "Unreleased"):
        yield f"CHANGELOG.md still has something under Unreleased: it is part of {version} now"


def _sdk(root: Path) -> Iterator[str]:
    default = _one(r'^DEFAULT_VERSION = "([^"]+)"$', _read(root, "qnnci/toolchain/sdk.py"))
    for place in _SDK_PLACES:
        named = set(re.findall(_FOUR_PARTS, _read(root, place)))
        if named != {default}:
            yield f"{place} names the QAIRT SDK {', '.join(sorted(named)) or 'nowhere'}, the default is {default}"


def _compiler(root: Path) -> Iterator[str]:
    """The pair of wheels: pinned, and what the docs say is what is pinned."""
    project = _read(root, "pyproject.toml")
    for package in _PAIR:
        pin = _one(rf'^  "{package}==([\d.]+);', project)
        if not pin:
            yield f"pyproject.toml does not pin {package}"
        for path in _documents(root):
            said = set(re.findall(rf"\b{package} (\d+\.\d+\.\d+)", path.read_text(encoding="utf-8")))
            if said - {pin}:
                yield f"{path.relative_to(root)} says {package} {', '.join(sorted(said - {pin}))}, the pin is {pin}"


def _pins(root: Path) -> Iterator[str]:
    """One action of others is one commit everywhere, which its comment names."""
    seen: dict[str, tuple[str, str]] = {}
    for path in [*root.glob(".github/workflows/*.yml"), root / "action.yml", *root.glob("actions/*/action.yml")]:
        for action, commit, version in _ACTION.findall(path.read_text(encoding="utf-8")):
            repository = "/".join(action.split("/")[:2])
            if not re.fullmatch(r"[0-9a-f]{40}", commit):
                yield f"{path.relative_to(root)} does not pin {action} to a commit"
            elif seen.setdefault(repository, (commit, version)) != (commit, version):
                yield f"{path.relative_to(root)} pins {repository} to another commit than other files do"


def _callers(root: Path, tag: str) -> Iterator[str]:
    for path in _documents(root):
        others = set(re.findall(r"\borg/qnn-compile[\w./-]*@(v[\w.]+)", path.read_text(encoding="utf-8"))) - {tag}
        if others:
            yield f"{path.relative_to(root)} tells to use @{', @'.join(sorted(others))}, but {tag} is what moves"


def _documents(root: Path) -> list[Path]:
    return [root / "README.md", *sorted(root.glob("docs/*.md"))]


def _read(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8")


def _one(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""


def main(verb: str, tag: str, root: Path = ROOT) -> int:
    found = list(problems(root, tag))
    if verb == "check":
        for problem in found:
            print(problem)
        return 1 if found else 0
    if not _TAG.fullmatch(tag):
        sys.exit(found[0])
    print(notes(_read(root, "CHANGELOG.md"), tag[1:]) if verb == "notes" else moving(tag))
    return 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case [("check" | "notes" | "moving") as verb, tag]:
            sys.exit(main(verb, tag))
    sys.exit("usage: python tools/release.py check|notes|moving TAG")
