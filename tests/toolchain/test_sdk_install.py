from __future__ import annotations

import errno
import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.command import qnnci
from support.file_server import Resource, Site, serving
from support.sdk_zip import FILES, VERSION, entry, unpacked, zipped

from qnnci import http
from qnnci.errors import ExitCode, MachineError, UsageError
from qnnci.toolchain import sdk, sdk_install, sdk_sources
from qnnci.toolchain.sdk_install import Installed, Pin

ZIP = zipped()
SHA = hashlib.sha256(ZIP).hexdigest()
Install = Callable[..., Installed]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)
    monkeypatch.setenv("QNNCI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def install(cache: Path) -> Install:
    def run(version: str | None = VERSION, **options: Any) -> Installed:
        return sdk_install.install(version, cache=cache, **{"accepted": True, **options})

    return run


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(http, "BACKOFF", 0.001)
    with serving() as running:
        yield running


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "sdk.zip"
    path.write_bytes(ZIP)
    return path


def standing(cache: Path) -> list[str]:
    """What stands in the cache under a name that anyone looks for."""
    return sorted(path.name for path in (cache / "sdk").iterdir() if path.is_dir() and not path.name.startswith("."))


def test_the_licence_comes_first(install: Install, cache: Path) -> None:
    with pytest.raises(UsageError, match=r"LICENSE\.pdf") as caught:
        install(accepted=False)
    assert "--accept-license" in caught.value.hint
    assert "accept-qairt-license: true" in caught.value.hint
    assert not cache.exists()


def test_from_a_zip(install: Install, archive: Path, cache: Path) -> None:
    done = install(None, source=str(archive))
    assert done == Installed(sdk.Sdk(cache / "sdk" / VERSION, VERSION), SHA, "new", fresh=True)
    assert done.sdk.tool("qnn-onnx-converter").stat().st_mode & 0o777 == 0o755
    assert sdk.find() == done.sdk
    assert not (done.sdk.root / "docs").exists()
    assert list((cache / "sdk").glob(".*")) == []
    assert install(None, source=str(archive)) == Installed(done.sdk, SHA, "known", fresh=False)


def test_from_a_folder(install: Install, cache: Path, tmp_path: Path) -> None:
    root = unpacked(tmp_path / "unzipped" / "qairt" / VERSION)
    done = install(None, source=str(tmp_path / "unzipped"))
    assert done == Installed(sdk.Sdk(cache / "sdk" / VERSION, VERSION), "", "none", fresh=True)
    assert sdk.find().root.resolve() == root
    assert not install(source=str(root)).fresh
    with pytest.raises(UsageError, match=r"but 2\.41\.0\.251128 was asked for"):
        install("2.41.0.251128", source=str(root))
    shutil.rmtree(root)
    assert sdk.installed(cache) == []


def test_a_folder_and_a_zip_replace_each_other(install: Install, archive: Path, tmp_path: Path) -> None:
    root = unpacked(tmp_path / VERSION)
    install(source=str(archive))
    assert install(source=str(root)).sdk.root.is_symlink()
    assert not install(source=str(archive)).sdk.root.is_symlink()
    assert (root / "docs/index.html").exists(), "what was linked stays"


def test_from_a_server(install: Install, site: Site, cache: Path) -> None:
    site.put(f"/v{VERSION}.zip", Resource(ZIP, {"ETag": '"v1"'}))
    done = install(source=f"{site.root}/v{{version}}.zip")
    assert (done.sha256, done.trust, done.fresh) == (SHA, "new", True)
    before = len(site.asked)
    again = install(source=f"{site.root}/v{{version}}.zip")
    assert (again.sha256, again.trust, again.fresh) == (SHA, "known", False)
    assert len(site.asked) == before, "what is there needs no network"
    assert list((cache / "sdk").glob(".*")) == []


def test_from_the_mirror_and_another_repo(install: Install, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", site.root)
    headers = {"ETag": f'"{SHA}"', "X-Repo-Commit": "c0ffee00" * 5}
    for repo in ("csukuangfj/qnn-toolkit", "org/other"):
        site.put(f"/{repo}/resolve/main/v{VERSION}.zip", Resource(ZIP, headers))
    said: list[str] = []
    assert install(say=said.append).sha256 == SHA
    assert "from hf://csukuangfj/qnn-toolkit/v2.40.0.251030.zip" in said[0]
    shutil.rmtree(install().sdk.root)
    assert install(source="hf://org/other").trust == "known"
    fetched = [request.path for request in site.gets() if "/resolve/" in request.path]
    assert [path.split("/")[1] for path in fetched] == ["csukuangfj", "org"]


def test_the_vendor_s_second_host_is_tried(install: Install, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_sources, "VENDOR_HOSTS", (f"{site.root}/one", f"{site.root}/two"))
    place = f"/two/sdks/Qualcomm_AI_Runtime_Community/All/{VERSION}/v{VERSION}.zip"
    site.put(place, Resource(ZIP))
    assert install(source="vendor").sha256 == SHA
    assert [request.path for request in site.gets()] == [place.replace("two", "one"), place]
    with pytest.raises(UsageError, match="no such file"):
        install("2.40.1.251119", source="vendor")


@pytest.mark.parametrize(
    ("version", "path"),
    [
        ("2.31.0.250130", "qualcomm_neural_processing_sdk/v2.31.0.250130.zip"),
        ("2.9.0.230101", "qualcomm_neural_processing_sdk/v2.9.0.230101.zip"),
        ("2.32.0.250228", "sdks/Qualcomm_AI_Runtime_Community/All/2.32.0.250228/v2.32.0.250228.zip"),
    ],
)
def test_the_vendor_s_addresses(version: str, path: str) -> None:
    assert sdk_sources.addresses("vendor", version) == (
        f"https://softwarecenter.qualcomm.com/api/download/software/{path}",
        f"https://apigwx-aws.qualcomm.com/qsc/public/v1/api/download/software/{path}",
    )


def test_addresses_of_other_forms() -> None:
    assert sdk_sources.addresses("hf://org/repo@dev", "1.2.3.4") == ("hf://org/repo/v1.2.3.4.zip@dev",)
    assert sdk_sources.addresses("hf://org/repo/a/{version}.zip", "1.2.3.4") == ("hf://org/repo/a/1.2.3.4.zip",)
    assert sdk_sources.addresses("some/folder", "1.2.3.4") == ()
    with pytest.raises(UsageError, match="ftp"):
        sdk_sources.addresses("ftp://x/y.zip", "1.2.3.4")


@pytest.mark.parametrize("version", ["2.40", "2.40.0", "latest", "../../etc", "2.40.0.251030/..", "v2.40.0.251030"])
def test_a_version_has_four_parts(install: Install, version: str) -> None:
    with pytest.raises(UsageError, match="whole version"):
        install(version)


def test_wrong_uses_and_places(install: Install, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="known are ort, model-lib, dlc"):
        install(needs=["gpu"])
    with pytest.raises(UsageError, match="there is no "):
        install(source=str(tmp_path / "nowhere.zip"))
    with pytest.raises(UsageError, match="holds no QAIRT SDK"):
        install(source=str(tmp_path))


# proof


def test_a_pinned_zip_is_held_to_its_digest(install: Install, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_install, "pins", lambda: {VERSION: Pin(len(ZIP), SHA, "a maintainer")})
    assert install(source=str(archive)).trust == "pinned"
    monkeypatch.setattr(sdk_install, "pins", lambda: {VERSION: Pin(len(ZIP), "0" * 64, "a maintainer")})
    with pytest.raises(UsageError, match=f"has sha256 {SHA}, but 0{{64}} is known from a maintainer"):
        install(source=str(archive))


def test_the_pins_are_well_formed() -> None:
    assert len(sdk_install.pins()) >= 3
    for version, pin in sdk_install.pins().items():
        assert sdk.Sdk(Path(), version).numbers > (2, 31)
        assert len(bytes.fromhex(pin.sha256)) == 32
        assert pin.bytes > 1e9
        assert pin.source


def test_an_unknown_zip_is_recorded_and_demanded_from_then_on(install: Install, archive: Path, cache: Path) -> None:
    install(source=str(archive))
    record = json.loads((cache / "sdk" / f"{VERSION}.json").read_text())
    assert record == {"version": VERSION, "sha256": SHA, "bytes": len(ZIP), "source": "sdk.zip"}
    shutil.rmtree(cache / "sdk" / VERSION)
    archive.write_bytes(zipped({**FILES, "lib/python/evil.py": b""}))
    with pytest.raises(UsageError, match="its first use here") as caught:
        install(source=str(archive))
    assert f"remove {cache}/sdk/{VERSION}.json" in caught.value.hint
    assert standing(cache) == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"<html>not found</html>", "web page"),
        (ZIP[:2000], "cut short: 2000 bytes"),
        (zipped(version="2.41.0.251128"), "but 2.40.0.251030 was asked for"),
        (zipped(more={entry("../evil"): b""}), "outside"),
        (zipped({**FILES, "sdk.yaml": b"version: 2.41.0"}), r"sdk\.yaml says"),
    ],
)
def test_what_is_refused_is_gone_and_fetched_anew(
    install: Install, site: Site, cache: Path, body: bytes, says: str
) -> None:
    url = site.put("/sdk.zip", Resource(body, {"ETag": '"bad"'}))
    with pytest.raises(UsageError, match=says):
        install(source=url)
    assert standing(cache) == []
    assert [path.name for path in (cache / "sdk").iterdir()] == [f"{VERSION}.lock"]
    site.put("/sdk.zip", Resource(ZIP, {"ETag": '"good"'}))
    assert install(source=url).fresh


