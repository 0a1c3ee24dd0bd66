from __future__ import annotations

import re

import pytest

from qnnci.errors import UsageError
from qnnci.soc import all_socs, find_soc, htp_arches, htp_socs

EVERY = [pytest.param(soc, id=soc.name) for soc in all_socs()]
HTP = [pytest.param(soc, id=soc.name) for soc in htp_socs()]


@pytest.mark.parametrize("soc", EVERY)
def test_every_row_is_well_formed(soc):
    names = (soc.name, *soc.aliases)
    assert all(re.fullmatch(r"[A-Z]+[A-Z0-9_]*\d[A-Z0-9_]*", name) for name in names)
    assert soc.name not in soc.aliases
    assert re.fullmatch(r"(v\d\d)?", soc.dsp_arch)
    assert soc.marketing == soc.marketing.strip()


@pytest.mark.parametrize("soc", HTP)
def test_a_chip_with_htp_has_its_arch_and_sizes(soc):
    assert soc.arch >= 68
    assert 1 <= soc.vtcm_mb <= 64
    assert 1 <= soc.hvx_threads <= 8


def test_a_chip_without_htp_has_neither_sizes_nor_fp16():
    without = [soc for soc in all_socs() if not soc.has_htp]
    assert {soc.arch for soc in without} <= {0, 65, 66}
    assert {(soc.hvx_threads, soc.fp16) for soc in without} == {(0, False)}


def test_ids_and_names_belong_to_one_chip_each():
    ids = [soc.id for soc in all_socs()]
    names = [name for soc in all_socs() for name in (soc.name, *soc.aliases)]
    assert ids == sorted(set(ids))
    assert len(names) == len(set(names))


def test_v68_has_no_fp16():
    assert [soc.name for soc in htp_socs() if soc.arch == 68 and soc.fp16] == []


def test_arches_come_from_the_table():
    assert htp_arches() == ("v68", "v69", "v73", "v75", "v79", "v81", "v85")


# Facts that other tables have wrong, see docs/chips.md.
@pytest.mark.parametrize(
    ("name", "number", "arch"),
    [
        ("SM8350", 30, "v68"),
        ("SM7325", 35, "v68"),
        ("QCS6490", 93, "v68"),
        ("SC8480XP", 88, "v81"),
        ("SM8735", 85, "v73"),
        ("SM8750", 69, "v79"),
    ],
)
def test_known_chips(name, number, arch):
    soc = find_soc(name)
    assert (soc.id, soc.dsp_arch) == (number, arch)


@pytest.mark.parametrize("soc", HTP)
def test_every_name_alias_and_id_finds_its_chip(soc):
    for name in (soc.name, soc.name.lower(), f" {soc.name} ", str(soc.id), *soc.aliases):
        assert find_soc(name) == soc


@pytest.mark.parametrize("letters", ["P", "PH", "H", "Q"])
@pytest.mark.parametrize("name", ["SM8550", "SM8475", "SM8650", "SM7325", "QCS9075"])
def test_binning_letters_are_no_chips_of_their_own(name, letters):
    assert find_soc(name + letters) == find_soc(name)


def test_l_is_a_chip_of_its_own():
    assert find_soc("SM8850L") != find_soc("SM8850")
    assert find_soc("SM8975L") != find_soc("SM8975")
    with pytest.raises(UsageError, match="unknown SoC 'SM8550L'"):
        find_soc("SM8550L")


def test_a_letter_that_makes_another_chip_is_kept():
    with pytest.raises(UsageError, match="SM6450Q has no HTP"):
        find_soc("SM6450Q")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("SM8751", "SM8750"), ("SM855", "SM8550"), ("8650", "SM8650"), ("QCS6491", "QCS6490"), ("sm 8750", "SM8750")],
)
def test_an_unknown_chip_is_told_the_nearest(name, nearest):
    with pytest.raises(UsageError, match="unknown SoC") as caught:
        find_soc(name)
    assert f"did you mean {nearest}" in caught.value.hint


@pytest.mark.parametrize("name", ["", " ", "P", "43P", "0", "14", "-1", "x" * 100_000, "٣", "SM8750\0", "SM8750PP"])
def test_nonsense_is_unknown_and_told_briefly(name):
    with pytest.raises(UsageError, match="unknown SoC") as caught:
        find_soc(name)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("soc", [pytest.param(soc, id=soc.name) for soc in all_socs() if not soc.has_htp])
def test_chips_without_htp_are_refused(soc):
    with pytest.raises(UsageError, match=f"{soc.name} has no HTP") as caught:
        find_soc(soc.name)
    assert "CPU" in caught.value.hint
