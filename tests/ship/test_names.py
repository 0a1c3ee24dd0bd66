"""Templates for names: what comes out is always fit for a file, or a complaint."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qnnci.errors import UsageError
from qnnci.ship.names import archive_name, parts_of

VALUES = {"project": "demo", "soc": "SM8750", "group": "tiny.en"}


def test_a_name() -> None:
    assert archive_name("{project}-{soc}_{group}+1", VALUES) == "demo-SM8750_tiny.en+1"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{chip}", "not known"),
        ("{soc", "braces"),
        ("soc}", "braces"),
        ("{soc.__class__}", "in braces"),
        ("{soc!r}", "in braces"),
        ("{soc:>99999999999}", "in braces"),
        ("{0}", "in braces"),
        ("{}", "in braces"),
        ("../{soc}", "cannot be called"),
        ("/etc/{soc}", "cannot be called"),
        ("{soc}\n", "cannot be called"),
        ("{soc} $(id)", "cannot be called"),
        ("{{soc}}", "cannot be called"),
        (".hidden", "cannot be called"),
        ("", "cannot be called"),
        ("{soc}" * 60, "cannot be called"),
    ],
)
def test_what_is_no_name(template: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        archive_name(template, VALUES)
    assert said in str(told.value)


@given(st.text(st.sampled_from("{}soc.:!/\\-\n\0 é"), max_size=12), st.text(max_size=6))
@example("{soc}", "..")
def test_any_template_is_a_good_name_or_refused(template: str, soc: str) -> None:
    try:
        name = archive_name(template, {"soc": soc})
    except UsageError:
        return
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name)


def test_parts() -> None:
    assert parts_of("{framework}-{t}s", "WSChuan-ASR-5s") == {"framework": "WSChuan-ASR", "t": "5"}
    assert parts_of("{framework}-{t}s", "tiny") is None
    assert parts_of("{a}.+", "x.+") == {"a": "x"}
    with pytest.raises(UsageError, match="twice"):
        parts_of("{a}-{a}", "x-y")