# use by use


def test_a_second_use_adds_what_it_needs(install: Install, archive: Path) -> None:
    root = install(source=str(archive), needs=["ort"]).sdk.root
    assert not (root / "bin").exists()
    assert install(source=str(archive), needs=["dlc"]).fresh
    assert (root / "bin/x86_64-linux-clang/qnn-onnx-converter").exists()
    assert not install(source=str(archive), needs=["ort"]).fresh
    assert install(source=str(archive), needs=["model-lib"]).fresh
    assert not install(source=str(archive), needs=["dlc", "ort"]).fresh


@pytest.mark.parametrize("note", [b"", b"[]", b'{"needs": 5}', b'{"needs": ["dlc"], "sha256": []}', b"[" * 100_000])
def test_a_damaged_note_means_to_do_it_again(install: Install, archive: Path, note: bytes) -> None:
    root = install(source=str(archive)).sdk.root
    (root / sdk_install.MARK).write_bytes(note)
    assert install(source=str(archive)).fresh


# machines that fail


def test_space_is_asked_for_first(install: Install, site: Site, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10_000))
    url = site.put("/sdk.zip", Resource(ZIP))
    with pytest.raises(MachineError, match=r"needs about .* GB on the disk of .*cache/sdk, which has 0\.0 GB"):
        install(source=url)
    assert site.gets() == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(MachineError, match="needs about") as caught:
        install(source=str(archive))
    assert "QNNCI_CACHE" in caught.value.hint


