"""The known ways to fail, asked for by STANDIN_FAIL: `tool:way`, several with commas, `*` for every tool.

abort          ends by SIGABRT (134) half way
segfault       ends by SIGSEGV (139) while it composes the graph
hang           stops saying anything and never ends
empty          leaves an empty output and exits 0
error-inside   says an error, leaves no output and exits 0
late-exit      does all, and exits 1
late-segfault  does all, and ends by SIGSEGV
2gib           the graph needs more than 2 GiB: error 1002, as the context generator says it
relocation     the linker's end of a model library over 2 GiB
ignore=KEY     the config file's KEY has no effect, and nothing is said (soc_model, dsp_arch, vtcm_mb, O, …)
forget=--FLAG  the tool does not know this flag, nor does its help
import-error   the tools' Python libraries are for another Python
no-libcxx      the loader misses libc++.so.1 (127)
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

from sdk import says

ENVIRONMENT = "STANDIN_FAIL"


class Failures:
    """The ways in which one tool shall fail now."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        asked = [item.partition(":") for item in os.environ.get(ENVIRONMENT, "").split(",") if item]
        self._ways = [way for name, _, way in asked if name in {tool, "*"}]

    def has(self, way: str) -> bool:
        return way in self._ways

    def values(self, way: str) -> set[str]:
        """What stands behind `way=`."""
        return {each.partition("=")[2] for each in self._ways if each.startswith(f"{way}=")}

    def at_start(self) -> None:
        """What goes wrong before the arguments are even read."""
        if self.has("no-libcxx"):
            text = "libc++.so.1: cannot open shared object file: No such file or directory"
            sys.stderr.write(f"{self._tool}: error while loading shared libraries: {text}\n")
            sys.exit(127)
        if self.has("import-error"):
            raise ImportError("cannot import name 'libPyIrGraph38' from 'qti.aisw.converters.common'")

    def at_work(self, output: Path) -> int | None:
        """What goes wrong half way; the exit code where the tool shall end here."""
        if self.has("abort"):
            sys.stderr.write("terminate called after throwing an instance of 'std::runtime_error'\n")
            sys.stderr.write("  what():  failed to add a tensor of this graph\n")
            die(signal.SIGABRT)
        if self.has("segfault"):
            die(signal.SIGSEGV)
        while self.has("hang"):
            signal.pause()
        if self.has("empty"):
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_bytes(b"")
            return 0
        if self.has("error-inside"):
            if self._tool in {"qnn-context-binary-generator", "qnn-net-run"}:
                says.native("ERROR", "Failed to successfully compose graph")
            else:
                says.python("ERROR", "Encountered Error: map::at:  key not found")
            return 0
        return None

    def at_end(self, code: int) -> int:
        """The exit code after everything was done."""
        if self.has("late-segfault"):
            die(signal.SIGSEGV)
        return 1 if self.has("late-exit") else code


def die(number: signal.Signals) -> None:
    """End by a signal, as native code does, without a core file."""
    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
