"""Damage as files meet it: some bytes changed near either end, and sometimes the rest cut off."""

from __future__ import annotations

from hypothesis import strategies as st

_NEAR = 60_000  # bytes from either end, where a model keeps its structure; the middle is weights


def harmed(data: st.DataObject, whole: bytes) -> bytes:
    """Draw a damaged copy of a file of more than 60,000 bytes."""
    ends = st.one_of(st.integers(0, _NEAR), st.integers(len(whole) - _NEAR, len(whole) - 1))
    copy = bytearray(whole)
    for place, byte in data.draw(st.lists(st.tuples(ends, st.integers(0, 255)), min_size=1, max_size=4)):
        copy[place] = byte
    return bytes(copy[: data.draw(st.sampled_from([len(whole), len(whole), len(whole) // 2, 100]))])