def test_a_disk_that_fills_up(install: Install, archive: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfileobj", full)
        with pytest.raises(MachineError, match="No space left"):
            install(source=str(archive))
    assert standing(cache) == []
    assert list((cache / "sdk").glob(".*")) == []
    assert install(source=str(archive)).fresh


def test_installers_at_once_download_once(install: Install, site: Site) -> None:
    second = threading.Event()

    def wait_for_a_second() -> None:
        if len(site.gets()) > 1:
            second.set()
        second.wait(0.3)

    url = site.put("/sdk.zip", Resource(ZIP, on_get=wait_for_a_second))
    said: list[str] = []
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: install(source=url, say=said.append), range(3)))
    assert sorted(each.fresh for each in done) == [False, False, True]
    assert {each.sha256 for each in done} == {SHA}
    assert len(site.gets()) == 1
    assert any("another process installs" in text for text in said)


_KILLED = """
import sys, os, signal
from pathlib import Path
from qnnci.toolchain import sdk_archive, sdk_install
real = sdk_archive.shutil.copyfileobj
count = 0
def copy(*args):
    global count
    real(*args)
    count += 1
    if count == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
sdk_archive.shutil.copyfileobj = copy
sdk_install.install(None, source=sys.argv[1], accepted=True, cache=Path(sys.argv[2]))
"""


