"""How long the live display expects a build to be."""

import pytest

from qnnci.commands.build import _steps
from qnnci.plan import plan
from qnnci.project import Project


@pytest.mark.parametrize(
    ("verify", "steps"),
    [({}, 6), ({"enabled": False}, 3), ({"targets": "one-per-arch"}, 5)],
    ids=["all", "none", "arch"],
)
def test_steps_are_the_compiles_and_verifications_that_can_be(verify, steps):
    project = Project.model_validate(
        {
            "name": "n",
            "socs": ["SM8550", "QCS8550", "SM8750", "QCS6490"],  # v73 twice, v79, and one without fp16
            "graphs": {"g": {"source": "g.onnx"}},
            "verify": verify,
        }
    )
    assert _steps(project, plan(project)) == steps
