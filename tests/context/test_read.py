"""Reading through libQnnSystem: real binaries, damaged ones, and libraries that misbehave."""

from __future__ import annotations

import ctypes
import importlib
import json
import platform
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qnnci.context import abi, read
from qnnci.context.info import ContextInfo, Quantization
from qnnci.context.read import inspect, inspect_all, load_functions, query, read_context, system_library
from qnnci.errors import QnnciError, ToolCrashed, ToolMissing, UsageError


@pytest.fixture(autouse=True)
def _no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)


# the library


def _sdk(root: Path, *targets: str) -> Path:
    for target in targets:
        (root / "lib" / target).mkdir(parents=True)
        (root / "lib" / target / "libQnnSystem.so").touch()
    return root


def test_an_sdk_that_is_named_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    root = _sdk(tmp_path, "x86_64-linux-clang", "aarch64-android", "aarch64-oe-linux-gcc11.2")
    monkeypatch.setenv("QNN_SDK_ROOT", str(root))
    assert system_library() == root / "lib/x86_64-linux-clang/libQnnSystem.so"
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert system_library() == root / "lib/aarch64-oe-linux-gcc11.2/libQnnSystem.so"


def test_a_binary_is_read_with_the_sdk_that_is_named(
    binaries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, library = inspect(binaries / "small.bin"), system_library()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / f"{platform.machine()}-linux-clang").symlink_to(library.parent)
    monkeypatch.setenv("QNN_SDK_ROOT", str(tmp_path))
    assert system_library() != library
    assert inspect(binaries / "small.bin") == expected


def test_an_sdk_root_without_the_library_is_never_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QNN_SDK_ROOT", str(_sdk(tmp_path, "aarch64-android", "riscv64-linux")))
    with pytest.raises(ToolMissing, match=str(tmp_path)) as error:
        system_library()
    assert "unset" in error.value.hint


def test_without_any_library_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ToolMissing) as error:
        system_library()
    for part in ("pip install onnxruntime-qnn", "3.11", "glibc 2.35", "QNN_SDK_ROOT"):
        assert part in error.value.hint


