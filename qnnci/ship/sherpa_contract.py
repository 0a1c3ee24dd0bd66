"""What the loader of sherpa-onnx takes: the graphs of each family of models, their names, types and axes. Pure.

Read from the sources of its csrc/qnn as of August 2026. Where it does not look at a name or a size, nothing is asked.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from qnnci.context.info import ContextInfo, TensorInfo
from qnnci.findings import Finding
from qnnci.project import Family
from qnnci.rules import finding

INFO_VERSION = 3  # of a binary's description; the loader has no code for others
REAL = frozenset({"FLOAT_32", "FLOAT_16", "UFIXED_POINT_16"})
INTEGER = "INT_32"

# For each family its graphs in the order of the loader's list; of each the inputs and the outputs.
# A tensor is `name[axes]`, `:int` for an integer. `*` in a name is any text, `{W}` a number; a name that ends in `?`
# may be missing. An axis is a number, `80|128`, `*` for any, or a letter that has one value in the whole graph.
# `*` alone is any further tensor.
_MEL = "80|128"
_TDT = {
    "encoder": (f"*[1,T,{_MEL}]", "*"),
    "decoder": ("y[1,1]:int h[L,H,1] c[L,H,1]", "next_h[L,1,H] next_c[L,1,H] *"),
    "joiner": ("*[1,*,1]", "log_probs[1,1,1,*]"),
}
CONTRACTS: Mapping[Family, Mapping[str, tuple[str, str]]] = {
    "sense-voice": {"model": ("x[1,T,560] prompt[4]:int", "logits[1,*,*]")},
    "zipformer-ctc": {"model": ("x[1,T,80]", "log_probs[1,*,*]")},
    "paraformer": {
        "encoder": ("x[1,T,560]", "encoder_out[1,T,512]"),
        "predictor": ("encoder_out[1,512,T]", "alphas[1,T]"),
        "decoder": ("encoder_out[1,512,T] acoustic_embedding[1,512,T] mask:int", "decoder_out[1,*,T]"),
    },
    "parakeet-ctc": {"model": (f"*[1,T,{_MEL}]", "*")},
    "parakeet-tdt": _TDT,
    "nemotron": {
        "encoder": (
            "x_{W}_{S}*[1,W,F] cache_last_channel?[1,70,1024,24] cache_last_channel_len:int prompt_index?:int *",
            "*",
        ),
        "decoder": _TDT["decoder"],
        "joiner": ("*[1,*,1]", "logits"),
    },
    "zipformer-transducer": {
        "encoder": ("x[1,80,T] *", "new_* *"),
        "decoder": ("*", "*"),
        "joiner": ("*[1,*]", "logit"),
    },
    "whisper": {
        "encoder": (f"*_mel[1,T,{_MEL}]", "cross_k_* *"),
        "decoder": ("self_k*[1,S,C] *", "*"),
    },
    "moonshine": {"encoder": ("audio[1,N]", "*"), "decoder": ("self_k*[1,H,S] *", "*")},
}

_TENSOR = re.compile(r"(?P<name>[^\s\[\]:?]+)(?P<optional>\??)(?:\[(?P<axes>[^\]]*)\])?(?P<integer>:int)?")


@dataclass(frozen=True, slots=True)
class _Wanted:
    text: str
    name: re.Pattern[str]
    axes: tuple[str, ...] | None
    integer: bool
    optional: bool
    anything: bool


def check(family: Family, role: str, info: ContextInfo) -> list[Finding]:
    """What keeps the loader from using a binary as this graph of this family; empty where nothing does."""
    found = []
    if info.info_version != INFO_VERSION:
        message = f"its description has version {info.info_version}, the loader reads version {INFO_VERSION}"
        found.append(finding("bundle-info-version", message))
    if len(info.graphs) != 1:
        names = ", ".join(graph.name for graph in info.graphs[:5])
        found.append(
            finding("bundle-graphs", f"it holds {len(info.graphs)} graphs ({names}), the loader takes the first")
        )
    if not info.graphs:
        return found
    graph = info.graphs[0]
    sizes: dict[str, int] = {}
    for side, tensors, text in zip(
        ("input", "output"), (graph.inputs, graph.outputs), CONTRACTS[family][role], strict=True
    ):
        found += _check_side(side, tensors, _parsed(text), sizes)
    return found


def roles(family: Family) -> tuple[str, ...]:
    """The graphs of a family, in the order of the loader's list."""
    return tuple(CONTRACTS[family])


