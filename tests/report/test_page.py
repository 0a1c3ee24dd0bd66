"""report.html without a browser: well formed, safe with whatever a model says, small, and its charts true."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report.pages import SOCS, entry, manifest, page, with_log

from qnnci.manifest import StageTime
from qnnci.report import charts
from qnnci.report.excerpts import HEAD, TAIL, WIDTH, Logs
from qnnci.report.page import render

VOID = frozenset({"meta", "link", "input"})
ALONE = frozenset({"rect", "line", "circle"})
HOSTILE = (
    "</script><script>alert(1)</script>",
    "</style></title></textarea>--><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x=\'',
    "{{ 7 * 7 }}{% raw %}&lt;&amp;&#60;",
    "\u202egnp.exe\u2066\u2028\x00\x1b[31m\x07\udc80\r\n\t",
    "javascript:alert(1)",
    'https://h" onclick="alert(1)',
    "x" * 3000,
)
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40), st.text(alphabet="<>&\"'`/={}%!- \n", max_size=40))


class Parsed(HTMLParser):
    """The page as tags with their attributes' names; every tag that is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        names = tuple(name for name, _ in attrs)
        assert len(set(names)) == len(names)
        self.tags.append((tag, names))
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in ALONE
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] in self.blocks:
            self.blocks[self._open[-1]].append(data)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


def test_the_page_is_well_formed_and_what_it_refers_to_is_there(logs):
    parsed = Parsed(page(logs))
    ids = [given["id"] for _, given in parsed.attributes if "id" in given]
    assert len(set(ids)) == len(ids)
    for _, have in parsed.attributes:
        wanted = (have.get("aria-labelledby") or "").split()
        if (have.get("href") or "").startswith("#"):
            wanted.append(str(have["href"])[1:])
        assert set(wanted) <= set(ids)
    scopes = {given.get("scope") for tag, given in parsed.attributes if tag == "th"}
    assert scopes == {"col", "row"}
    tables, captions = ([tag for tag, _ in parsed.tags].count(name) for name in ("table", "caption"))
    assert tables == captions == 8


def test_nothing_comes_from_anywhere_else_and_only_our_own_script_runs(logs):
    parsed = Parsed(page(logs))
    policy = next(str(given["content"]) for _, given in parsed.attributes if "http-equiv" in given)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        text = "".join(parsed.blocks[kind])
        assert f"{kind}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}';" in policy
    for tag, have in parsed.attributes:
        assert not [name for name in have if name.startswith("on") or name in {"style", "src", "srcset", "action"}]
        if tag in {"a", "link"}:
            assert str(have["href"]).startswith(("#", "data:,"))


@given(texts)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_others_say_is_text_and_changes_nothing_of_the_page(logs, text):
    hostile = page(logs, text or "x")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", hostile)
    # A name that ends in a log or begins with https:// may lead there, and backticks make code; all else is the same.
    ours = [each for each in Parsed(hostile).tags if each[0] not in {"a", "code"}]
    assert ours == [each for each in Parsed(page(logs, "x")).tags if each[0] not in {"a", "code"}]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_graphs_and_chips_stay_names(logs, text):
    hostile = page(logs, text, graphs=(text, f"{text}2"), socs=(text, f"2{text}"))
    plain = page(logs, "x", graphs=("a", "b"), socs=("c", "d"))
    tags = [[tag for tag, _ in Parsed(made).tags if tag not in {"a", "code"}] for made in (hostile, plain)]
    assert tags[0] == tags[1]


def test_a_run_is_linked_only_where_it_is_an_address():
    def links(by: str) -> list[str]:
        build = manifest().model_copy(update={"entries": (entry("enc", "SM8550", built_by=by),)})
        made = Parsed(render(build, Logs([], 0)))
        return [str(given["href"]) for tag, given in made.attributes if tag == "a" and given["href"][0] != "#"]

    assert links("https://github.com/o/r/actions/runs/1") == ["https://github.com/o/r/actions/runs/1"]
    assert links("javascript:alert(1)") == links("local") == []


