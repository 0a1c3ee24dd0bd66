"""qnn-context-binary-generator: a model library or a DLC becomes a context binary, a real one."""

from __future__ import annotations

import os
import signal
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qnnci.context.info import ContextInfo
from qnnci.errors import UsageError
from qnnci.soc import all_socs, find_soc
from sdk import carry, elf, flags, htp_config, says
from sdk.binary import CompileError, Settings, compile_to
from sdk.failures import Failures, die
from sdk.htp_config import GraphOptions, HtpConfig
from sdk.kit import Kit

TOOL = "qnn-context-binary-generator"
FAILED, NOT_INITIALISED = 1, 9
_V68 = 68
_DEFAULT_SOCS = {68: 30, 69: 36, 73: 43, 75: 57, 79: 69, 81: 87}  # of a dsp_arch without soc_model
_LEVELS = {"error": 0, "warn": 1, "info": 2, "verbose": 3, "debug": 3}
_DLC_LIBRARY = "libQnnModelDlc.so"


class Ended(Exception):
    """The tool ends here with this exit code; what it had to say was said."""

    def __init__(self, code: int, *lines: str) -> None:
        super().__init__(code)
        self.code, self.lines = code, lines


def main(kit: Kit, arguments: Sequence[str], failures: Failures) -> int:
    try:
        return failures.at_end(_main(kit, arguments, failures))
    except flags.NativeUsageError as error:
        says.plain(str(error))
        return FAILED
    except htp_config.ConfigError:
        says.plain("Initialization failure")
        return NOT_INITIALISED
    except Ended as end:
        for line in end.lines:
            says.plain(line)
        return end.code


def _main(kit: Kit, arguments: Sequence[str], failures: Failures) -> int:
    forgotten = failures.values("forget")
    given = flags.native(TOOL, kit.minor, forgotten, arguments)
    if "help" in given:
        says.plain(flags.native_help(TOOL, kit.minor, forgotten))
        return 0
    if "version" in given:
        says.plain(f"{TOOL} build version: {kit.build}")
        return 0
    _check_values(given)
    says.plain(f"{TOOL} pid:{os.getpid()}")
    if not Path(given["backend"]).is_file():
        raise Ended(
            NOT_INITIALISED,
            f"Unable to load backend. dlerror(): {given['backend']}: cannot open shared object file: "
            "No such file or directory",
            "Initialization failure",
        )
    config = HtpConfig()
    if "config_file" in given:
        echo = _LEVELS[given.get("log_level", "error")] > 1
        config = htp_config.load(Path(given["config_file"]), kit.minor, ignored=failures.values("ignore"), echo=echo)
    output = Path(given.get("output_dir", "./output")) / f"{given['binary_file']}.bin"
    if (end := failures.at_work(output)) is not None:
        return end
    graph = _compose(kit, given)
    settings = _settings(given, config, graph.about)
    if failures.has("2gib"):
        _too_big()
    says.plain(" <W> Initializing HtpProvider")
    for name in filter(None, given.get("htp_socs", "").split(",")):
        soc = find_soc(name)
        copy = output.with_name(f"{given['binary_file']}.{soc.name}.bin")
        _compile(kit, graph, copy, replace(settings, soc_id=soc.id), given)
        says.native("INFO", f"Cache binary for {soc.name} copied to {copy}")
    if "htp_socs" not in given:
        _compile(kit, graph, output, settings, given)
    says.plain(" <W> Backend 1 free cleanup called during process exit")
    return 0


def _check_values(given: dict[str, str]) -> None:
    if given.get("log_level", "error") not in _LEVELS:
        raise flags.NativeUsageError("Invalid log level.")
    if given.get("profiling_level", "basic") not in {"basic", "detailed", "backend"}:
        raise flags.NativeUsageError("Invalid profiling level.")
    if given.get("input_output_tensor_mem_type", "raw") not in {"raw", "memhandle"}:
        raise flags.NativeUsageError("Invalid tensor mem type")
    if {"enable_intermediate_outputs", "set_output_tensors"} <= given.keys():
        raise flags.NativeUsageError("Arguments Invalid: --enable_intermediate_outputs, --set_output_tensors")


def _compose(kit: Kit, given: dict[str, str]) -> carry.Carried:
    """The graph of the model library or of the DLC."""
    library = given.get("model", "")
    paths = [Path(item) for item in given.get("dlc_path", library).split(",") if item]
    if Path(library).name == _DLC_LIBRARY and "dlc_path" not in given:
        raise flags.NativeUsageError("Missing required argument: --dlc_path")
    if not paths or ("dlc_path" in given and not library and kit.minor < (2, 40)):
        raise flags.NativeUsageError("Missing required argument: --model")
    if len(paths) > 1:
        raise Ended(FAILED, "Graph Compose failure")  # several graphs in a context are beyond this stand-in
    if library and "dlc_path" not in given and not elf.is_for(paths[0], elf.X86_64):
        says.native("ERROR", f"Unable to load model. dlerror(): {paths[0]}: cannot open shared object file")
        raise Ended(FAILED, "Graph Compose failure")
    try:
        found = carry.unpacked(paths[0])
        found.whole()  # of a library built without its .bin
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        says.native("ERROR", f"Failed to load model {paths[0]}: {error}")
        raise Ended(FAILED, "Graph Compose failure") from error
    return found


