"""What a graph is called on its way through the SDK."""

from __future__ import annotations

from pathlib import Path

import pytest

from qnnci.build.sdk_route import SdkRoute
from qnnci.project_file import ProjectFile, validate
from qnnci.toolchain.sdk import Sdk


@pytest.mark.parametrize(
    ("settings", "symbol"),
    [({}, "tiny_en_encoder"), ({"graph_name": "encoder"}, "encoder"), ({"graph_name": "5-seconds"}, "_5_seconds")],
    ids=["its own", "given", "given, with what C does not take"],
)
@pytest.mark.parametrize("route", ["model-lib", "dlc"])
def test_the_name_inside(settings: dict[str, str], symbol: str, route: str) -> None:
    graph = {"source": "e.onnx", "convert": settings}
    data = {"name": "t", "route": route, "socs": ["SM8850"], "graphs": {"tiny.en-encoder": graph}}
    made = SdkRoute(ProjectFile(validate(data, "")), Sdk(Path("sdk"), "2.40.0.251030"), Path("cache"))
    options = made.conversion("tiny.en-encoder", "fp16")
    (first, *_) = made.steps("tiny.en-encoder", options, Path("prepared.onnx"), Path("folder"))
    assert [path.stem for path in first.command.makes] == [symbol]
