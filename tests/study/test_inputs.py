"""What settings name, loaded as far as it can be."""

from __future__ import annotations

from clustersim.library.job import JobSetup
from clustersim.study.inputs import load_inputs


def test_all_that_is_named_is_loaded(tiny: JobSetup) -> None:
    setup = tiny.with_values({"nodes": 2, "profile": "megatron-core-2024", "plan.clip": False})
    loaded = load_inputs(setup, (), "model")
    assert loaded.model is not None
    assert (loaded.graph, loaded.faults) == (None, ())
    assert loaded.topology is not None
    assert loaded.num_devices == loaded.topology.num_devices == 16
    assert "plan.clip" not in loaded.profile  # the job says it
    assert {key.partition(".")[0] for key in loaded.profile} == {"plan"}


def test_faults_of_each_are_told_and_the_others_loaded(tiny: JobSetup) -> None:
    loaded = load_inputs(tiny.with_values({"model": "gpt22", "profile": "megatron-core-204"}), (), "model")
    assert [fault.key for fault in loaded.faults] == ["model", "profile"]
    assert loaded.model is None
    assert loaded.num_devices == 8


def test_devices_of_a_refused_number_of_nodes_are_not_known(tiny: JobSetup) -> None:
    loaded = load_inputs(tiny, ("nodes",), "model")
    assert loaded.topology is not None
    assert loaded.num_devices == 0


def test_a_graph_is_not_looked_for_in_a_job_with_a_model(tiny: JobSetup) -> None:
    loaded = load_inputs(tiny, (), "graph")
    assert (loaded.model, loaded.graph, loaded.faults) == (None, None, ())
