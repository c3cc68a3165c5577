"""HSDP: three times the weights inside groups, the shards' gradients between them, one copy a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.sharding import hsdp, zero


@pytest.mark.parametrize("inner", [2, 4, 8])
def test_volume_and_memory(
    inner: int, model: cs.Model, new_step: Callable[..., cs.Job], payloads: Callable[..., Any]
) -> None:
    job = new_step(fsdp=True, hsdp=inner, micro_batches=1)
    nbytes = 2 * model.num_parameters
    assert payloads(job) == {
        ("dp_inner", "all_gather"): 2 * nbytes,
        ("dp_inner", "reduce_scatter"): nbytes,
        ("dp_outer", "all_reduce"): nbytes // inner,
    }
    assert sum(job.programs[0].resident.values()) == pytest.approx(16 * model.num_parameters / inner, abs=16)
    sizes = {family.name: family.members.shape for family in job.families}
    assert sizes["dp_inner"] == (16 // inner, inner)
    assert sizes["dp_outer"] == (inner, 16 // inner)


def test_ends_of_the_scale() -> None:
    widths: dict[str, Any] = {"weight": 2, "gradient": 4}
    assert hsdp(8, inner=8, **widths) == zero(8, stage=3, **widths)
    whole = hsdp(8, inner=1, **widths)
    assert [move.kind for move in whole.reduce] == ["all_reduce"]
    assert (whole.weights, whole.gather) == (1, ())


def test_the_all_reduce_runs_beside_the_next_reduce_scatter(new_step: Callable[..., cs.Job]) -> None:
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=2), new_step(fsdp=True, hsdp=8, micro_batches=1))
    trace = run.trace
    summed = trace[trace["kind"] == "all_reduce"]
    scattered = trace[trace["kind"] == "reduce_scatter"]
    assert len(summed) == len(scattered) > 2
    beside = [
        ((scattered["start_ns"] < end) & (scattered["end_ns"] > start)).any()
        for start, end in zip(summed["start_ns"], summed["end_ns"], strict=True)
    ]
    assert any(beside)
    assert not beside[-1]  # after the last one there is none