@pytest.mark.parametrize("after", [1, 7])
def test_killed_while_unpacking(install: Install, archive: Path, cache: Path, after: int) -> None:
    child = subprocess.run([sys.executable, "-c", _KILLED, archive, cache, str(after)], check=False)
    assert child.returncode == -signal.SIGKILL
    assert list((cache / "sdk").glob(f".scratch-*/{VERSION}/*"))
    assert standing(cache) == []
    assert install(source=str(archive)).fresh
    assert list((cache / "sdk").glob(".*")) == []


def test_killed_while_downloading(install: Install, site: Site, cache: Path) -> None:
    large = zipped({**FILES, "docs/blob": random.Random(0).randbytes(1 << 20)})
    resource = Resource(large, {"ETag": '"v1"'}, stall_after=600_000)
    url = site.put("/sdk.zip", resource)
    code = "import sys; from pathlib import Path; from qnnci.toolchain.sdk_install import install; "
    code += f"install({VERSION!r}, source=sys.argv[1], accepted=True, cache=Path(sys.argv[2]))"
    child = subprocess.Popen([sys.executable, "-c", code, url, str(cache)])
    deadline = time.monotonic() + 60
    while sum(part.stat().st_size for part in cache.rglob("sdk.zip")) < 500_000:
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert standing(cache) == []
    resource.stall_after = None
    assert install(source=url).sha256 == hashlib.sha256(large).hexdigest()
    assert int(site.gets()[-1].headers["Range"].removeprefix("bytes=").rstrip("-")) >= 500_000


# the verbs


def test_the_verbs(tmp_path: Path, archive: Path) -> None:
    env = {"QNNCI_CACHE": str(tmp_path / "c"), "QNN_SDK_ROOT": ""}
    refused = qnnci("sdk", "install", "--from", archive, "--no-python", cwd=tmp_path, **env)
    assert (refused.code, "LICENSE.pdf" in refused.said) == (ExitCode.USAGE, True)
    missing = qnnci("sdk", "path", cwd=tmp_path, **env)
    assert (missing.code, "qnnci sdk install 2.40" in missing.said) == (ExitCode.TOOL_MISSING, True)
    accepted = {**env, "QNNCI_INPUT_ACCEPT_QAIRT_LICENSE": "true", "QNNCI_INPUT_SDK_SOURCE": str(archive)}
    done = qnnci("sdk", "install", "--no-python", cwd=tmp_path, **accepted)
    assert done.code == 0, done.said
    assert f"{SHA} (not in the table of qnnci" in done.said
    assert f"{tmp_path}/c/sdk/{VERSION}/LICENSE.pdf" in done.said
    found = qnnci("sdk", "path", cwd=tmp_path, **env)
    assert (found.code, found.said) == (0, f"{tmp_path}/c/sdk/{VERSION}\n")
    assert qnnci("sdk", "path", "--version", "2.44", cwd=tmp_path, **env).code == ExitCode.TOOL_MISSING
    assert qnnci("sdk", "path", "--python", cwd=tmp_path, **env).code == ExitCode.TOOL_MISSING


@pytest.mark.parametrize("kind", ["file", "read-only"])
def test_a_cache_that_cannot_be(install: Install, archive: Path, cache: Path, kind: str) -> None:
    cache.mkdir()
    (cache / "sdk").write_text("a file") if kind == "file" else (cache / "sdk").symlink_to("/proc/self")
    with pytest.raises((MachineError, OSError)):
        install(source=str(archive))
    assert not sdk.installed(cache)
