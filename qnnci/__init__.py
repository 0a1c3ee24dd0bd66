"""Compile ONNX graphs into checked, measured Qualcomm HTP context binaries."""

__version__ = "0.1.0"