@pytest.mark.usefixtures("binaries")
def test_the_wheel_is_found_without_importing_it() -> None:
    code = (
        "import sys; from qnnci.context.read import load_functions, system_library; "
        "load_functions(system_library()); print([m for m in sys.modules if m.startswith(('onnx', 'numpy'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_library_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "libQnnSystem.so").write_text("not a library")
    other = Path(importlib.import_module("_ctypes").__file__ or "")
    for library in (tmp_path / "libQnnSystem.so", tmp_path / "absent.so", other):
        with pytest.raises(ToolMissing, match="does not load") as error:
            load_functions(library)
        assert str(library) in error.value.message


# asking it


class Stub:
    """A function table that answers as told and counts what is freed."""

    def __init__(
        self, *, create: int = 0, metadata: int | None = 0, binary_info: int | None = 0, version: int = 1
    ) -> None:
        self.asked: list[str] = []
        self.freed = 0
        self._name = ctypes.create_string_buffer(b"g")
        self._graph = abi.Graph(version=1, body=abi.GraphBody(name=ctypes.addressof(self._name)))
        self.info = abi.BinaryInfo(version=version)
        self.info.body.v1 = abi.BinaryV1(num_graphs=1, graphs=ctypes.addressof(self._graph))

        def answer(name: str, code: int) -> Callable[..., int]:
            def function(_handle: int, _data: int, _size: int, out: Any, *_: Any) -> int:
                self.asked.append(name)
                out[0] = ctypes.addressof(self.info) if code == 0 else None
                return code

            return function

        def free(_: int) -> int:
            self.freed += 1
            return 0

        self._callbacks = [
            read._create(lambda _: create),
            read._get_binary_info(answer("binary_info", binary_info or 0)) if binary_info is not None else None,
            read._get_metadata(answer("metadata", metadata or 0)) if metadata is not None else None,
            read._free(free),
        ]
        addresses = [ctypes.cast(callback, ctypes.c_void_p) if callback else None for callback in self._callbacks]
        self.functions = abi.Functions(*addresses)

    def query(self) -> ContextInfo:
        return query(self.functions, 0, 1000)


@pytest.mark.parametrize(
    ("stub", "asked"),
    [
        (Stub(), ["metadata"]),
        (Stub(metadata=None), ["binary_info"]),
        (Stub(metadata=1000), ["metadata", "binary_info"]),
        (Stub(metadata=(7 << 32) | 1000), ["metadata", "binary_info"]),
    ],
)
def test_metadata_first_then_the_deprecated_call(stub: Stub, asked: list[str]) -> None:
    assert stub.query().graphs[0].name == "g"
    assert (stub.asked, stub.freed) == (asked, 1)


@pytest.mark.parametrize(
    ("stub", "message"),
    [
        (Stub(metadata=30010), "30010 QNN_SYSTEM_CONTEXT_ERROR_MALFORMED_BINARY"),
        (Stub(metadata=1000, binary_info=30002), "30002 QNN_SYSTEM_CONTEXT_ERROR_OPERATION_FAILED"),
        (Stub(metadata=None, binary_info=None), "1000 QNN_COMMON_ERROR_NOT_SUPPORTED"),
        (Stub(version=9), "version 9"),
    ],
)
def test_a_refusal_is_explained_and_memory_is_freed(stub: Stub, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        stub.query()
    assert stub.freed == 1


def test_a_library_that_does_not_start() -> None:
    stub = Stub(create=1002)
    with pytest.raises(ToolCrashed, match="QNN_COMMON_ERROR_MEM_ALLOC"):
        stub.query()
    assert (stub.asked, stub.freed) == ([], 0)


# real binaries


def test_an_fp16_graph_on_sm8550(binaries: Path) -> None:
    info = inspect(binaries / "small.bin")
    assert info == read_context(binaries / "small.bin")
    assert (info.info_version, info.backend_id, info.soc_id, info.dsp_arch) == (3, 6, 43, 73)
    assert info.build_id.startswith("v2.51.0.")
    assert info.blob_bytes <= (binaries / "small.bin").stat().st_size
    [graph] = info.graphs
    assert (graph.vtcm_bytes, graph.optimization, graph.spill_fill_bytes) == (8 << 20, 3, 0)
    assert [(t.name, t.dtype, t.shape, t.kind) for t in graph.inputs] == [
        ("image", "FLOAT_32", (1, 3, 16, 16), "APP_WRITE")
    ]
    assert [(t.name, t.dtype, t.shape, t.kind) for t in graph.outputs] == [
        ("pooled", "FLOAT_32", (1, 8, 1, 1), "APP_READ")
    ]
    assert graph.inputs[0].quantization is None


def test_sizes_and_spill_of_a_graph_too_large_for_its_vtcm(binaries: Path) -> None:
    [graph] = inspect(binaries / "spilling.bin").graphs
    assert (graph.vtcm_bytes, graph.optimization) == (2 << 20, 2)
    activation, weights, image = 64 * 128 * 128 * 2, 64 * (64 + 3) * 9 * 2, 3 * 128 * 128 * 4
    assert graph.spill_fill_bytes is not None
    assert 0 < graph.spill_fill_bytes <= 4 * activation
    assert graph.const_bytes is not None
    assert weights <= graph.const_bytes < 2 * weights
    assert graph.io_bytes is not None
    assert image < graph.io_bytes <= image + 64 * 4 + 2 * 8192  # each tensor is aligned
    assert graph.op_data_bytes


@pytest.mark.parametrize(
    ("name", "soc_id", "arch", "vtcm_mb", "dtype"),
    [("w8", 93, 68, 2, "UFIXED_POINT_8"), ("w16", 43, 73, 8, "UFIXED_POINT_16")],
)
def test_quantized_graphs(binaries: Path, name: str, soc_id: int, arch: int, vtcm_mb: int, dtype: str) -> None:
    info = inspect(binaries / f"{name}.bin")
    assert (info.soc_id, info.dsp_arch) == (soc_id, arch)
    [graph] = info.graphs
    assert graph.vtcm_bytes == vtcm_mb << 20
    # QNN adds the offset where ONNX subtracts the zero point.
    assert {tensor.name: tensor.quantization for tensor in (*graph.inputs, *graph.outputs)} == {
        "left": Quantization("SCALE_OFFSET", scale=0.5, offset=-128),
        "right": Quantization("SCALE_OFFSET", scale=0.5, offset=-128),
        "sum": Quantization("SCALE_OFFSET", scale=0.25, offset=-3),
        "product": Quantization("SCALE_OFFSET", scale=0.25, offset=-7),
    }
    assert [tensor.name for tensor in graph.inputs] == ["left", "right"]
    for tensor in (*graph.inputs, *graph.outputs):
        assert (tensor.dtype, tensor.shape) == (dtype, (1, 4, 8, 6))


def test_a_relative_path_from_a_folder_that_shadows_modules(
    binaries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("PYTHONSAFEPATH came with 3.11")
    (tmp_path / "json.py").write_text("raise SystemExit(99)")
    (tmp_path / "-a name.bin").write_bytes((binaries / "small.bin").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert inspect(Path("-a name.bin")) == inspect(binaries / "small.bin")


# damaged binaries


def _children(files: list[Path], answers: Path) -> Iterator[dict[str, Any]]:
    """The answer for each file, {"crash": signal} among them; a crash costs one more child, not the others' answers."""
    while files:
        argv = [sys.executable, "-m", "qnnci.context.read", str(answers), *map(str, files)]
        done = subprocess.run(argv, capture_output=True, timeout=120, check=False)
        got = [json.loads(line) for line in answers.read_text().splitlines()]
        yield from got
        files = files[len(got) :]
        if files:
            assert done.returncode < 0, done.stderr.decode()
            yield {"crash": -done.returncode}
            files = files[1:]


def _judge(answer: dict[str, Any]) -> str:
    """A damaged file may crash the library, be refused, or pass where the damage does not show."""
    if "error" in answer:
        error = answer["error"]
        assert error["kind"] == "UsageError", error
        assert error["message"].startswith("not a context binary"), error
        assert error["hint"]
        return "refused"
    if "info" in answer:
        assert len(ContextInfo.from_json(answer["info"]).graphs) >= 1
        return "read"
    return "crashed"


@pytest.mark.parametrize("name", ["small", "w8"])
def test_every_word_of_the_metadata_damaged(binaries: Path, tmp_path: Path, name: str) -> None:
    content = (binaries / f"{name}.bin").read_bytes()
    end = 40 + int.from_bytes(content[16:24], "little")
    files = []
    for offset in range(0, end, 4):
        file = tmp_path / f"{offset}.bin"
        file.write_bytes(content[:offset] + (0xFFFFFF).to_bytes(4, "little") + content[offset + 4 :])
        files.append(file)
    verdicts = {
        file: _judge(answer) for file, answer in zip(files, _children(files, tmp_path / "answers"), strict=True)
    }
    assert set(verdicts.values()) == {"read", "refused", "crashed"}, "libQnnSystem no longer crashes: find new damage"
    crashing = [file for file, verdict in verdicts.items() if verdict == "crashed"]
    for file in crashing[:4]:
        with pytest.raises(UsageError, match=r"libQnnSystem crashes on it \(SIG(SEGV|ABRT|BUS)\)") as error:
            inspect(file)
        assert error.value.where == str(file)
    small, absent = binaries / "small.bin", tmp_path / "absent.bin"
    found = inspect_all([small, crashing[0], absent, small, crashing[0], small])
    assert [found[0], found[3], found[5]] == [inspect(small)] * 3
    assert str(found[1]) == str(found[4]) == str(error.value).replace(str(file), str(crashing[0]))
    assert "absent.bin" in str(found[2])
    assert inspect_all([]) == []


def test_random_damage(binaries: Path, tmp_path: Path) -> None:
    content = (binaries / "w16.bin").read_bytes()
    dice = random.Random(2)
    files = []
    for number in range(150):
        damaged = bytearray(content)
        for _ in range(dice.choice((1, 2, 16))):
            damaged[dice.randrange(1400)] = dice.choice((0, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        file = tmp_path / f"{number}.bin"
        file.write_bytes(damaged)
        files.append(file)
    verdicts = [_judge(answer) for answer in _children(files, tmp_path / "answers")]
    assert len(verdicts) == len(files)
    assert "refused" in verdicts


def test_cut_at_many_places(binaries: Path, tmp_path: Path) -> None:
    content = (binaries / "small.bin").read_bytes()
    cuts = [
        1,
        2,
        7,
        8,
        15,
        16,
        24,
        39,
        40,
        41,
        100,
        500,
        900,
        1000,
        4095,
        4096,
        4097,
        20000,
        len(content) - 1,
    ]
    files = [tmp_path / f"{cut}.bin" for cut in cuts]
    for cut, file in zip(cuts, files, strict=True):
        file.write_bytes(content[:cut])
    answers = list(_children(files, tmp_path / "answers"))
    for cut, answer in zip(cuts, answers, strict=True):
        assert _judge(answer) == "refused"
        told = f"has {cut} of {len(content)} bytes" if cut >= 40 else f"{cut} bytes hold not even the header"
        assert f"cut short: {'it ' if cut >= 40 else ''}{told}" in answer["error"]["message"]
    with pytest.raises(UsageError, match="cut short") as error:
        inspect(files[-1])
    assert "sha256" in error.value.hint


@pytest.mark.usefixtures("binaries")
def test_random_bytes(tmp_path: Path) -> None:
    dice = random.Random(1)
    files = []
    for size in (1, 39, 40, 4096, 1 << 20):
        file = tmp_path / f"{size}.bin"
        file.write_bytes(b"\x00\xff" * 4 + dice.randbytes(size))
        files.append(file)
    assert {_judge(answer) for answer in _children(files, tmp_path / "answers")} == {"refused"}
    with pytest.raises(UsageError, match="30010 QNN_SYSTEM_CONTEXT_ERROR_MALFORMED_BINARY") as error:
        inspect(files[0])
    assert (error.value.where, error.value.code) == (str(files[0]), 2)


def test_other_files_are_refused_before_any_child_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (tmp_path / "model.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match="a DLC"):
        inspect(tmp_path / "model.bin")
    with pytest.raises(UsageError, match="no such file"):
        inspect(tmp_path / "absent.bin")


# children that go wrong


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a shell script in the place of the child's Python; "$@" holds its arguments."""
    real = sys.executable

    def replace(script: str) -> None:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{script.replace('PYTHON', real)}\n")
        path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(path))

    return replace


@pytest.fixture
def plausible(tmp_path: Path) -> Path:
    path = tmp_path / "model.bin"
    path.write_bytes(b"\x00\x00\x00\x02\xff" * 20)
    return path


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("kill -SEGV $$", UsageError, r"libQnnSystem crashes on it \(SIGSEGV\)"),
        ("kill -ABRT $$", UsageError, r"libQnnSystem crashes on it \(SIGABRT\)"),
        ("kill -KILL $$", ToolCrashed, "ended by SIGKILL"),
        ("echo boom >&2; exit 3", ToolCrashed, "ended with exit code 3: boom"),
        ("exit 0", ToolCrashed, "ended with exit code 0"),
        ("exec sleep 1000", ToolCrashed, "did not read it within"),
    ],
)
def test_children_that_crash_hang_or_say_nothing(
    python: Callable[[str], None], plausible: Path, script: str, kind: type[QnnciError], message: str
) -> None:
    python(f"ulimit -c 0; {script}")
    with pytest.raises(kind, match=message) as error:
        inspect(plausible, timeout=0.3 if "sleep" in script else 60)
    assert error.value.where == str(plausible)
    assert error.value.hint


def test_what_native_libraries_print_is_no_answer(binaries: Path, python: Callable[[str], None]) -> None:
    expected = inspect(binaries / "small.bin")
    python('echo "{\\"info\\": 1}"; echo noise >&2; PYTHON "$@"; code=$?; echo more; exit $code')
    assert inspect(binaries / "small.bin") == expected


def test_errors_of_the_child_keep_their_kind(tmp_path: Path, plausible: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QNN_SDK_ROOT", str(tmp_path))
    with pytest.raises(ToolMissing, match="QNN_SDK_ROOT is") as error:
        inspect(plausible)
    assert (error.value.code, error.value.where) == (3, "")


def test_a_garbage_size_meets_the_childs_limit_not_the_machines(plausible: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from qnnci.context import read; "
        "read.read_context = lambda path: bytearray(16 << 30); read.main(*sys.argv[1:])"
    )
    answers = tmp_path / "answers"
    subprocess.run([sys.executable, "-c", code, str(answers), str(plausible)], check=True)
    error = json.loads(answers.read_text())["error"]
    assert (error["kind"], error["where"]) == ("UsageError", str(plausible))
    assert "its sizes exceed all memory" in error["message"]


def test_nothing_is_left_behind(
    plausible: Path, tmp_path: Path, python: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    python("exit 1")
    with pytest.raises(ToolCrashed):
        inspect(plausible)
    assert list((tmp_path / "tmp").iterdir()) == []
