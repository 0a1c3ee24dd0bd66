from __future__ import annotations

import pytest

from qnnci.qnn_errors import _table, explain, public_code


def test_a_known_code_has_number_name_and_meaning() -> None:
    assert explain(30010) == (
        "30010 QNN_SYSTEM_CONTEXT_ERROR_MALFORMED_BINARY: the file is not a context binary or is damaged"
    )


def test_the_code_is_the_low_half_of_a_handle() -> None:
    assert public_code(0x0001_0002_0000_138D) == 5005
    assert explain(0x0001_0002_0000_138D).startswith("5005 QNN_CONTEXT_ERROR_CREATE_FROM_BINARY: ")


@pytest.mark.parametrize(
    ("code", "component"), [(5999, "context"), (30500, "system library"), (14999, "device"), (70, "unknown")]
)
def test_an_unknown_code_has_its_component(code: int, component: str) -> None:
    assert explain(code) == f"{code}: an error of QNN's {component} part"


def test_every_row_of_the_table_is_whole() -> None:
    table = _table()
    assert len(table) > 110
    for code, (name, meaning) in table.items():
        assert 0 <= code <= 0xFFFF
        assert name.startswith("QNN_")
        assert meaning
        assert meaning[0].islower()
        assert not meaning.endswith(".")
    assert len({name for name, _ in table.values()}) == len(table)
