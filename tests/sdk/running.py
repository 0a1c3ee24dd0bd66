"""Run a made SDK's tools as a user does."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sdk.failures import ENVIRONMENT

HOST = "x86_64-linux-clang"


@dataclass(frozen=True)
class Ended:
    code: int  # negative: the signal
    said: str


@dataclass(frozen=True)
class Sdk:
    """An SDK, and the folder of the compilers that its library generator finds."""

    root: Path
    compilers: Path

    @property
    def htp(self) -> Path:
        return self.root / "lib" / HOST / "libQnnHtp.so"

    def __call__(self, tool: str, *arguments: object, cwd: Path, fail: str = "", timeout: float = 60) -> Ended:
        path = f"{self.compilers}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [str(self.root / "bin" / HOST / tool), *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "PATH": path, ENVIRONMENT: fail},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=timeout,
        )
        return Ended(done.returncode, done.stdout.decode())

    def config(self, folder: Path, htp: object) -> Path:
        """Write both config files of the context generator; returns the outer one."""
        (folder / "htp.json").write_text(json.dumps(htp), encoding="utf-8")
        library = self.root / "lib" / HOST / "libQnnHtpNetRunExtensions.so"
        names = {"shared_library_path": str(library), "config_file_path": str(folder / "htp.json")}
        outer = folder / "outer.json"
        outer.write_text(json.dumps({"backend_extensions": names}), encoding="utf-8")
        return outer

    def generate(self, folder: Path, *arguments: object, fail: str = "", timeout: float = 60) -> Ended:
        """Run the context generator in a folder; it writes output/net.bin."""
        tool = "qnn-context-binary-generator"
        arguments = ("--backend", self.htp, "--binary_file", "net", *arguments)
        return self(tool, *arguments, cwd=folder, fail=fail, timeout=timeout)


def config_for(soc: int = 69, name: str = "net", **graph: object) -> dict[str, object]:
    """An htp_config.json with one SoC and one graph."""
    return {"graphs": [{"graph_names": [name], **graph}], "devices": [{"soc_model": soc}]}
