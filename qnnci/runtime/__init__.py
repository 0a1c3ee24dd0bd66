"""Run a model, wherever it is, by one call: an ONNX graph on the CPU, a context binary in the emulator or on a device.

import qnnci.runtime

with qnnci.runtime.load("build/vad/SM8750/vad_fp16_SM8750_v79.bin") as runner:
    outputs = runner.run({"input": audio, "state": state})
"""

from qnnci.runtime.load import load
from qnnci.runtime.runner import Feed, Port, Runner

__all__ = ["Feed", "Port", "Runner", "load"]
