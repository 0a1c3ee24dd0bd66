"""What is known of single ops on HTP.

`UNSUPPORTED` was measured: one-op graphs of static shape, made of the ONNX standard's own test cases and of common
uses, were compiled by onnxruntime-qnn 2.7.0 (QAIRT 2.51) for SoC 43 in fp16 with CPU fallback forbidden; listed is
what was refused in every form tried. Not listed though refused alone: `Erf`, which is taken as part of GELU, and
`Dropout`, `Shape`, `Size`, which disappear before compiling.
`COSTLY` cannot be measured on a host: it follows from how the hardware works (wide vectors, no random access).
"""

from __future__ import annotations

_DATA = "its output's size depends on the data: compute a fixed size and mask, or run this part on the CPU"
_BITS = "compute it in float or int32 arithmetic, or run this part on the CPU"
_TRIG = "approximate it with ops that HTP has, or run this part on the CPU"
_SEQUENCE = "export with fixed lengths, so that Split and Concat do the same"
_TEXT = "process text before the graph, on the CPU"
_QOPERATOR = "quantize in QDQ format instead of QOperator format"
_PARTS = "export it as the simpler ops it consists of"
_DRAW = "draw the random numbers outside, and feed them as an input"
_BEFORE = "compute it before the graph, on the CPU, and feed the result"
_FUSED = "export without ONNX Runtime's own fusions (optimization level basic)"

# Op, with its domain unless it is the default one, and what to do instead.
UNSUPPORTED: dict[str, str] = {
    **dict.fromkeys(("Compress", "Unique"), _DATA),
    **dict.fromkeys(("BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"), _BITS),
    **dict.fromkeys(("Acos", "Acosh", "Asin", "Asinh", "Atanh", "Cosh", "Sinh"), _TRIG),
    **dict.fromkeys(("Celu", "Hardmax", "MeanVarianceNormalization", "Shrink", "Softsign"), _PARTS),
    **dict.fromkeys(("ReduceL1", "ReduceLogSum", "ReduceProd", "ReduceSumSquare"), _PARTS),
    **dict.fromkeys(
        ("CenterCropPad", "Col2Im", "ReverseSequence", "Scatter", "RNN", "SoftmaxCrossEntropyLoss"), _PARTS
    ),
    **dict.fromkeys(("ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty"), _SEQUENCE),
    **dict.fromkeys(("SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence"), _SEQUENCE),
    **dict.fromkeys(("Optional", "OptionalGetElement", "OptionalHasElement"), _SEQUENCE),
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"), _TEXT),
    **dict.fromkeys(("Multinomial", "RandomNormal", "RandomUniform"), _DRAW),
    **dict.fromkeys(("DFT", "ImageDecoder", "MelWeightMatrix"), _BEFORE),
    "QLinearConv": _QOPERATOR,
    "AffineGrid": "feed the grid as an input or constant",
    "DeformConv": "replace it by a plain convolution",
    "Det": "compute it after the graph, on the CPU",
    "EyeLike": "store the identity matrix as a constant",
    "IsInf": "compare with a large finite number instead",
    "MaxUnpool": "use Resize or ConvTranspose instead",
    "Range": "give it constant limits, or feed the positions as an input",
    "Trilu": "store the mask as a constant",
    **{
        f"com.microsoft.{op}": _FUSED
        for op in ("BiasGelu", "FusedConv", "MultiHeadAttention", "SkipLayerNormalization")
    },
}

DYNAMIC_QUANTIZE = frozenset(
    {
        "ConvInteger",
        "DynamicQuantizeLinear",
        "MatMulInteger",
        "com.microsoft.DynamicQuantizeLSTM",
        "com.microsoft.DynamicQuantizeMatMul",
        "com.microsoft.MatMulIntegerToFloat",
    }
)

COSTLY: dict[str, str] = {
    **dict.fromkeys(("LSTM", "GRU"), "each time step waits for the one before"),
    **dict.fromkeys(
        ("GatherElements", "GatherND", "ScatterElements", "ScatterND"),
        "it reads or writes element by element",
    ),
    **dict.fromkeys(("GridSample", "RoiAlign"), "it reads memory at random"),
    **dict.fromkeys(("NonMaxSuppression", "NonZero", "TopK"), "it sorts or searches, which vectors do not speed up"),
    **dict.fromkeys(("CumSum", "STFT"), "it has no fast kernel"),
}

# Rank 6 passes only where ONNX Runtime folds the whole Reshape-Transpose-Reshape into one op; rank 7 never did.
MAX_RANK = 5
MAX_SHUFFLE_RANK = 6

# Graph inputs and outputs that compiled; fixed point of 8 and 16 bits passes only into or out of QDQ nodes.
PORT_TYPES = frozenset({"float32", "float16", "int32", "uint32", "uint8", "bool"})
QUANTIZED_PORT_TYPES = frozenset({"int8", "int16", "uint16"})

# What ONNX Runtime and the SDK's converters read well; see the rules old-opset and new-ir.
OLDEST_OPSET, NEWEST_OPSET, NEWEST_IR = 11, 22, 10