def test_200_targets_stay_small(logs):
    graphs = tuple(f"encoder-of-a-long-name-{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(50))
    socs = ("SM8450", *SOCS)
    build = manifest("what is said, at some length", graphs=graphs, socs=socs)
    many = tuple(
        each.model_copy(update={"graph": graph, "soc": soc, "message": f"{each.message} {word}", "rule": rule})
        for graph in graphs
        for soc, word in zip(socs, ("once", "twice", "often", "always"), strict=True)
        for rule, each in zip(("cpu-fallback", "parity", "spill-fill"), build.findings, strict=True)
    )
    made = render(build.model_copy(update={"findings": many}), with_log(logs / "many", "words " * 30))
    assert len(build.targets) == 200
    assert len(made.encode()) < 2_000_000
    assert "more are in <code>manifest.json</code>" in made


def test_an_empty_build_has_a_page():
    empty = manifest().model_copy(update={"entries": (), "findings": (), "stages": (), "targets": (), "settings": {}})
    made = render(empty, Logs([], 0))
    Parsed(made)
    for said in ("Nothing was asked for", "Nothing was found", "There is no binary", "No binary was run"):
        assert said in made


def test_every_text_has_contrast(logs):
    """WCAG AA: 4.5 for text, 3 for parts of charts, in both colour schemes."""
    style = "".join(Parsed(page(logs)).blocks["style"])
    for scheme in re.findall(r":root \{(.*?)\}", style, re.DOTALL):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", scheme))
        for ground in ("back", "raised", "mark"):
            for text in ("text",) if ground == "mark" else ("text", "soft", "link", "good", "bad", "warn", "note"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        for part in ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "good", "bad", "text", "focus"):
            assert contrast(colours[part], colours["back"]) >= 3, part


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# logs


def test_a_long_log_is_cut_in_the_middle_and_the_lines_of_a_finding_are_shown(tmp_path):
    excerpt = with_log(tmp_path, "\x1b[1mwords\x1b[0m " + "w" * 500).excerpt("elsewhere/logs/compile.log", 150)
    assert excerpt.name == "logs/compile.log"
    assert (excerpt.total, len(excerpt.head), len(excerpt.tail)) == (300, HEAD, TAIL)
    assert excerpt.left_out == 300 - HEAD - TAIL
    assert [line.number for line in excerpt.around] == [*range(147, 154)]
    assert [line.number for line in excerpt.around if line.marked] == [150]
    assert excerpt.around[3].text.startswith("line 150 words wwww")
    assert len(excerpt.around[3].text) == WIDTH + 1


def test_only_logs_inside_of_a_build_are_read(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/secret.log").write_text("secret")
    build = tmp_path / "build"
    (build / "logs").mkdir(parents=True)
    (build / "logs/link.log").symlink_to(tmp_path / "logs/secret.log")
    (build / "logs/page.txt").write_text("no log")
    logs = Logs([build], 1000)
    for file in ("../logs/secret.log", "logs/link.log", "logs/page.txt", "logs/none.log", "", "a\x00/b.log"):
        assert logs.excerpt(file, 1) is None


def test_no_more_is_given_away_than_there_is_room_for(tmp_path):
    logs = with_log(tmp_path, "words")
    logs._room = 10
    assert logs.excerpt("logs/compile.log", 1)
    assert logs.excerpt("logs/compile.log", 1) is None


# charts

figures = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))
sizes = st.one_of(st.none(), st.integers(0, 1 << 50))


@given(st.lists(st.tuples(st.integers(1, 1 << 50), sizes, sizes, sizes, sizes), max_size=5))
@settings(max_examples=25, deadline=None)
def test_a_stack_has_no_gap_and_ends_where_its_sum_is(rows):
    names = ("bytes", "const_bytes", "op_data_bytes", "spill_fill_bytes", "io_bytes")
    entries = [entry("g", "s", **dict(zip(names, row, strict=True))) for row in rows]
    chart = charts.memory(entries)
    for bar, each in zip(chart.bars, entries, strict=True):
        for one, other in pairwise(bar.parts):
            assert other.at == pytest.approx(one.at + one.width, abs=0.01)
        assert all(0 <= part.at <= 100 and 0 <= part.width <= 100 for part in bar.parts)
        assert 0 <= bar.mark <= 100
        if bar.parts:
            end = bar.parts[-1].at + bar.parts[-1].width
            assert bar.mark < 1 or end == pytest.approx(charts.Memory.of(each).total / each.bytes * bar.mark, abs=0.1)


@given(figures, st.one_of(st.none(), st.floats(-1, 1)))
@settings(max_examples=25, deadline=None)
def test_a_dot_is_inside_of_its_strip(snr, cosine):
    build = entry("g", "s")
    outputs = {"o": build.parity.outputs["x"].model_copy(update={"snr_db": snr, "cosine": cosine})}
    (strip,) = charts.strips(
        [build.model_copy(update={"parity": build.parity.model_copy(update={"outputs": outputs})})], {}
    )
    assert all(0 <= dot.at <= 100 for dot in (*strip.snr, *strip.cosine))


def test_the_worst_output_comes_first_and_gates_are_where_the_project_says():
    strips = charts.strips(manifest().entries, manifest().settings)
    assert [strip.label for strip in strips] == ["enc: x", "dec: x"]
    assert strips[0].snr_text == "10.0 dB"
    assert strips[0].snr_gates == (12 / charts.DECIBELS * 100,)
    assert [dot.kind for dot in strips[0].snr] == ["bad", "good", "good"]
    for broken in ({}, {"graphs": []}, {"graphs": {"enc": {"gates": {"parity": [{"metric": "snr_db", "min": "x"}]}}}}):
        assert charts.strips(manifest().entries, broken)[0].snr_gates == ()


def stage(began: str, state: str = "done", name: str = "compile") -> StageTime:
    return StageTime(graph="g", stage=name, state=state, began=f"2026-12-01T{began}+00:00", seconds=30)


def test_the_timeline_is_of_the_newest_build():
    found = charts.timeline(
        [stage("10:00:00"), stage("10:00:30"), stage("08:00:00", "cached"), stage("09:59:59", name="source")]
    )
    assert (found.began.isoformat()[11:19], found.seconds, found.earlier) == ("09:59:59", 61, 1)
    (bar,) = found.chart.bars
    assert [round(part.at) for part in bar.parts] == [0, 1, 39]
    kept = charts.timeline([stage("08:00:00", "cached"), stage("08:00:30", "cached"), stage("10:00:00", name="source")])
    assert kept.earlier == 2
    assert charts.timeline([]) is charts.timeline([stage("never")]) is None


@given(st.floats(1e-3, 1e12))
def test_an_axis_ends_behind_the_most_at_a_round_value(most):
    ticks, end = charts.axis(most, str)
    assert end >= most * (1 - 1e-9)
    assert most > end / 4
    assert [at for at, _ in ticks] == sorted({at for at, _ in ticks})
    assert (ticks[0][0], ticks[-1][0]) == (0, 100)
    assert 2 <= len(ticks) <= 6
