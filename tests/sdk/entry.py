"""Where every tool's script arrives."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from sdk.failures import Failures
from sdk.kit import Kit

TOOLS = {  # in modules of their own, so that `--help` loads no compiler
    "qnn-onnx-converter": "convert:main",
    "qnn-model-lib-generator": "library:main",
    "qairt-converter": "dlc:convert",
    "qairt-quantizer": "dlc:quantize",
    "qnn-context-binary-generator": "context_generator:main",
    "qnn-net-run": "run_tools:net_run",
    "qnn-context-binary-utility": "run_tools:utility",
    "qnn-platform-validator": "run_tools:validator",
}


def main(tool: str, root: Path) -> int:
    failures = Failures(tool)
    failures.at_start()
    module, _, function = TOOLS[tool].partition(":")
    code: int = getattr(importlib.import_module(f"sdk.{module}"), function)(Kit(root), sys.argv[1:], failures)
    return code
