"""From a project to targets, and how targets are spread over CI jobs."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnnci.errors import UsageError
from qnnci.plan import CHIPS_PER_JOB, MAX_JOBS, Target, matrix, plan, shards
from qnnci.project_file import validate
from qnnci.soc import find_soc, htp_socs

PROJECT = validate(
    {
        "name": "p",
        "socs": ["SM8750", "QCS6490"],
        "precision": {"v68": "w8a16"},
        "graphs": {"b": {"source": "b"}, "a": {"source": "a", "socs": ["SM8550"]}},
    },
    "test",
)


def test_targets_come_in_the_projects_order():
    assert [target.id for target in plan(PROJECT)] == ["b-SM8750", "b-QCS6490", "a-SM8550"]


def test_some_graphs_only():
    assert [target.id for target in plan(PROJECT, ["a", "a"])] == ["a-SM8550"]


def test_a_graph_that_is_not_there():
    with pytest.raises(UsageError, match="the project has no graph 'bb'") as caught:
        plan(PROJECT, ["a", "bb"])
    assert caught.value.hint == "did you mean 'b'? it has b, a"


def test_file_names_hold_what_is_asked_most():
    target = plan(PROJECT)[1]
    assert target.binary == "b_w8a16_QCS6490_v68.bin"
    assert target.context_model == "b_w8a16_QCS6490_v68_ctx.onnx"


@pytest.mark.parametrize(
    ("soc", "precision", "reason"),
    [
        ("SM8750", "fp16", ""),
        ("QCS6490", "w8a8", ""),
        ("QCS6490", "fp16", "v68 has no fp16"),
        ("SM8350", "fp16", "v68 has no fp16"),
        ("SM8635", "fp16", "this chip's HTP has no fp16"),
    ],
)
def test_fp16_is_refused_where_there_is_none(soc, precision, reason):
    refusal = Target("g", find_soc(soc), precision).refusal
    assert (refusal.message if refusal else "") == reason
    assert refusal is None or (refusal.rule, refusal.graph, refusal.soc) == ("fp16-unsupported", "g", soc)


SOCS = htp_socs()
TARGETS = st.dictionaries(
    st.from_regex(r"[a-z]{1,3}(-[0-9]{3})?", fullmatch=True), st.integers(1, len(SOCS)), min_size=1, max_size=40
).map(lambda graphs: [Target(graph, soc, "w8a8") for graph, count in graphs.items() for soc in SOCS[:count]])


@given(TARGETS, st.integers(40, MAX_JOBS))
def test_shards_hold_every_target_once_and_are_few_enough(targets, max_jobs):
    made = shards(targets, max_jobs)
    assert len(made) <= max_jobs
    assert [(shard.graph, name) for shard in made for name in shard.socs] == [
        (target.graph, target.soc.name) for target in targets
    ]
    assert len({shard.id for shard in made}) == len(made)
    assert max(len(shard.socs) for shard in made) == 1 or len(targets) > max_jobs


@given(TARGETS, st.integers(40, MAX_JOBS))
def test_shards_are_as_small_as_fits(targets, max_jobs):
    largest = max(len(shard.socs) for shard in shards(targets, max_jobs))
    counts = [sum(target.graph == graph for target in targets) for graph in {target.graph for target in targets}]
    assert largest == 1 or sum(-(-count // (largest - 1)) for count in counts) > max_jobs


@given(TARGETS)
def test_shards_of_a_graph_are_even_and_full_where_nobody_says_how_many(targets):
    made = shards(targets)
    for graph in {shard.graph for shard in made}:
        sizes = [len(shard.socs) for shard in made if shard.graph == graph]
        assert max(sizes) - min(sizes) <= 1
        assert len(sizes) == -(-sum(sizes) // CHIPS_PER_JOB)


@given(TARGETS, st.none() | st.integers(40, MAX_JOBS))
def test_a_matrix_prepares_each_graph_once(targets, max_jobs):
    made = matrix(targets, max_jobs)
    graphs = [row["graph"] for row in made["prepare"]]
    assert len(graphs) == len(set(graphs))
    of_shards = [row["graph"] for row in made["shards"]]
    assert [row["graph"] for row in made["graphs"]] == list(dict.fromkeys(of_shards))
    # What has one shard is prepared there, and in no job before.
    assert {graph for graph in of_shards if of_shards.count(graph) > 1} == set(graphs)
    assert all(row["prepared"] == (row["graph"] in graphs) for row in made["shards"])
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", row["id"]) for row in made["shards"])
    assert len(json.dumps(made)) < 1 << 20  # GitHub's limit of a job's outputs


def test_the_largest_project_fits():
    targets = [Target(f"g{number}", soc, "w8a8") for number in range(MAX_JOBS) for soc in SOCS]
    assert len(matrix(targets)["shards"]) == MAX_JOBS


def test_more_graphs_than_jobs_are_refused():
    targets = [Target(f"g{number}", SOCS[0], "w8a8") for number in range(MAX_JOBS + 1)]
    with pytest.raises(UsageError, match="257 graphs do not fit into 256 jobs"):
        shards(targets)
    with pytest.raises(UsageError, match="2 graphs do not fit into 1 jobs"):
        shards(targets[:2], 1)


def test_nothing_to_do_is_no_job():
    assert shards([]) == ()
