"""report.html opened in headless Chromium: clicked through by keyboard, in both colour schemes, on a phone's width."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report.pages import page as made
from support.browser import browser

sync_api = pytest.importorskip("playwright.sync_api")

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e" + "w" * 300


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    path = browser()
    if path is None:
        pytest.skip("no Chromium here, and npm brings none: install one, or name it with QNNCI_BROWSER")
    with sync_api.sync_playwright() as play:
        started = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a page's text; it may load nothing but itself, and say nothing on the console."""
    said: list[str] = []
    contexts = []

    def open_page(text: str, *, width: int = 1280, **how: Any) -> Any:
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        context = chromium.new_context(viewport={"width": width, "height": 800}, **how)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: said.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [each for each in said if not each.startswith("data:")] == []


def column(page: Any, name: str) -> list[str]:
    return [cell.strip() for cell in page.locator(f".results tbody tr:visible [data-name='{name}']").all_inner_texts()]


def tab_to(page: Any, what: str) -> None:
    """Press Tab until this has the focus: whoever has no mouse gets there too."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("what => document.activeElement.matches(what)", what):
            return
    raise AssertionError(f"{what} is not to be reached by Tab")


def test_the_table_is_sorted_by_keyboard(opened: Any, tmp_path: Path) -> None:
    page = opened(made(tmp_path))
    header = page.get_by_role("columnheader", name="size")
    tab_to(page, ".results thead th:nth-child(6) button")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "3px"
    page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    assert column(page, "size") == ["1 MiB", "2 MiB", "3 MiB", "4 MiB", "5 MiB", "—"]
    page.keyboard.press("Space")
    assert header.get_attribute("aria-sort") == "descending"
    assert column(page, "size") == ["5 MiB", "4 MiB", "3 MiB", "2 MiB", "1 MiB", "—"]
    page.get_by_role("button", name="graph").press("Enter")
    assert column(page, "graph") == ["dec"] * 3 + ["enc"] * 3
    assert header.get_attribute("aria-sort") == "none"


def test_the_table_is_filtered_and_says_how_much_is_left(opened: Any, tmp_path: Path) -> None:
    page = opened(made(tmp_path))
    tab_to(page, "#words")
    page.keyboard.type("dec sm8550")
    assert column(page, "SoC") == ["SM8550"]
    assert page.get_by_role("status").inner_text() == "1 of 6 targets"
    page.keyboard.press("Escape")
    page.get_by_label("Verdict").select_option("not built")
    assert column(page, "verdict") == ["∅ not built"]


def test_logs_are_folded_until_they_are_wanted(opened: Any, tmp_path: Path) -> None:
    page = opened(made(tmp_path))
    last = page.get_by_text("line 300", exact=False).first
    assert not last.is_visible()
    tab_to(page, "#findings summary")
    page.keyboard.press("Enter")
    assert last.is_visible()
    assert "180 lines are left out here" in page.locator("#findings details").inner_text()
    page.get_by_role("button", name="Close all logs").click()
    assert not last.is_visible()


def test_a_reason_leads_to_its_finding(opened: Any, tmp_path: Path) -> None:
    page = opened(made(tmp_path))
    page.locator(".reason.error").press("Enter")
    assert page.locator(".finding:target").get_attribute("class") == "finding error"


def test_all_is_there_without_the_script(opened: Any, tmp_path: Path) -> None:
    page = opened(made(tmp_path), java_script_enabled=False)
    assert len(column(page, "graph")) == 6
    assert not page.locator(".filter").is_visible()
    assert page.locator("main h2:visible").count() == 6


def test_dark_is_not_light(opened: Any, tmp_path: Path) -> None:
    shots = {scheme: opened(made(tmp_path), color_scheme=scheme).screenshot() for scheme in ("light", "dark")}
    assert shots["light"] != shots["dark"]


@pytest.mark.parametrize("text", ["x", HOSTILE])
@pytest.mark.parametrize("width", [360, 800, 1280])
def test_no_page_is_wider_than_its_screen(opened: Any, tmp_path: Path, width: int, text: str) -> None:
    page = opened(made(tmp_path, text, graphs=("enc", text), socs=("SM8550", text[:60])), width=width)
    for each in page.locator("details").all():
        each.evaluate("each => { each.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Any, tmp_path: Path, scheme: str, width: int) -> None:
    """axe-core's rules of WCAG 2.2 AA and its own good practice, with every log and table unfolded."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    # Its own way of running axe on a page adds a script, which the page's policy forbids.
    page = opened(made(tmp_path), width=width, color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    found = axe.Axe().run(page).response
    wrong = [(each["id"], node["html"][:200]) for each in found["violations"] for node in each["nodes"]]
    assert wrong == []
    assert {"color-contrast", "td-headers-attr", "bypass"} & {each["id"] for each in found["passes"]}
