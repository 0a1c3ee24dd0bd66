"""release.yml run for real by act: compiled, bundled, attested, and published to stand-ins for GitHub and the Hub."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

import pytest

from qnnci.process import run
from tests.actions.test_compile_workflow import Ran, once, run_act
from tests.ship import hub_server
from tests.ship.release_server import TOKEN, serving

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="the embedded compiler needs Python 3.11")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return once(tmp_path_factory, "publish-workflow", publish)


def publish(work: Path) -> str:
    (work / "releases").mkdir()
    with serving() as github, hub_server.serving() as hub:
        given = ("--input", f"github={github.root}", "--secret", f"TOKEN={TOKEN}", "--env", f"HF_ENDPOINT={hub.root}")
        given += ("--secret", f"HF_TOKEN={hub_server.TOKEN}")
        log = run_act(work, "releaser.yml", *given, "--env", f"TEST_ATTESTED={work / 'attested'}")
        for path, body in hub.repos["org/model"].bodies().items() if hub.repos else ():
            (work / "hub" / path).parent.mkdir(parents=True, exist_ok=True)
            (work / "hub" / path).write_bytes(body)
        told = [{"tag": each.tag, "draft": each.draft, "about": each.about} for each in github.releases]
        (work / "releases.json").write_text(json.dumps(told))
        for release in github.releases:
            for asset in release.assets:
                (work / "releases" / asset.name).write_bytes(asset.body)
    return log


def test_what_passed_is_bundled_and_published(ran: Ran) -> None:
    releases, files = ran.artifacts.parent / "releases.json", ran.artifacts.parent / "releases"
    assert ran.outcome("Good", "Publish", "publish") == "success", ran.said("Good", "Publish")
    (made,) = json.loads(releases.read_text())
    assert (made["tag"], made["draft"], "pair: 6 of 6" in made["about"]["body"]) == ("v1.2", False, True), made
    socs = ("SM8550", "SM8650", "SM8750")
    archives = {path.name for path in files.glob("*.tar.bz2")}
    assert {path.name for path in files.iterdir()} == {
        *archives,
        "LICENSE",
        "SHA256SUMS",
        "manifest.json",
        "sbom.cdx.json",
    }
    assert len(archives) == len([name for name in archives if any(soc in name for soc in socs)]) == 3
    entries = json.loads((files / "manifest.json").read_text())["entries"]
    held = set()
    for name in archives:
        with tarfile.open(fileobj=io.BytesIO((files / name).read_bytes())) as archive:
            held |= {hashlib.sha256(archive.extractfile(each).read()).hexdigest() for each in archive if each.isfile()}
    assert {entry["sha256"] for entry in entries} <= held


def test_every_archive_is_attested(ran: Ran) -> None:
    attested = (ran.artifacts.parent / "attested").read_text().split()
    archives = {path.name for path in (ran.artifacts.parent / "releases").glob("*.tar.bz2")}
    assert {Path(line).name for line in attested} == {*archives, "sbom.cdx.json"}


def test_the_caller_reads_where_it_is(ran: Ran) -> None:
    said = [event["msg"] for event in ran.events if event.get("stepID") == ["after"] and event.get("raw_output")]
    ((release, page),) = [line.rsplit(" ", 1) for line in said]
    assert release == "pass https://github.com/org/model/releases/tag/v1.2"
    assert page.endswith("/org/model\n")


def test_what_fails_is_not_published(ran: Ran) -> None:
    assert ran.code == 1
    # Of both calls: act names a job after the call that is next to it.
    ended = [event for event in ran.events if event.get("stepID") == ["gate"] and event.get("stage") == "Main"]
    assert [event["stepResult"] for event in ended if "stepResult" in event] == ["success", "failure"]
    assert ran.outcome("Strict", "Publish", "publish") == "skipped"
    assert (
        ran.jobs("Strict").count("Hugging Face") == 0 or ran.outcome("Strict", "Hugging Face", "publish") == "skipped"
    )


def test_the_binaries_are_on_the_hub_with_a_card(ran: Ran) -> None:
    assert ran.outcome("Good", "Hugging Face", "publish") == "success", ran.said("Good", "Hugging Face")
    folder = ran.artifacts.parent / "hub"
    told = json.loads((folder / "manifest.json").read_text())
    assert len(told["entries"]) == 6
    for entry in told["entries"]:
        assert entry["binary"].startswith(f"{entry['graph']}/{entry['soc']}/")
        assert hashlib.sha256((folder / entry["binary"]).read_bytes()).hexdigest() == entry["sha256"]
        assert (folder / entry["context_model"]).is_file()
    assert (folder / "LICENSE").read_text() == "MIT\n"
    card = (folder / "README.md").read_text()
    assert "license: mit\n" in card
    assert card.count("_v75.bin](") == 2
    checked = run([sys.executable, "-m", "qnnci", "manifest", "check", str(folder)], timeout=120)
    assert checked.code == 0, checked.output


def test_the_token_is_in_no_log(ran: Ran) -> None:
    assert ran.events
    log = (ran.artifacts.parent / "log").read_text()
    assert TOKEN not in log
    assert hub_server.TOKEN not in log
