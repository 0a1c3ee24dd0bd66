"""Reads the logs of Qualcomm's tools and ONNX Runtime: what failed and why, whether it worked, and facts in passing."""

from qnnci.logs.reader import Reader, read
from qnnci.logs.story import LogReport, Seen

__all__ = ["LogReport", "Reader", "Seen", "read"]
