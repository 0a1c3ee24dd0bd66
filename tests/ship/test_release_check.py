"""`qnnci sbom` and `qnnci verify-release`: what a release says of itself, and whether its files are that."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from release_server import REPO, TOKEN, serving
from support.command import qnnci
from test_shards import entry, manifest

from qnnci.errors import UsageError
from qnnci.manifest import load, save
from qnnci.ship import release_files
from qnnci.ship.release_files import listed, take
from qnnci.ship.sbom import sbom


def made(*names: str, **more: object):
    return manifest(*(entry(name, "SM8550") for name in names), **more)


# the document


def test_the_document_holds_by_its_schema_and_is_the_same_again():
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    build = made("enc", "dec").model_copy(update={"tools": {"qnnci": "0.1.0", "onnx": "1.23.2", "onnxsim": "missing"}})
    text = sbom(build)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert sbom(build) == text
    told = json.loads(text)
    by_type: dict[str, list[str]] = {}
    for each in told["components"]:
        by_type.setdefault(each["type"], []).append(each["name"])
    assert sorted(by_type["library"]) == ["onnx", "qnnci"]
    assert by_type["application"] == ["QAIRT"]
    assert sorted(by_type["file"]) == sorted(each.binary for each in build.entries)
    purls = {each["purl"] for each in told["components"] if "purl" in each}
    assert purls == {"pkg:pypi/onnx@1.23.2", "pkg:pypi/qnnci@0.1.0"}


@given(st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=25, deadline=None)
def test_no_name_breaks_the_document(name, licence):
    one = entry("enc", "SM8550").model_copy(update={"license": licence, "source": name, "built_at": name})
    assert json.loads(sbom(manifest(one)))["bomFormat"] == "CycloneDX"


def test_by_hand(tmp_path):
    save(tmp_path / "manifest.json", made("enc"))
    ended = qnnci("sbom", "manifest.json", "-o", "out.json", cwd=tmp_path)
    assert (ended.code, "wrote out.json" in ended.said) == (0, True), ended.said
    assert (tmp_path / "out.json").read_text() == qnnci("sbom", "manifest.json", cwd=tmp_path).said


# the check


def rules_of(ended) -> set[str]:
    """Of the JSON, which comes before what is said on standard error."""
    return set(re.findall(r'"rule": "([\w-]+)"', ended.said))


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> Path:
    """A release of real binaries, as it is downloaded: bundles, sums, manifest and document."""
    pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")
    from support import graphs
    from support.command import project

    folder = tmp_path_factory.mktemp("release")
    graphs.cnn(folder / "g.onnx")
    project(folder, {"g": {"source": "g.onnx"}}, ["SM8550", "SM8750"], license="MIT")
    assert qnnci("build", "--no-verify", cwd=folder).code == 0
    assert qnnci("bundle", "--layout", "onnxruntime", cwd=folder).code == 0
    (folder / "down").mkdir()
    with serving() as hub:
        env = {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": REPO, "GITHUB_API_URL": hub.root}
        ended = qnnci("publish", "release", "build/bundles", "--tag", "v1", "--manifest", "build", cwd=folder, **env)
        assert ended.code == 0, ended.said
        for each in hub.only("v1").assets:
            (folder / "down" / each.name).write_bytes(each.body)
    return folder / "down"


@pytest.fixture
def release(real, tmp_path) -> Path:
    subprocess.run(["cp", "-r", real, tmp_path / "r"], check=True)
    return tmp_path / "r"


def test_a_release_that_holds(release, tmp_path):
    before = sorted(release.iterdir())
    ended = qnnci("verify-release", "r", cwd=tmp_path)
    assert ended.code == 0, ended.said
    assert "2 binaries, and 0 findings" in ended.said
    assert sorted(release.iterdir()) == before


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _other(path: Path) -> None:
    with tarfile.open(path, "w:bz2") as archive:
        info = tarfile.TarInfo("g.bin")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        (lambda at: next(at.glob("*8550*")).unlink(), {"file-missing"}),
        (lambda at: _cut(next(at.glob("*8550*"))), {"file-changed", "archive-damaged", "file-missing"}),
        (lambda at: _other(next(at.glob("*8550*"))), {"file-changed", "file-missing"}),
        (lambda at: (at / "added.txt").write_text("x"), {"file-strange"}),
        (lambda at: (at / "sbom.cdx.json").unlink(), {"file-missing", "sbom-missing"}),
    ],
)
def test_what_is_wrong_with_a_release(release, tmp_path, change, rules):
    change(release)
    ended = qnnci("verify-release", "r", "--json", cwd=tmp_path)
    assert rules_of(ended) == rules
    assert ended.code == (0 if rules == {"file-strange"} else 1)


def test_a_manifest_of_another_build(release, tmp_path):
    told = load(release / "manifest.json")
    entries = tuple(each.model_copy(update={"soc": "SM8650", "soc_id": 57}) for each in told.entries[:1])
    save(release / "manifest.json", told.model_copy(update={"entries": entries}))
    ended = qnnci("verify-release", "r", "--json", cwd=tmp_path)
    assert {"file-changed", "manifest-differs"} <= rules_of(ended)


@pytest.mark.parametrize("name", ["manifest.json", "SHA256SUMS"])
@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"nonsense"])
def test_what_is_no_release(release, tmp_path, name, content):
    (release / name).unlink()
    if content is not None:
        (release / name).write_bytes(content)
    ended = qnnci("verify-release", "r", cwd=tmp_path)
    assert ended.code == 2, ended.said
    assert "Traceback" not in ended.said


def test_a_release_on_github(real, tmp_path):
    with serving() as hub:
        made = hub.release("v1")
        for path in real.iterdir():
            hub.put(made, path.name, path.read_bytes())
        ended = qnnci("verify-release", f"{REPO}@v1", "--api-url", hub.root, cwd=tmp_path)
        assert ended.code == 0, ended.said
        ended = qnnci("verify-release", f"{REPO}@v9", "--api-url", hub.root, cwd=tmp_path)
        assert (ended.code, "has no public release v9" in ended.said) == (2, True)
        hub.put(made, "../escape", b"x")
        ended = qnnci("verify-release", f"{REPO}@v1", "--api-url", hub.root, cwd=tmp_path)
        assert (ended.code, "a file called '../escape'" in ended.said) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_attestations_are_ghs_to_check(real, tmp_path):
    program = tmp_path / "bin/gh"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncase "$3" in *8550*) echo "no attestation" >&2; exit 1;; esac\n')
    program.chmod(0o755)
    with serving() as hub:
        made = hub.release("v1")
        for path in real.iterdir():
            hub.put(made, path.name, path.read_bytes())
        path = f"{program.parent}:/usr/bin:/bin"
        ended = qnnci("verify-release", f"{REPO}@v1", "--attestation", "--api-url", hub.root, cwd=tmp_path, PATH=path)
    assert ended.code == 1, ended.said
    assert ended.said.count("error not-attested") == 1
    assert "no attestation" in ended.said


# archives of strangers


def packed(folder: Path, kind: str, files: dict[str, bytes]) -> Path:
    path = folder / f"a{kind}"
    if kind == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, body in files.items():
                archive.writestr(name, body)
        return path
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w" if kind == ".tar.zst" else "w:bz2") as archive:
        for name, body in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    body = plain.getvalue()
    if kind == ".tar.zst":
        import zstandard

        body = zstandard.ZstdCompressor().compress(body)
    path.write_bytes(body)
    return path


@pytest.mark.parametrize("kind", release_files.ARCHIVES)
def test_members_are_found_by_what_they_are(tmp_path, kind):
    import hashlib

    files = {"../../escape": b"wanted", "/etc/passwd": b"other", "x": b"much too large" * 9}
    digest = hashlib.sha256(b"wanted").hexdigest()
    (tmp_path / "out").mkdir()
    found = take(packed(tmp_path, kind, files), {digest: 6}, tmp_path / "out")
    assert [path.read_bytes() for path in found.values()] == [b"wanted"]
    assert list(found) == [digest]
    assert len(list((tmp_path / "out").iterdir())) == 1
    assert not (tmp_path.parent / "escape").exists()


@pytest.mark.parametrize("kind", release_files.ARCHIVES)
def test_an_archive_that_unfolds_to_too_much(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(release_files, "MOST_BYTES", 1000)
    monkeypatch.setattr(release_files, "MOST_FILES", 5)
    for files in ({"big": b"0" * 2000}, {str(number): b"" for number in range(9)}):
        with pytest.raises(UsageError, match="unfolds to over"):
            take(packed(tmp_path, kind, files), {"0": 1}, tmp_path)


@given(st.binary(max_size=60), st.sampled_from(release_files.ARCHIVES), st.integers(0, 200))
@settings(max_examples=60, deadline=None)
def test_no_archive_crashes_it(tmp_path_factory, noise, kind, cut):
    folder = tmp_path_factory.mktemp("noise")
    whole = packed(folder, kind, {"a": b"1" * 50}).read_bytes()
    for body in (noise, whole[:cut], whole[:cut] + noise + whole[cut:]):
        (folder / f"b{kind}").write_bytes(body)
        try:
            assert take(folder / f"b{kind}", {"0" * 64: 100}, folder) == {}
        except UsageError as error:
            assert "damaged" in error.message  # noqa: PT017 - many inputs, some of which are whole


def test_sums():
    digest = "a" * 64
    assert listed(f"{digest}  a b\n{digest} *c\n") == {"a b": digest, "c": digest}
    for bad in (f"{digest}  x\n{digest}  x\n", "x", f"{digest} x", digest):
        with pytest.raises(UsageError):
            listed(bad)