def _settings(given: dict[str, str], config: HtpConfig, about: carry.About) -> Settings:
    options = _options(config, about, dlc="dlc_path" in given)
    soc_id = config.soc_id or int(given.get("soc_model", 0)) or _DEFAULT_SOCS.get(config.arch, 0)
    soc = next((soc for soc in all_socs() if soc.id == soc_id), None)
    if about.float_ops and soc is not None and soc.arch == _V68:
        says.plain("terminate called after throwing an instance of 'std::runtime_error'")
        die(signal.SIGABRT)
    megabytes = options.vtcm_mb
    if megabytes == 0:  # the whole of the chip's
        megabytes = soc.vtcm_mb if soc else 0
    return Settings(
        soc_id=soc_id,
        vtcm_mb=int(given.get("vtcm_override", megabytes or 0)),
        optimization=int(given.get("optimization_level_override", options.optimization or 0)),
        fp16=not about.quantized or bool(about.float_ops) or options.fp16,
    )


def _options(config: HtpConfig, about: carry.About, *, dlc: bool) -> GraphOptions:
    """The options that the config file has for this graph."""
    for name in config.enabled:
        if name != about.name:
            raise Ended(FAILED, f"enable_graphs: unknown graph {name}", "Graph Compose failure")
    found = next((graph for graph in config.graphs if about.name in graph.names), None)
    if found is not None:
        return found
    named = any(graph.names for graph in config.graphs)
    if dlc and config.graphs:
        says.native("ERROR", "Valid 'graph_names' must be specified to configure graph settings.")
    if named:
        says.native(
            "ERROR",
            f"getQnnGraphConfigFromInfo() unable to find graphName:{about.name} in provided graphsConfigInfo object.",
        )
        says.native("ERROR", "getQnnGraphConfigFromInfo(...) expected MODEL_NO_ERROR, got MODEL_INVALID_ARGUMENT_ERROR")
    if named or (dlc and config.graphs):
        raise Ended(FAILED, "Graph Compose failure")
    return GraphOptions(())


def _compile(kit: Kit, graph: carry.Carried, binary: Path, settings: Settings, given: dict[str, str]) -> None:
    level = _LEVELS[given.get("log_level", "error")]
    try:
        info, lines = compile_to(binary, graph.whole(), graph.about.name, kit.build, settings)
    except CompileError as error:
        _say(error.reasons, level)
        raise _end(str(error), error.reasons) from error
    except UsageError as error:
        raise Ended(FAILED, f"ERROR: {error}") from error
    _say(lines, level)
    _summary(info)


def _say(lines: Sequence[str], level: int) -> None:
    """The compiler's own lines, those of the asked level."""
    for line in dict.fromkeys(lines):
        if "<E>" in line or ":ERROR" in line:
            says.native("ERROR", f" {line}")
        elif level and ("<W>" in line or ":WARNING" in line):
            says.native("WARNING", f" {line}")
        elif level > 1:
            says.native("INFO", f" {line}")


def _end(message: str, reasons: Sequence[str]) -> Ended:
    """How a refusal ends, by the stage that refused."""
    text = "\n".join((message, *reasons))
    if "INVALID_CONFIG" in text or "14001" in text:
        return Ended(NOT_INITIALISED, "Device Creation failure")
    if "1002" in text or "finalize" in text.lower():
        says.native("ERROR", "Finalize Graph for Idx = 0 failed with error = 1002")
        return Ended(FAILED, "Graph Finalize failure")
    says.native("ERROR", "QnnBackend_validateOpConfig failed 3110")
    says.native("ERROR", "Failed to validate op with error 0xc26")
    says.native("ERROR", "ComposeGraphs Failed with error = 1")
    return Ended(FAILED, "Graph Compose failure")


def _too_big() -> None:
    for line in (
        "fa_alloc.cc:2425::ERROR:graph requires estimated allocation of 2483027 KB, limit is 2097152 KB",
        "graph_prepare.cc:838::ERROR:error during serialize: memory usage too large",
        "c_interface.cc:492::ERROR:error in serialize_bin_container",
        " <E> RouterX86 graph serialize to memory failed -1",
        " <E> Failed to finalize graph (id: 1) with err 1002",
        "Finalize Graph for Idx = 0 failed with error = 1002",
        "Encountered error 1 while finalizing graphs.",
    ):
        says.native("ERROR", line)
    raise Ended(FAILED, "Graph Finalize failure")


def _summary(info: ContextInfo) -> None:
    graph = info.graphs[0]
    read = (graph.const_bytes or 0) + (graph.io_bytes or 0)
    says.stages(spill=graph.spill_fill_bytes or 0, written=graph.io_bytes or 0, read=read)
