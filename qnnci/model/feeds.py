"""Feeds: what a graph is run on when it is compared, seeded or given by the user."""

from __future__ import annotations

import difflib
import itertools
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qnnci.arrays import Arrays
from qnnci.errors import UsageError
from qnnci.sample_list import Line, read_lines

INPUT_LIST = "input_list.txt"
_KINDS = (
    "a .npz file, a folder of .npz files (one a sample), a folder of <input>.npy or <input>.raw files, "
    "or an input_list.txt"
)


@dataclass(frozen=True, slots=True)
class Spec:
    """A graph input: its name, its static shape and its numpy dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


_RAW = np.dtype("V1")  # bytes of a .raw file, until an input's own dtype and shape are known


def seeded(specs: Sequence[Spec], ranges: Mapping[str, tuple[float, float]], *, count: int, seed: int) -> list[Arrays]:
    """Return `count` reproducible feeds: floats uniform in -1 to 1, integers and booleans 0 or 1, unless ranged."""
    rng = np.random.default_rng(seed)
    return [{spec.name: _draw(rng, spec, ranges.get(spec.name)) for spec in specs} for _ in range(count)]


def _draw(rng: np.random.Generator, spec: Spec, given: tuple[float, float] | None) -> NDArray[Any]:
    if np.issubdtype(spec.dtype, np.floating):
        low, high = given or (-1.0, 1.0)
        return rng.uniform(low, high, spec.shape).astype(spec.dtype)
    low, high = given or (0, 1)
    return rng.integers(int(low), int(high), spec.shape, endpoint=True).astype(spec.dtype)


def load(path: Path, specs: Sequence[Spec], *, count: int) -> list[Arrays]:
    """Read up to `count` feeds, as `read` does."""
    return list(itertools.islice(read(path, specs), count))


def read(path: Path, specs: Sequence[Spec], *, base: Path = Path(), native: bool = True) -> Iterator[Arrays]:
    """Read feeds one after the other; an array with one more leading axis than its input holds one sample a row.

    `base` is where the paths in an input list may start, `native` says that its files have the inputs' own types,
    not float32.

    Raises:
        UsageError: nothing there, an input missing, or a shape or dtype that does not fit.

    """
    found = False
    for feed in _feeds(path, specs, base, native=native):
        found = True
        yield feed
    if not found:
        raise UsageError(f"no inputs in {path}", hint=f"give {_KINDS}")


def _feeds(path: Path, specs: Sequence[Spec], base: Path, *, native: bool) -> Iterator[Arrays]:
    listed = path / INPUT_LIST if path.is_dir() else path
    if listed.is_file() and listed.suffix == ".txt":
        for line in read_lines(listed, (base, listed.parent)):
            if line.items:
                yield _listed(line, specs, native=native)
        return
    for file in _samples(path):
        yield from rows(_read(file), specs, file)


def _listed(line: Line, specs: Sequence[Spec], *, native: bool) -> Arrays:
    """One line of an input list: a file for each input, by its name or in the graph's order."""
    named = {plain(name.removesuffix(":=")): file for name, file in line.items}
    if len(named) < len(line.items):
        named = {plain(spec.name): file for spec, (_, file) in zip(specs, line.items, strict=False)}
    elif len(line.items) == len(specs) == 1:
        named = {plain(specs[0].name): line.items[0][1]}
    missing = [spec.name for spec in specs if plain(spec.name) not in named]
    if missing:
        message = f"no file for the input {missing[0]!r}; there are {len(line.items)} files, {len(specs)} inputs"
        raise UsageError(message, where=line.where, hint="write `name:=path` for each input, with a space between")
    return {spec.name: _one(named[plain(spec.name)], spec, native=native) for spec in specs}


def _one(path: Path, spec: Spec, *, native: bool) -> NDArray[Any]:
    """One sample from a .raw file: in the input's own type, as float32, or of an integer as int64."""
    data = _file(path)
    if data.dtype != _RAW:
        return _column(data, spec, path)[0]
    values = int(np.prod(spec.shape))
    real, wide = np.dtype(np.float32), np.dtype(np.int64)
    kinds: list[np.dtype[Any]] = [spec.dtype, real, wide] if native and spec.dtype.kind in "iu" else [spec.dtype, real]
    for kind in kinds if native else kinds[1:]:
        if data.size == values * kind.itemsize:
            array: NDArray[Any] = data.view(kind).reshape(spec.shape)
            if kind.kind == "f" and spec.dtype.kind in "iub" and np.array_equal(array, np.rint(array)):
                array = array.astype(np.int64)
            return typed(array, spec.name, spec.dtype, path)
    message = f"{spec.name} has {data.size} bytes, a sample of {list(spec.shape)} {spec.dtype} has"
    raise UsageError(f"{message} {values * spec.dtype.itemsize}", where=str(path))