def _parsed(text: str) -> list[_Wanted]:
    return [_wanted(match) for match in _TENSOR.finditer(text)]


def _wanted(match: re.Match[str]) -> _Wanted:
    name = re.sub(r"\\{(\w)\\}", r"(?P<\1>\\d+)", re.escape(match["name"])).replace(r"\*", ".*")
    axes = tuple(match["axes"].split(",")) if match["axes"] else None
    anything = match[0] == "*"
    return _Wanted(match[0], re.compile(name), axes, bool(match["integer"]), bool(match["optional"]), anything)


def _check_side(
    side: str, tensors: Sequence[TensorInfo], wanted: Sequence[_Wanted], sizes: dict[str, int]
) -> Iterator[Finding]:
    told = ", ".join(tensor.name for tensor in tensors)
    missing = [each for each in wanted if not each.optional and not any(each.name.fullmatch(t.name) for t in tensors)]
    for each in missing:
        yield finding("bundle-io-names", f"it has no {side} {_shown(each)}; it has {told or 'none'}")
    for tensor in tensors:
        fit = next((each for each in wanted if each.name.fullmatch(tensor.name)), None)
        yield from _check_type(side, tensor, fit)
        if fit is None:
            yield finding("bundle-io-names", f"the loader knows no {side} {tensor.name!r} there: {_listed(wanted)}")
        elif fit.axes is not None:
            match = fit.name.fullmatch(tensor.name)
            sizes.update({key: int(value) for key, value in (match.groupdict() if match else {}).items()})
            yield from _check_axes(side, tensor, fit.axes, sizes)


def _check_type(side: str, tensor: TensorInfo, fit: _Wanted | None) -> Iterator[Finding]:
    quantization = tensor.quantization
    what = f"{side} {tensor.name} is {tensor.dtype}"
    if fit and fit.integer and tensor.dtype != INTEGER:
        yield finding("bundle-io-type", f"{what}, the loader takes {INTEGER} there")
    elif fit and not fit.anything and not fit.integer and tensor.dtype == INTEGER:
        yield finding("bundle-io-type", f"{what}, the loader takes {', '.join(sorted(REAL))} there")
    elif tensor.dtype != INTEGER and tensor.dtype not in REAL:
        yield finding("bundle-io-type", f"{what}, the loader takes {', '.join(sorted(REAL))} and {INTEGER}")
    elif tensor.dtype == "UFIXED_POINT_16" and (
        quantization is None or quantization.axis is not None or not quantization.scale
    ):
        encoding = quantization.encoding if quantization else "no encoding"
        yield finding("bundle-io-type", f"{what} with {encoding}, the loader takes one scale and offset")


def _check_axes(side: str, tensor: TensorInfo, axes: Sequence[str], sizes: dict[str, int]) -> Iterator[Finding]:
    if _fits(tensor.shape, axes, sizes):
        return
    message = f"{side} {tensor.name} is {list(tensor.shape)}, the loader takes [{', '.join(axes)}]"
    known = {axis: sizes[axis] for axis in axes if axis in sizes}
    if known:
        message += f" with {', '.join(f'{axis} = {size}' for axis, size in known.items())}"
    turned = (
        len(tensor.shape) == len(axes)
        and any(_fits(shape, axes, dict(sizes)) for shape in itertools.permutations(tensor.shape))
    )  # fmt: skip
    yield finding("bundle-axes", message if not turned else f"{message}: the same axes in another order")


def _fits(shape: Sequence[int], axes: Sequence[str], sizes: dict[str, int]) -> bool:
    """Whether a shape is these axes; letters that were not known then are, where it is."""
    if len(shape) != len(axes):
        return False
    own = dict(sizes)
    for size, axis in zip(shape, axes, strict=True):
        if axis == "*":
            continue
        allowed = {own.setdefault(axis, size)} if axis.isalpha() else {int(number) for number in axis.split("|")}
        if size not in allowed:
            return False
    sizes.update(own)
    return True


def _shown(wanted: _Wanted) -> str:
    return wanted.text.split(":")[0]


def _listed(wanted: Sequence[_Wanted]) -> str:
    return "it takes " + ", ".join(map(_shown, wanted))
