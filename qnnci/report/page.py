"""report.html: a whole build on one page that needs nothing else, no network either, and works without its script."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qnnci.files import write_text
from qnnci.manifest import Manifest
from qnnci.report import charts, figures
from qnnci.report.excerpts import Logs
from qnnci.report.problems import clean, shortened
from qnnci.report.view import ROOM, view

if TYPE_CHECKING:
    from markupsafe import Markup

_TEXT, _BRIEF = 2000, 80  # characters of one message, among the findings and in a row


def write(path: Path, manifest: Manifest, folders: Sequence[Path]) -> None:
    """Write the report of a manifest; logs are looked for in `folders`, where builds wrote them.

    Raises:
        MachineError: it cannot be written there.

    """
    write_text(path, render(manifest, Logs(folders, ROOM)))


def render(manifest: Manifest, logs: Logs) -> str:
    """The page. What a model or tool says is text on it, whatever it says: nothing of it is obeyed or moves others."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    style, script = _data("page.css"), _data("page.js")
    environment = Environment(
        loader=FunctionLoader(_data),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {
        "size": figures.size,
        "brief": lambda text: shortened(text, _BRIEF),
        "coded": _coded,
        "duration": charts.duration,
        "short": lambda text: shortened(text, _TEXT),
    }
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = environment.get_template("page.html.j2")
    ticks = {"snr_ticks": charts.SNR_TICKS, "cosine_ticks": charts.COSINE_TICKS}
    # Both are files of this package: nothing of a build is in them.
    own = {"style": Markup(style), "script": Markup(script), "policy": Markup(policy)}  # noqa: S704
    return page.render(view=view(manifest, logs), **own, **ticks)


def _data(name: str) -> str:
    return (files("qnnci") / "data" / "report" / name).read_text(encoding="utf-8")


def _coded(text: str) -> Markup:
    """Text in which what stands in backticks is code."""
    from markupsafe import Markup, escape

    parts = re.split("`([^`\n]+)`", _shown(text))
    return Markup().join(Markup("<code>%s</code>") % part if at % 2 else escape(part) for at, part in enumerate(parts))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _shown(value: Any) -> Any:
    """Text without what would do something instead of showing; our own markup is left alone."""
    return clean(value).replace("\r", " ") if type(value) is str else value
