"""Qualcomm's AI Hub, through its own client: hosted devices that profile and run a binary. An extra: `qnnci[aihub]`."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qnnci.arrays import Arrays
from qnnci.errors import MachineError, QnnciError, ToolMissing, UsageError
from qnnci.soc import Soc, all_socs, find_soc

INI, DEFAULT_INI = "QAIHUB_CLIENT_INI", "~/.qai_hub/client.ini"
_CHIP = "chipset:"
_UNAUTHORIZED = re.compile(r"\b401\b|[Aa]uthenticat|API token|[Uu]nauthori[sz]ed")


@dataclass(frozen=True, slots=True)
class Profile:
    """What a hosted device measured: one inference in µs, its peak memory in bytes, how many layers ran where."""

    microseconds: int
    peak_bytes: int
    layers: dict[str, int]


@dataclass(frozen=True, slots=True)
class Ended:
    """A job: its address, and what came of it; `problem` is why nothing did."""

    url: str
    result: Any = None
    problem: str = ""


def client() -> Any:
    """AI Hub's client, with the token that `qai-hub configure` has kept.

    Raises:
        ToolMissing: the extra is not installed.
        UsageError: there is no token.

    """
    try:
        hub = importlib.import_module("qai_hub")
    except ImportError as error:
        hint = "pip install 'qnnci[aihub]', in an environment of its own if pip says that versions do not go together"
        raise ToolMissing(f"AI Hub's client is not installed ({error})", hint=hint) from error
    kept = Path(os.environ.get(INI) or DEFAULT_INI).expanduser()
    if not kept.is_file():
        hint = (
            "make an account at https://aihub.qualcomm.com, take the token of its settings page, and say once: "
            "`qai-hub configure --api_token TOKEN`"
        )
        raise UsageError(f"AI Hub needs a token, and there is none in {kept}", hint=hint)
    with _told("read the token"):
        return hub.Client()


def find(hub: Any, name: str) -> Any:
    """The newest hosted device of this name.

    Raises:
        UsageError: there is none, with the nearest names.

    """
    with _told("list its devices"):
        devices = hub.get_devices()
    same = [each for each in devices if each.name.lower() == name.lower()]
    if not same:
        names = list(dict.fromkeys(each.name for each in devices))
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.3)
        hint = f"did you mean {', '.join(map(repr, near))}?" if near else f"it has {len(names)}: `qai-hub list-devices`"
        raise UsageError(f"AI Hub has no device {name[:100]!r}", hint=hint)
    return same[-1]


def chip(attributes: Sequence[str], name: str, asked: str = "") -> Soc:
    """The chip of a hosted device: what was asked for, else by AI Hub's word for it, such as qualcomm-snapdragon-8gen3.

    Raises:
        UsageError: the table of chips has none of that name.

    """
    if asked:
        return find_soc(asked)
    words = [each.removeprefix(_CHIP) for each in attributes if each.startswith(_CHIP)]
    for word in words:
        plain = _plain(word.removeprefix("qualcomm-"))
        for soc in all_socs():
            known = {_plain(soc.name), *map(_plain, soc.aliases), _plain(soc.marketing)} - {""}
            if soc.dsp_arch and plain in known:
                with contextlib.suppress(UsageError):
                    return find_soc(soc.name)
    told = ", ".join(words) or "nothing"
    raise UsageError(f"AI Hub says of {name}'s chip: {told}", hint="name it with `--soc`, such as SM8650")


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def upload(hub: Any, binary: Path, name: str) -> Any:
    """Put a binary on AI Hub.

    Raises:
        UsageError, MachineError: AI Hub does not take it.

    """
    with _told(f"take {binary.name}"):
        return hub.upload_model(str(binary), name=name)


def profile(hub: Any, model: Any, device: Any, name: str) -> Ended:
    """Have a device measure a binary, and wait for that."""
    with _told("profile"):
        job = hub.submit_profile_job(model, device, name=name)
        status = job.wait()
        if not status.success:
            return Ended(job.url, problem=str(status.message or status.code))
        return Ended(job.url, _profile(job.download_profile()))


def run(hub: Any, model: Any, device: Any, name: str, feeds: Sequence[Arrays]) -> Ended:
    """Have a device run a binary on all feeds; the result is a list of outputs, one for each."""
    inputs = {key: [np.ascontiguousarray(feed[key]) for feed in feeds] for key in feeds[0]}
    with _told("run"):
        job = hub.submit_inference_job(model, device, inputs, name=name)
        status = job.wait()
        if not status.success:
            return Ended(job.url, problem=str(status.message or status.code))
        outputs: Mapping[str, Sequence[Any]] = job.download_output_data() or {}
    if not outputs or any(len(each) != len(feeds) for each in outputs.values()):
        return Ended(job.url, problem=f"it gave {len(outputs)} outputs, not of {len(feeds)} samples each")
    return Ended(job.url, [{key: np.asarray(each[row]) for key, each in outputs.items()} for row in range(len(feeds))])


def _profile(told: Mapping[str, Any]) -> Profile:
    summary, layers = told.get("execution_summary", {}), told.get("execution_detail", [])
    units = Counter(str(each.get("compute_unit", "?")) for each in layers)
    time, peak = (int(summary.get(f"estimated_inference_{key}") or 0) for key in ("time", "peak_memory"))
    return Profile(time, peak, dict(units))


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Tell what AI Hub's client raises and prints, in our words and without its progress bars."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    except QnnciError:
        raise
    except Exception as error:  # the client has many kinds of its own, and lets through those of requests
        said = " ".join(str(error).split())[:400]
        if _UNAUTHORIZED.search(said):
            hint = "the token may have expired: `qai-hub configure --api_token TOKEN`"
            raise UsageError("AI Hub does not take the token", hint=hint) from error
        if type(error).__name__ == "UserError":
            raise UsageError(f"AI Hub does not {what}: {said}") from error
        raise MachineError(f"AI Hub does not {what}: {said}", hint="try again later") from error
