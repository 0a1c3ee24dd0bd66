"""A manifest against the files that it tells of: every file hashed again, every binary read again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from qnnci.context.info import ContextInfo, TensorInfo
from qnnci.context.read import inspect_all
from qnnci.errors import QnnciError, refusal
from qnnci.files import sha256
from qnnci.findings import Finding
from qnnci.manifest import Entry, Manifest, SharedContext, Tensor, devices
from qnnci.rules import finding


def check(manifest: Manifest, place: Callable[[str], Path]) -> list[Finding]:
    """Every way in which the files differ from what the manifest says; `place` finds a path of the manifest."""
    paths = [place(entry.binary) for entry in manifest.entries]
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # hashing gives up the GIL
        sums = list(threads.map(_sha256, paths))
    whole = [path for path, made in zip(paths, sums, strict=True) if isinstance(made, str)]
    said = dict(zip(whole, inspect_all(whole), strict=True))
    found: list[Finding] = []
    for entry, path, made in zip(manifest.entries, paths, sums, strict=True):
        here = {"graph": entry.graph, "soc": entry.soc, "stage": "check"}
        found += [each.at(**here) for each in _file(entry, path, made)]
        if path in said:
            found += [each.at(**here) for each in _binary(entry, said[path], path.name)]
        if any(each.sha256 != entry.sha256 for each in entry.measurements):
            found.append(finding("measurement-stale", "figures of a device are of another binary").at(**here))
        if entry.context_model and not place(entry.context_model).is_file():
            found.append(finding("file-missing", f"{entry.context_model} is not there").at(**here))
    for shared in manifest.contexts:
        here = {"graph": shared.name, "soc": shared.soc, "stage": "check"}
        path = place(shared.binary)
        found += [each.at(**here) for each in _file(shared, path, _sha256(path))]
        missing = [graph.context_model for graph in shared.graphs if not place(graph.context_model).is_file()]
        found += [finding("file-missing", f"{name} is not there").at(**here) for name in missing]
    if manifest.devices != devices(manifest.entries):
        found.append(finding("manifest-differs", "the table of devices is not the one that its binaries make"))
    return found


def _sha256(path: Path) -> str | QnnciError:
    try:
        return sha256(path)
    except OSError as error:
        return refusal(error)


def _file(entry: Entry | SharedContext, path: Path, made: str | QnnciError) -> Iterator[Finding]:
    if isinstance(made, QnnciError):
        told = f"cannot be read: {made.message}" if path.exists() else "is not there"
        yield finding("file-missing", f"{entry.binary} {told}")
    elif made != entry.sha256:
        size = path.stat().st_size
        told = f"{size} bytes in place of {entry.bytes}" if size != entry.bytes else f"sha256 {made}"
        yield finding("file-changed", f"{entry.binary} is not the file that was built: {told}")


def _binary(entry: Entry, said: ContextInfo | QnnciError, name: str) -> Iterator[Finding]:
    if isinstance(said, QnnciError):
        yield finding("not-a-context", f"{name}: {said.message}", hint=said.hint)
        return
    other = [
        f"{key} is {value}, {getattr(entry, key)} in the manifest"
        for key, value in said_by(said).items()
        if getattr(entry, key) != value
    ]
    if other:
        yield finding("manifest-differs", f"{name} says otherwise: {'; '.join(other)}")


def said_by(info: ContextInfo) -> dict[str, Any]:
    """The fields of an `Entry` that a binary knows best; SoC and arch only where its version tells them."""
    graph = info.graphs[0]
    chip = {"soc_id": info.soc_id, "dsp_arch": f"v{info.dsp_arch}" if info.dsp_arch is not None else None}
    return {
        **{key: value for key, value in chip.items() if value is not None},
        "graph_name": graph.name,
        "qairt": info.build_id,
        "optimization": graph.optimization,
        "vtcm_bytes": graph.vtcm_bytes,
        "spill_fill_bytes": graph.spill_fill_bytes,
        "const_bytes": graph.const_bytes,
        "op_data_bytes": graph.op_data_bytes,
        "io_bytes": graph.io_bytes,
        "inputs": tuple(map(_tensor, graph.inputs)),
        "outputs": tuple(map(_tensor, graph.outputs)),
    }


def _tensor(tensor: TensorInfo) -> Tensor:
    quantization = tensor.quantization
    return Tensor(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        scale=quantization.scale if quantization else None,
        offset=quantization.offset if quantization else None,
    )
