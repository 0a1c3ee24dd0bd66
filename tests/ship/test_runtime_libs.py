"""`qnnci runtime-libs`: which libraries go in, where they come from, and what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sdk import elf
from support import runtime
from support.file_server import Resource, Site, serving
from support.runtime import entry, write_manifest

from qnnci.cli.main import cli
from qnnci.errors import MachineError, QnnciError, ToolMissing, UsageError
from qnnci.http import CHUNK

BUILD = runtime.BUILD
ANDROID = {"libQnnHtp.so", "libQnnSystem.so", "libQnnHtpV73Stub.so", "libQnnHtpV73Skel.so"}
PAPERS = {"README.md", "SHA256SUMS", "runtime-libs.json", "LICENSE.pdf"}


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, and nothing that the machine or GitHub may have set."""
    for name in [name for name in os.environ if name.startswith(("QNN", "GITHUB_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("QNNCI_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as made:
        yield made


def run(manifest: Path, *options: object, platform: str = "android") -> tuple[int, dict[str, Any]]:
    """The exit code, and what the verb says as JSON; an error of its own is raised."""
    argv = ["runtime-libs", "--for", str(manifest), "--platform", platform, *map(str, options), "--json"]
    done = CliRunner().invoke(cli, argv, obj={}, catch_exceptions=True)
    if isinstance(done.exception, QnnciError):
        raise done.exception
    return done.exit_code, json.loads(done.stdout)


def rules(said: dict[str, Any]) -> list[str]:
    return sorted({each["rule"] for each in said["findings"]})


def one_chip(folder: Path, **more: Any) -> Path:
    return write_manifest(folder, entry("g", "SM8550", **more))


def test_only_what_the_chips_need(tmp_path: Path) -> None:
    root = runtime.sdk(tmp_path, files=runtime.libraries(arches=(68, 69, 73, 75, 79, 81)))
    manifest = write_manifest(tmp_path, entry("a", "SM8550"), entry("b", "SM8550"), entry("a", "SM8750", passed=False))
    code, said = run(manifest, "--from", root, "--archive", "folder")
    assert (code, rules(said)) == (0, [])
    assert set(said["files"]) == ANDROID | PAPERS | {"QNN_NOTICE.txt"}
    folder = Path(said["directory"])
    assert folder.name == "qnn-libs-2.49.0.260801"
    assert {path.name for path in folder.iterdir()} == set(said["files"])
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    record = json.loads((folder / "runtime-libs.json").read_text())
    assert (record["socs"], record["compiled_with"], record["source"]) == (
        ["SM8550"],
        [BUILD],
        f"QAIRT SDK {root.name}",
    )
    stub = next(each for each in record["files"] if each["path"] == "libQnnHtpV73Stub.so")
    assert stub["dsp_arch"] == "v73"
    assert "libcdsprpc.so" in stub["needs"]


def test_prepare_is_put_in_where_it_is_asked_for(tmp_path: Path) -> None:
    _, said = run(one_chip(tmp_path), "--from", runtime.sdk(tmp_path), "--prepare")
    assert set(said["files"]) >= ANDROID | {"libQnnHtpPrepare.so"}


def test_the_flat_archive_is_that_of_sherpa_onnx_and_the_same_each_time(tmp_path: Path) -> None:
    root, manifest = runtime.sdk(tmp_path), one_chip(tmp_path)
    first = run(manifest, "--from", root, "-o", tmp_path / "one")[1]
    again = run(manifest, "--from", root, "-o", tmp_path / "two")[1]
    assert Path(first["archive"]).name == "qnn-libs-2.49.0.260801.tar.bz2"
    assert first["sha256"] == again["sha256"] == hashlib.sha256(Path(first["archive"]).read_bytes()).hexdigest()
    with tarfile.open(first["archive"]) as tar:
        names = {Path(name).relative_to("qnn-libs-2.49.0.260801").as_posix() for name in tar.getnames()}
        page = tar.extractfile("qnn-libs-2.49.0.260801/README.md")
        assert page is not None
        text = page.read().decode()
    assert names - {"."} == ANDROID | PAPERS | {"QNN_NOTICE.txt"}
    assert 'ADSP_LIBRARY_PATH="/data/local/tmp/qnn;/vendor/dsp/cdsp"' in text
    assert "@" not in text
    assert [path.name for path in (tmp_path / "one").iterdir()] == [Path(first["archive"]).name]


def test_jni_libs(tmp_path: Path) -> None:
    root, manifest = runtime.sdk(tmp_path), one_chip(tmp_path)
    _, said = run(manifest, "--from", root, "--layout", "jniLibs")
    inside = Path(said["directory"]) / "jniLibs/arm64-v8a"
    assert {path.name for path in inside.iterdir()} == ANDROID
    _, zipped = run(manifest, "--from", root, "--layout", "jniLibs", "--archive", "zip")
    with zipfile.ZipFile(zipped["archive"]) as archive:
        assert "qnn-jniLibs-2.49.0.260801/jniLibs/arm64-v8a/libQnnHtp.so" in archive.namelist()
    with pytest.raises(UsageError, match="jniLibs is for Android"):
        run(manifest, "--from", root, "--layout", "jniLibs", platform="linux-aarch64")


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    root, manifest = runtime.sdk(tmp_path), one_chip(tmp_path)
    mine = tmp_path / "runtime-libs/qnn-libs-2.49.0.260801"
    mine.mkdir(parents=True)
    (mine / "precious").write_text("x")
    with pytest.raises(UsageError, match="was not written by qnnci"):
        run(manifest, "--from", root, "--archive", "folder")
    assert [path.name for path in mine.iterdir()] == ["precious"]
    (mine / "runtime-libs.json").write_text("{}")  # now it looks like ours
    assert run(manifest, "--from", root, "--archive", "folder")[0] == 0
    assert not (mine / "precious").exists()
    assert [path.name for path in mine.parent.iterdir()] == [mine.name]


# what the binaries say


def test_binaries_of_several_versions_are_refused_by_name(tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path, entry("old", "SM8550", qairt="v2.40.0.251030114326"), entry("new", "SM8750"))
    with pytest.raises(UsageError) as caught:
        run(manifest, "--from", runtime.sdk(tmp_path))
    assert "2.40.0: old for SM8550; 2.49.0: new for SM8750" in caught.value.message


def test_a_manifest_without_binaries_that_passed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no binary in the manifest passed"):
        run(one_chip(tmp_path, passed=False))
    with pytest.raises(UsageError, match="which is no version"):
        run(one_chip(tmp_path, qairt="of yesterday"))


# what the libraries say


def changed(folder: Path, name: str, content: bytes) -> Path:
    return runtime.sdk(folder, files={**runtime.libraries(), name: content})


@pytest.mark.parametrize(
    ("name", "content", "rule", "says"),
    [
        (
            "libQnnHtp.so",
            runtime.host("2.40.0.251030114326"),
            "runtime-version",
            "not of the binaries' QAIRT 2.49.0, but of 2.40.0.251030114326: libQnnHtp.so",
        ),
        ("libQnnHtp.so", runtime.host("2.49.0.260802000000"), "runtime-version", "of different builds"),
        ("libQnnHtp.so", runtime.host(machine=elf.X86_64), "runtime-machine", "is for x86-64, android needs it for AA"),
        ("libQnnHtpV73Skel.so", runtime.host(), "runtime-machine", "is for AArch64, android needs it for Hexagon"),
        ("libQnnHtpV73Skel.so", b"", "runtime-machine", "is not read as an ELF library"),
        ("libQnnSystem.so", b"<html>", "runtime-machine", "is not read as an ELF library"),
        ("libQnnSystem.so", runtime.host(align=4096), "page-size", "has pages of 4096 bytes"),
    ],
)
def test_refused(tmp_path: Path, name: str, content: bytes, rule: str, says: str) -> None:
    code, said = run(one_chip(tmp_path), "--from", changed(tmp_path, name, content))
    assert code == 1
    assert rule in rules(said)
    assert any(says in each["message"] for each in said["findings"] if each["rule"] == rule)
    assert said["archive"] == said["directory"] == ""
    assert list((tmp_path / "runtime-libs").iterdir()) == []


def test_a_library_that_nobody_has_is_told(tmp_path: Path) -> None:
    root = changed(tmp_path, "libQnnSystem.so", runtime.host("", needs=("libc.so", "libodd.so", "libQnnHtp.so")))
    code, said = run(one_chip(tmp_path), "--from", root)
    assert (code, rules(said)) == (0, ["runtime-needed"])
    assert said["findings"][0]["message"] == "libQnnSystem.so needs libodd.so, which is not among them"


def test_another_build_of_the_same_version_is_told(tmp_path: Path) -> None:
    manifest = one_chip(tmp_path, qairt="v2.49.0.260802000000_1234")
    code, said = run(manifest, "--from", runtime.sdk(tmp_path))
    assert (code, rules(said)) == (0, ["runtime-build"])
    # A version that is cut short at the date is no other build.
    assert run(one_chip(tmp_path, qairt="2.49.0.260801"), "--from", tmp_path / "qairt")[1]["findings"] == []
    assert run(one_chip(tmp_path, qairt="2.49.0"), "--from", tmp_path / "qairt")[1]["findings"] == []


def test_libraries_that_say_nothing_are_what_their_source_says(tmp_path: Path) -> None:
    root = runtime.sdk(tmp_path, files=runtime.libraries(""))
    assert run(one_chip(tmp_path), "--from", root)[0] == 0
    code, said = run(one_chip(tmp_path, qairt="v2.48.0.1"), "--from", root)
    assert (code, rules(said)) == (1, ["runtime-version"])
    path = tmp_path / "qnn.aar"
    path.write_bytes(runtime.aar(runtime.libraries("")))
    assert rules(run(one_chip(tmp_path), "--from", path)[1]) == ["runtime-version"]


def test_a_missing_arch_names_chips_and_what_there_is(tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path, entry("g", "SM8550"), entry("g", "SM8650"), entry("h", "SM8850"))
    code, said = run(manifest, "--from", runtime.sdk(tmp_path))
    assert (code, rules(said)) == (1, ["runtime-missing"])
    assert [each["soc"] for each in said["findings"]] == ["SM8650", "SM8850"]
    for found, arch in zip(said["findings"], (75, 81), strict=True):
        lacking = f"has no libQnnHtpV{arch}Stub.so and no libQnnHtpV{arch}Skel.so"
        assert found["message"] == f"QAIRT SDK 2.49.0.260801 {lacking}; it is for v73, v79"
    assert "libQnnHtpV73Skel.so" in run(manifest, "--from", tmp_path / "qairt", "--soc", "SM8550P")[1]["files"]
    with pytest.raises(UsageError, match="no binary for SM8750 in the manifest"):
        run(manifest, "--from", tmp_path / "qairt", "--soc", "SM8550, SM8750")


def test_an_sdk_without_the_platform(tmp_path: Path) -> None:
    code, said = run(one_chip(tmp_path), "--from", runtime.sdk(tmp_path), platform="linux-aarch64")
    assert (code, rules(said)) == (1, ["runtime-missing"])
    assert said["findings"][0]["message"].endswith("has no libQnnHtp.so and no libQnnSystem.so")
    assert said["findings"][1]["message"].endswith("has no libQnnHtpV73Stub.so; it is for no dsp arch at all")


@pytest.mark.parametrize("kind", ["sdk", "aar", "whl"])
def test_without_a_licence_nothing_is_written(tmp_path: Path, kind: str) -> None:
    manifest = one_chip(tmp_path)
    source = tmp_path / f"qnn.{kind}"
    if kind == "sdk":
        source = runtime.sdk(tmp_path)
        (source / "LICENSE.pdf").unlink()
    else:
        made = runtime.aar(licence=False) if kind == "aar" else runtime.wheel(runtime.libraries(), licence=False)
        source.write_bytes(made)
    with pytest.raises(UsageError, match="has no licence of the vendor's"):
        run(manifest, "--from", source)
    terms = tmp_path / "terms of use.pdf"
    terms.write_bytes(runtime.LICENCE)
    assert "terms_of_use.pdf" in run(manifest, "--from", source, "--license", terms)[1]["files"]
    with pytest.raises(UsageError, match="there is no file"):
        run(manifest, "--from", source, "--license", tmp_path / "none.pdf")


# sources


def test_an_sdk_is_found_by_the_binaries_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = one_chip(tmp_path)
    monkeypatch.setenv("QNN_SDK_ROOT", str(runtime.sdk(tmp_path)))
    assert run(manifest)[1]["source"] == "QAIRT SDK 2.49.0.260801"
    assert run(manifest, "--from", "sdk")[0] == 0
    with pytest.raises(ToolMissing, match=r"2\.48\.0 was asked for"):
        run(one_chip(tmp_path, qairt="v2.48.0.1"), "--from", "sdk")


@pytest.mark.parametrize(
    ("platform", "folder"), [("linux-aarch64", "oe-linux-gcc11.2"), ("windows-arm64", "windows-msvc")]
)
def test_an_sdk_for_other_platforms(tmp_path: Path, platform: str, folder: str) -> None:
    root = runtime.sdk(tmp_path)
    windows = platform == "windows-arm64"
    for build in ("2.30.0.240101000000", BUILD):
        made = runtime.dll(build) if windows else runtime.host(build, needs=runtime.GLIBC, align=65536)
        place = root / "lib" / f"aarch64-{folder if build == BUILD else 'oe-linux-gcc8.2'}"
        place.mkdir()
        for name in ("QnnHtp", "QnnSystem", "QnnHtpV73Stub"):
            (place / (f"{name}.dll" if windows else f"lib{name}.so")).write_bytes(made)
    (root / "lib/hexagon-v73/unsigned/libqnnhtpv73.cat").write_bytes(b"signed")
    code, said = run(one_chip(tmp_path), "--from", root, platform=platform)
    assert (code, rules(said)) == (0, [])
    assert ("libqnnhtpv73.cat" in said["files"]) is windows
    if windows:
        (root / "lib/aarch64-windows-msvc/QnnHtp.dll").write_bytes(runtime.dll(machine=0x8664))
        (root / "lib/aarch64-windows-msvc/QnnSystem.dll").write_bytes(b"MZ")
        code, said = run(one_chip(tmp_path), "--from", root, platform=platform)
        assert [each["message"] for each in said["findings"]] == [
            "QnnHtp.dll is for x64 or ARM64EC, windows-arm64 needs it for ARM64",
            "QnnSystem.dll is no Windows library",
        ]


def repository(site: Site, content: bytes, version: str = "2.49.0") -> dict[str, Resource]:
    made = {path: Resource(each) for path, each in runtime.maven_files(content, version).items()}
    for path, resource in made.items():
        site.put(path, resource)
    return made


def test_maven_once(tmp_path: Path, site: Site) -> None:
    repository(site, runtime.aar())
    for _ in range(2):
        code, said = run(one_chip(tmp_path), "--maven", f"{site.root}/")
        assert (code, rules(said)) == (0, [])
        assert said["source"] == "com.qualcomm.qti:qnn-runtime:2.49.0"
    assert set(said["files"]) == ANDROID | PAPERS
    assert len([each for each in site.gets() if each.path.endswith(".aar")]) == 1


def test_maven_has_the_first_release_of_a_minor_version_only(tmp_path: Path, site: Site) -> None:
    repository(site, runtime.aar(runtime.libraries("2.49.40.260801123456")))
    manifest = one_chip(tmp_path, qairt="v2.49.40.260801123456")
    code, said = run(manifest, "--from", "maven", "--maven", site.root)
    assert (code, rules(said)) == (0, ["runtime-release"])
    assert "published as 2.49.0 only, not as 2.49.40" in said["findings"][0]["message"]


def test_maven_whose_libraries_are_of_another_version(tmp_path: Path, site: Site) -> None:
    repository(site, runtime.aar())
    code, said = run(one_chip(tmp_path, qairt="v2.49.40.260801123456"), "--from", "maven", "--maven", site.root)
    assert (code, rules(said)) == (1, ["runtime-release", "runtime-version"])
    assert ": libQnnHtp.so, libQnnHtpV73Stub.so, libQnnHtpV73Skel.so" in said["findings"][1]["message"]


@pytest.mark.parametrize("kind", ["sha256", "sha1", "md5"])
def test_maven_with_another_digest(tmp_path: Path, site: Site, kind: str) -> None:
    made = repository(site, runtime.aar())
    path = next(path for path in made if path.endswith(kind))
    made[path].body = b"0" * len(made[path].body.split()[0])
    with pytest.raises(UsageError, match=f"has {kind} .* but the repository says 000"):
        run(one_chip(tmp_path), "--from", "maven", "--maven", site.root)
    assert list((tmp_path / "cache").rglob("*.aar")) == []


def test_maven_without_a_digest_or_the_version(tmp_path: Path, site: Site) -> None:
    made = repository(site, runtime.aar())
    for kind in ("sha256", "sha1", "md5"):
        path = next(path for path in made if path.endswith(kind))
        made[path].body = b"not a digest"
    with pytest.raises(UsageError, match=r"or no digest of it; it has 2\.45\.0"):
        run(one_chip(tmp_path), "--from", "maven", "--maven", site.root)
    with pytest.raises(UsageError, match=r"has no com\.qualcomm\.qti:qnn-runtime:2\.50\.0"):
        run(one_chip(tmp_path, qairt="v2.50.0.1"), "--from", "maven", "--maven", site.root)
    with pytest.raises(ToolMissing, match="no source has the libraries"):
        run(one_chip(tmp_path, qairt="v2.50.0.1"), "--maven", site.root)


def test_a_download_that_breaks_off_goes_on(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qnnci.http.BACKOFF", 0)
    made = repository(site, runtime.aar(more={"noise": os.urandom(1 << 18)}))
    aar = next(path for path in made if path.endswith(".aar"))
    made[aar].headers["ETag"] = '"1"'
    made[aar].cuts = [CHUNK + 100]
    assert run(one_chip(tmp_path), "--maven", site.root)[0] == 0
    assert [each.headers.get("Range") for each in site.gets() if each.path == aar] == [None, f"bytes={CHUNK}-"]


def test_an_address(tmp_path: Path, site: Site) -> None:
    url = site.put("/mirror/qnn.aar", Resource(runtime.aar(), {"ETag": '"1"'}))
    manifest = one_chip(tmp_path)
    for _ in range(2):
        assert run(manifest, "--from", f"{url}?token=secret")[1]["source"] == "qnn.aar"
    assert len(site.gets()) == 1
    bad = site.put("/bad.aar", Resource(b"<html>"))
    with pytest.raises(UsageError, match="cannot be read as a zip"):
        run(manifest, "--from", bad)
    site.put("/bad.aar", Resource(runtime.aar()))
    assert run(manifest, "--from", bad)[0] == 0
    empty = site.put("/empty.aar", Resource())
    with pytest.raises(MachineError, match="came empty"):
        run(manifest, "--from", empty)
    with pytest.raises(UsageError, match="plain http"):
        run(manifest, "--from", "http://example.invalid/qnn.aar")


def test_a_wheel_is_read_and_never_run(tmp_path: Path) -> None:
    path = tmp_path / "any.whl"
    path.write_bytes(runtime.wheel(runtime.libraries()))
    code, said = run(one_chip(tmp_path), "--from", path)
    assert (code, rules(said)) == (0, [])
    assert "Qualcomm_LICENSE.pdf" in said["files"]
    path.write_bytes(runtime.wheel(runtime.libraries(), "2.x"))
    with pytest.raises(UsageError, match="does not say of which QAIRT it is"):
        run(one_chip(tmp_path), "--from", path)


@pytest.mark.parametrize("cut", [100, 2000, -10])
def test_cut_short(tmp_path: Path, cut: int) -> None:
    for name, content in (("q.aar", runtime.aar()), ("q.whl", runtime.wheel(runtime.libraries()))):
        (tmp_path / name).write_bytes(content[:cut])
        with pytest.raises(UsageError, match="cannot be read as a zip"):
            run(one_chip(tmp_path), "--from", tmp_path / name)


@pytest.mark.parametrize("name", ["../evil.so", "/etc/evil", "jni/arm64-v8a/../../evil.so", "a\\b", "C:evil"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "q.aar"
    path.write_bytes(runtime.aar(more={name: b"x"}))
    with pytest.raises(UsageError, match="would land outside of its folder"):
        run(one_chip(tmp_path), "--from", path)
    assert not list(tmp_path.rglob("evil*"))


def test_sources_that_are_none(tmp_path: Path) -> None:
    manifest = one_chip(tmp_path)
    with pytest.raises(UsageError, match="there is no nowhere"):
        run(manifest, "--from", "nowhere")
    with pytest.raises(UsageError, match="there is no wheel for android"):
        run(manifest, "--from", "pypi")
    with pytest.raises(UsageError, match="is for Android, not for linux-aarch64"):
        run(manifest, "--from", "maven", platform="linux-aarch64")
    with pytest.raises(UsageError, match=r"no onnxruntime-qnn is known to have QAIRT 2\.49\.0"):
        run(manifest, "--from", "pypi", platform="linux-aarch64")
    with pytest.raises(UsageError, match="is no version of onnxruntime-qnn"):
        run(manifest, "--from", "pypi==--evil", platform="linux-aarch64")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ToolMissing, match="is no QAIRT SDK"):
        run(manifest, "--from", tmp_path / "folder")
    (tmp_path / "q.zip").write_bytes(runtime.zipped({"a.txt": b"x"}))
    with pytest.raises(UsageError, match="holds no run-time libraries"):
        run(manifest, "--from", tmp_path / "q.zip")


def test_the_real_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both platforms' wheels by pip, from its cache where it has them, and kept in ours."""
    real = "v2.51.0.260929181845"
    manifest = write_manifest(tmp_path, entry("a", "SM8550", qairt=real), entry("b", "SC8380XP", qairt=real))
    code, said = run(manifest, "--archive", "folder", platform="windows-arm64")
    assert (code, rules(said), said["version"]) == (0, [], "2.51.0.260929")
    assert {"QnnHtp.dll", "QnnHtpV73Stub.dll", "libQnnHtpV73Skel.so", "libqnnhtpv73.cat"} < set(said["files"])
    # It is in the cache now: pip would fail.
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    code, said = run(write_manifest(tmp_path, entry("a", "SM8750", qairt=real)), platform="windows-arm64")
    assert (code, rules(said)) == (1, ["runtime-missing"])
    assert "it is for v68, v73, v81" in said["findings"][0]["message"]
    with pytest.raises(UsageError, match=r"has QAIRT 2\.51\.0, the binaries are of 2\.49\.0"):
        run(one_chip(tmp_path), "--from", "pypi==2.7.0", platform="windows-arm64")