def _samples(path: Path) -> list[Path]:
    if not path.exists():
        raise UsageError(f"there are no inputs at {path}", hint=f"give {_KINDS}")
    if not path.is_dir():
        return [path]
    archives = sorted(path.glob("*.npz"))
    folders = sorted(folder for folder in path.iterdir() if folder.is_dir())
    return archives or ([path] if any(path.glob("*.npy")) or any(path.glob("*.raw")) else folders)


def _read(path: Path) -> Arrays:
    if path.is_dir():
        return {file.stem: _file(file) for file in sorted(path.iterdir()) if file.suffix in {".npy", ".raw"}}
    if path.suffix == ".npz":
        return read_archive(path)
    return {path.stem: _file(path)}


def _file(path: Path) -> NDArray[Any]:
    with _told(path, "not a numpy array"):
        if path.suffix == ".npy":
            with path.open("rb") as file:
                array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array
        return np.frombuffer(path.read_bytes(), _RAW)


def read_archive(path: Path) -> Arrays:
    with _told(path, "not an archive of numpy arrays"), zipfile.ZipFile(path) as archive:
        arrays = {}
        for name in archive.namelist():
            with archive.open(name) as file:
                arrays[name.removesuffix(".npy")] = np.lib.format.read_array(file, allow_pickle=False)
        return arrays


@contextmanager
def _told(path: Path, problem: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot read it: {error.strerror or error}", where=str(path)) from error
    except Exception as error:  # numpy lets through what zipfile, zlib and the allocator raise
        raise UsageError(f"{problem}: {error}", where=str(path), hint=f"give {_KINDS}") from error


def rows(arrays: Arrays, specs: Sequence[Spec], where: Path) -> list[Arrays]:
    """Return the feeds in arrays by their inputs' names, which hold a sample a row, or one.

    Raises:
        UsageError: as `load` does.

    """
    columns = {spec.name: _column(pick(arrays, spec.name, where), spec, where) for spec in specs}
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise UsageError(f"the inputs differ in their number of samples: {told}", where=str(where))
    return [{name: column[row] for name, column in columns.items()} for row in range(next(iter(counts.values()), 0))]


def pick(arrays: Arrays, name: str, where: Path) -> NDArray[Any]:
    """Return the array of an input, named as it is or as a file can be.

    Raises:
        UsageError: there is none.

    """
    by_name = {plain(each): array for each, array in arrays.items()}
    if plain(name) in by_name:
        return by_name[plain(name)]
    near = difflib.get_close_matches(name, list(arrays), n=1)
    raise UsageError(
        f"no array for the input {name!r}; there are {', '.join(sorted(arrays)) or 'none'}",
        where=str(where),
        hint=f"did you mean {near[0]!r}?" if near else f"name it {plain(name)}",
    )


def _column(array: NDArray[Any], spec: Spec, where: Path) -> list[NDArray[Any]]:
    if array.dtype == _RAW:
        array = _from_raw(array, spec, where)
    if array.shape == spec.shape:
        array = array[np.newaxis]
    if array.shape[1:] != spec.shape:
        message = f"{spec.name} has shape {list(array.shape)}, the graph wants {list(spec.shape)}"
        raise UsageError(message, where=str(where))
    return list(typed(array, spec.name, spec.dtype, where))


def typed(array: NDArray[Any], name: str, dtype: np.dtype[Any], where: Path) -> NDArray[Any]:
    """Return the array as an input has it.

    Raises:
        UsageError: it is of another kind, or holds what `dtype` cannot.

    """
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        message = f"{name} is {array.dtype}, the graph wants {dtype}"
        raise UsageError(message, where=str(where), hint="save the array with the graph's dtype")
    with np.errstate(over="ignore"):  # what is too large for float32 becomes inf, and that is told of the outputs
        made: NDArray[Any] = array.astype(dtype)
    if np.issubdtype(dtype, np.integer) and not np.array_equal(made, array):
        message = f"{name} holds {array.max()} or {array.min()}, which {dtype} does not"
        raise UsageError(message, where=str(where), hint="feed values that the graph's own dtype can hold")
    return made


def _from_raw(array: NDArray[Any], spec: Spec, where: Path) -> NDArray[Any]:
    size = int(np.prod(spec.shape)) * spec.dtype.itemsize
    if not size or array.size % size:
        message = f"{spec.name} has {array.size} bytes, one sample of {list(spec.shape)} {spec.dtype} has {size}"
        raise UsageError(message, where=str(where))
    return array.view(spec.dtype).reshape(-1, *spec.shape)


def plain(name: str) -> str:
    """A tensor name as it can stand in a file name: everything odd becomes an underscore."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)
