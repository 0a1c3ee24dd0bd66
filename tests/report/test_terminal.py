"""What a terminal shows: the live display, and the table of results, wide and narrow."""

import io

import pytest
from rich.console import Console

from qnnci.build.stage import Event
from qnnci.manifest import Entry, Figures, Manifest, Parity
from qnnci.report import terminal

GRAPH = "a_rather_long_name_of_a_graph"
FIGURES = Figures(cosine=0.99553, snr_db=-20.4, max_abs=0.1, max_rel=0.1)


@pytest.fixture
def narrow(monkeypatch):
    """A console of 80 columns in place of the terminal."""
    console = Console(file=io.StringIO(), width=80, soft_wrap=True, force_terminal=True, color_system=None)
    monkeypatch.setattr(terminal, "console", lambda **_: console)
    return console


def display(narrow, *events):
    with terminal.progress(4, live=True) as listen:
        for event in events:
            listen(event)
        with narrow.capture() as captured:
            narrow.print(listen.bar.get_renderable())
        return captured.get().replace("\x1b[2K", ""), listen.bar.finished


def test_a_narrow_terminal_cuts_what_runs_and_not_the_figures(narrow):
    running = [Event(f"{GRAPH}-{soc}", "compile", "start") for soc in ("SM8550", "SM8650")]
    shown, _ = display(narrow, *running)
    assert "0/4" in shown
    assert "0:00:0" in shown
    assert "…" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_the_display_goes_on_until_the_last_verification(narrow):
    events = [Event(f"a-{soc}", stage, "done", 1.0) for stage in ("compile", "verify") for soc in ("SM8550", "SM8650")]
    assert "2/4" in display(narrow, *events[:2])[0]
    assert not display(narrow, *events[:3])[1]
    assert display(narrow, *events)[1]


def test_a_narrow_table_folds_the_name_and_keeps_every_figure(narrow):
    terminal.show_results(manifest(), narrow)
    shown = narrow.file.getvalue()
    for figure in ("SM8550", "fp16", "12.3 MB", "8.0 MB", "3.8 MB", "0.99553", "-20.4 dB", "4.18 s"):
        assert figure in shown
    rows = [line for line in shown.splitlines() if not line.startswith("cosine")]
    assert len(rows) > 2
    assert all(len(row) <= 80 for row in rows)
    assert GRAPH in "".join(row[2 : row.index("SM") if "SM" in row else None].strip() for row in rows[1:])


def manifest():
    entry = Entry.model_construct(
        graph=GRAPH,
        soc="SM8550",
        dsp_arch="v73",
        precision="fp16",
        passed=True,
        bytes=int(12.3 * (1 << 20)),
        vtcm_bytes=8 << 20,
        spill_fill_bytes=int(3.8 * (1 << 20)),
        parity=Parity(inputs="seeded (0)", samples=4, outputs={"y": FIGURES}),
        compile_seconds=4.18,
    )
    return Manifest.model_construct(entries=(entry,), findings=())
