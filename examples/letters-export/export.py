"""The reader as an ONNX graph, and what the original gives for its samples: `export.py GRAPH.onnx REFERENCE.npz`."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import reader
from onnx import numpy_helper
from onnxscript import FLOAT, script
from onnxscript import opset17 as op

WEIGHT, BIAS, OUT = (numpy_helper.from_array(each) for each in (reader.WEIGHT, reader.BIAS, reader.OUT))


@script()
def read(features: FLOAT[1, 40, 16]) -> FLOAT[1, 40, 28]:
    """The same as `reader.logits`, in the ops of ONNX."""
    hidden = op.Tanh(op.Add(op.MatMul(features, op.Constant(value=WEIGHT)), op.Constant(value=BIAS)))
    logits = op.MatMul(hidden, op.Constant(value=OUT))
    return logits  # noqa: RET504 - its name becomes that of the output


def main() -> None:
    graph, reference = sys.argv[1:]
    onnx.save(read.to_model_proto(), graph)
    samples = reader.samples()
    wanted = [reader.logits(each) for each in samples]
    np.savez(reference, feed_features=np.stack(samples), want_logits=np.stack(wanted))


if __name__ == "__main__":
    main()
