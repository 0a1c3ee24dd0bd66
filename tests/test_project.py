"""What a project means once it is read: which settings win for which graph and chip."""

from __future__ import annotations

from typing import get_args

import pytest

from qnnci import project
from qnnci.cli import options, ship
from qnnci.errors import UsageError
from qnnci.project_file import validate
from qnnci.soc import find_soc, htp_socs


def made(**more):
    return validate({"name": "p", "socs": ["SM8750"], "graphs": {"g": {"source": "g.onnx"}}, **more}, "test")


@pytest.mark.parametrize(
    ("given", "soc", "precision"),
    [
        ("w8a8", "SM8750", "w8a8"),
        ({"default": "w8a8"}, "QCS6490", "w8a8"),
        ({}, "SM8750", "fp16"),
        ({"v68": "w8a16"}, "QCS6490", "w8a16"),
        ({"v68": "w8a16"}, "SM8750", "fp16"),
        ({"V68": "w8a16"}, "QCS6490", "w8a16"),
        ({"v68": "w8a16", "QCS6490": "w8a8"}, "QCS6490", "w8a8"),  # the SoC wins over its arch
        ({"v68": "w8a16", "QCS6490": "w8a8"}, "SM8350", "w8a16"),
        ({"v68": "w8a16", "QCM6490": "w4a16"}, "QCS6490", "w4a16"),  # by alias
        ({"qcs6490": "w8a8"}, "QCS6490", "w8a8"),
        ({"93": "w8a8"}, "QCS6490", "w8a8"),  # by id
        ({"SM8550PH": "w8a8"}, "SM8550", "w8a8"),  # by binning
    ],
)
def test_the_most_particular_precision_wins(given, soc, precision):
    assert made(precision=given).precision_for("g", find_soc(soc)) == precision


def test_a_graphs_own_settings_replace_the_projects():
    project = made(
        precision="w8a8",
        verify={"samples": 9},
        gates={"spill_fill_bytes": {"max": 5}},
        quantize={"calibrate": "entropy", "io": "ufixed16"},
        graphs={
            "own": {
                "source": "a",
                "precision": "fp16",
                "verify": {"samples": 1},
                "quantize": {"io": "float16", "keep": {"fp16": ["a"]}},
                "gates": {"spill_fill_bytes": {"max": 7}},
                "socs": ["SM8550", "43", "SM8550P"],
            },
            "plain": {"source": "b"},
        },
    )
    soc = find_soc("SM8750")
    assert [project.precision_for(name, soc) for name in ("own", "plain")] == ["fp16", "w8a8"]
    assert [project.verify_for(name).samples for name in ("own", "plain")] == [1, 9]
    quantize = [project.quantize_for(name) for name in ("own", "plain")]
    assert [(each.calibrate, each.io) for each in quantize] == [("entropy", "float16"), ("entropy", "ufixed16")]
    assert quantize[0].keep.fp16 == ("a",)
    assert [project.gates_for(name).spill_fill_bytes.max for name in ("own", "plain")] == [7, 5]
    assert [[soc.name for soc in project.graph_socs(name)] for name in ("own", "plain")] == [["SM8550"], ["SM8750"]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"v67": "w8a8"}, "'v67' is neither `default`, nor a dsp arch (v68, "),
        ({"defualt": "w8a8"}, "'defualt' is neither `default`"),
        ({"SM8750": "w8"}, "precision.SM8750: must be 'fp16'"),
        ({"SM8250": "w8a8"}, "nor a SoC that can be compiled for"),
        ({"SM8750": "w8a8", "69": "w8a16"}, "SM8750 and 69 are the same chip"),
        ("fp32", "must be 'fp16', 'w8a8', 'w8a16' or 'w4a16' (given: 'fp32')"),
    ],
)
def test_a_precision_that_fits_nothing_is_refused(given, said):
    with pytest.raises(UsageError) as caught:
        made(precision=given)
    assert said in str(caught.value)


@pytest.mark.parametrize("soc", htp_socs(), ids=lambda soc: soc.name)
def test_every_arch_of_the_table_can_have_its_precision(soc):
    assert made(precision={soc.dsp_arch: "w4a16"}).precision_for("g", soc) == "w4a16"


@pytest.mark.parametrize("value", [True, 16000, -0.5, float("-inf"), 1e300, [1, 2], [[1.5], [2]], [], 2**64 - 1])
def test_constants_are_kept_as_given(value):
    [kept] = made(graphs={"g": {"source": "a", "inputs": {"x": {"value": value}}}}).graphs["g"].inputs.values()
    assert kept.value == value
    assert type(kept.value) is type(value)


def test_a_list_is_a_shape():
    inputs = made(graphs={"g": {"source": "a", "inputs": {"x": [1, 3], "n": []}}}).graphs["g"].inputs
    assert (inputs["x"].shape, inputs["n"].shape) == ((1, 3), ())


def test_the_command_line_offers_what_a_project_takes():
    assert get_args(project.Precision) == options.PRECISIONS
    assert get_args(project.Route) == options.ROUTES
    assert get_args(project.FailOn) == options.FAIL_ON
    assert get_args(project.Layout) == ship.LAYOUTS
    assert get_args(project.Family) == ship.FAMILIES
    assert get_args(project.ArchiveKind) == ship.ARCHIVES
