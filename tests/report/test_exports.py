"""How far exports are from their originals, in words."""

from __future__ import annotations

import pytest

from qnnci.manifest import Figures, Measured
from qnnci.report.exports import export_figures
from qnnci.report.summary import export_summary


def figures(cosine: float | None, snr: float | None) -> Figures:
    return Figures(cosine=cosine, snr_db=snr, max_abs=0, max_rel=0)


@pytest.mark.parametrize(
    ("parity", "metrics", "text"),
    [
        (None, None, ""),
        ({}, {}, ""),
        ({"a": figures(0.9999996, 50.04), "b": figures(1, 99)}, None, "cosine 0.999999, SNR 50.0 dB"),
        ({"a": figures(None, None), "b": figures(1, 99)}, None, "cosine not finite"),
        (None, {"wer": Measured(value=0.0312345, samples=20)}, "wer 0.03123 over 20 samples"),
        (
            {"a": figures(1, 200)},
            {"cer": Measured(value=0, samples=1), "bleu": Measured(value=31.5)},
            "cosine 1.000000, SNR 200.0 dB, cer 0 over 1 sample, bleu 31.5",
        ),
    ],
)
def test_the_worst_output_and_every_metric(parity, metrics, text):
    assert export_figures(parity, metrics) == text


def test_nothing_in_the_summary_of_an_export_is_obeyed():
    text = export_summary("a|b\n# c", {"<b>net</b>": "cosine 1", "plain": ""}, [], passed=True)
    assert text.startswith("## ✅ a&#124;b &#35; c: exported &#60;b&#62;net&#60;/b&#62;, plain\n")
    assert text.count("\n- ") == 1
