"""Work on pieces of a stream, on all cores and in order, with few pieces in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def ordered(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield `function` of each item, in the items' order; it has to release the GIL to gain anything."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def pieces(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces of `size`; the last may be shorter."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)
