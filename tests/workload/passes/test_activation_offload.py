"""Activations on the host: what leaves, what it frees, when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.layers.placed import Placed, blocks
from clustersim.workload.model import Model
from clustersim.workload.op import Copy
from clustersim.workload.passes.activation_offload import HOST_ACTIVATIONS, offloaded_layers
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard
from clustersim.workload.stages import split

NewShard = Callable[..., Shard]


def placed_of(model: Model, shard: Shard) -> tuple[Placed, ...]:
    return blocks(shard, split(model.num_layers, 1)[0], tied_here=False)


def copies(program: cs.Program, kind: str) -> list[int]:
    """Bytes of each copy one way."""
    arrays = program.arrays()
    found = [arrays.ops[n] for n in arrays.op.tolist()]
    return [op.nbytes for op in found if isinstance(op, Copy) and op.kind == kind]


def job_of(model: Model, plan: dict[str, Any], *, on_host: bool = True, global_batch: int = 8) -> cs.Job:
    return cs.training_step(
        model,
        cs.ParallelPlan(**plan, offload_activations=on_host),
        global_batch=global_batch,
        micro_batch=1,
        seq_len=128,
        num_devices=4,
    )


def test_a_layers_input_and_all_that_its_blocks_keep_leave(llama: Model, new_shard: NewShard) -> None:
    shard = new_shard(llama)
    placed = placed_of(llama, shard)
    layers = offloaded_layers(placed, Recomputation.of("none"))
    assert len(layers) == llama.num_layers - 1
    (mine,) = [[p for p in placed if p.layer == 0]]
    inside = sum(p.block.kept for p in mine) + sum(p.residual_nbytes for p in mine[:-1] if p.block.produces)
    assert layers[0].nbytes == inside + shard.residual_nbytes
    assert {layer.nbytes for layer in layers} == {layers[0].nbytes}


@pytest.mark.parametrize(("num_layers", "leaving"), [(1, 7), (2, 3), (4, 1)])
def test_of_what_is_computed_again_only_the_input_leaves(
    llama: Model, new_shard: NewShard, num_layers: int, leaving: int
) -> None:
    shard = new_shard(llama)
    layers = offloaded_layers(placed_of(llama, shard), Recomputation.of("full", num_layers=num_layers))
    assert [layer.nbytes for layer in layers] == [shard.residual_nbytes] * leaving


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize(
    "plan",
    [
        {"tp": 2, "zero": 3},
        {"pp": 2},
        {"pp": 2, "vpp": 2},
        {"pp": 4, "schedule": "zb-h1"},
        {"pp": 2, "schedule": "dualpipe"},
    ],
)
def test_what_leaves_comes_back_and_all_is_freed(llama: Model, plan: dict[str, Any], recompute: str) -> None:
    job = job_of(llama, {**plan, "recompute": recompute})
    assert any(HOST_ACTIVATIONS in program.arrays().memory_keys for program in job.programs)
    for program in job.programs:
        arrays = program.arrays()
        assert sorted(copies(program, "d2h")) == sorted(copies(program, "h2d"))
        for number, key in enumerate(arrays.memory_keys):
            assert arrays.memory[arrays.memory[:, 2] == number, 3].sum() == 0, key


def test_the_gpu_holds_less_by_what_the_host_holds_more(llama: Model) -> None:
    """At the peak two layers of one micro-batch are on the GPU, of eight."""
    topology = cs.load_topology("dgx-h100")
    peaks = []
    for on_host in (False, True):
        run = cs.simulate(topology, job_of(llama, {"dp": 4}, on_host=on_host))
        peaks.append(cs.summary(run)["peak_memory_bytes"])
    moved = peaks[1]["host_pinned"]
    assert peaks[0]["host_pinned"] == 0 < moved
    assert peaks[0]["gpu"] - peaks[1]["gpu"] == pytest.approx(moved * 6 / 7, rel=0.1)


def test_activations_come_back_a_layer_ahead(llama: Model) -> None:
    """Each copy is asked for when the backward pass of the layer behind begins, and is there in time here."""
    trace = cs.simulate(cs.load_topology("dgx-h100"), job_of(llama, {"dp": 4}, global_batch=4)).trace
    back = trace[(trace["phase"] == "backward") & (trace["stream"] == "compute")]
    starts = back.groupby("layer")["start_ns"].min()
    brought = trace[trace["name"] == "bring activations"]
    behind = [starts[layer + 1] for layer in range(llama.num_layers - 2, -1, -1)]
    assert brought["ready_ns"].to_list() == behind
    needed = [starts[layer] for layer in range(llama.num_layers - 2, -1, -1)]
    assert all(end <= start for end, start in zip(brought["end_ns"], needed, strict=True))


def test_a_slow_link_shows_as_copies() -> None:
    """Six layers of seven cross twice; a step takes at least that, where the link is that slow."""
    topology = cs.load_topology("workstation-4090")
    model = replace(cs.load_model("llama-2-7b"), num_layers=7)
    steps = []
    for on_host in (False, True):
        plan = cs.ParallelPlan(offload_activations=on_host)
        job = cs.training_step(model, plan, global_batch=1, micro_batch=1, seq_len=4096, num_devices=1)
        run = cs.simulate(topology, job)
        steps.append(cs.summary(run))
    (program,) = job.programs
    link = topology.resources.capacity[topology.local["h2d"].rows[0]].min()
    crossing = sum(copies(program, "d2h")) / link
    exposed = [step["breakdown_s"]["exposed_copy"] for step in steps]
    assert exposed[0] == 0
    assert steps[1]["step_time_s"] == pytest.approx(steps[0]["step_time_s"] + exposed[1], rel=0.02)
    assert 0 < exposed[1] < 2 * crossing


def test_slices_are_refused(llama: Model) -> None:
    with pytest.raises(cs.BadInput) as caught:
        job_of(llama, {"dp": 4, "sequence_slices": 2})
    assert [fault.nearest for fault in caught.value.faults if fault.key == "plan.sequence_slices"]
