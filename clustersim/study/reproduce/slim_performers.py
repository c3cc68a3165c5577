"""Linear attention whose backward pass goes slice by slice (Likhosherstov et al.)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clustersim.analysis.summary import summary
from clustersim.engine.simulate import simulate
from clustersim.library.model import load_model
from clustersim.library.topologies import load_topology
from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.training_step import training_step

__all__ = ["LENGTH", "SLIM_PERFORMERS", "sliced_run"]

LENGTH = 2**15
"""Of the longest sequence tried [token]."""


def sliced_run(length: int, slices: int) -> Mapping[str, Any]:
    """One sequence through a Performer of 125 million parameters on one A100.

    Without positions, whose table would grow with the sequence.

    Returns
    -------
    Mapping[str, Any]
        the summary, and ``activations``: the peak beyond weights, gradients and optimizer [B]
    """
    model = replace(load_model("performer-125m"), positions="none")
    plan = ParallelPlan(dp=1, sequence_slices=slices)
    job = training_step(model, plan, global_batch=1, micro_batch=1, seq_len=length)
    result = simulate(load_topology("dgx-a100", nodes=1), job)
    found, held = summary(result), sum(result.record.lanes[0].arrays.resident.values())
    return found | {"activations": found["peak_memory_bytes"]["gpu"] - held}


def _memory(runs: Runs) -> float:
    """Activations of a sequence over those of one a fourth as long, in slices of one size."""
    short, long = (runs.once(sliced_run, length, length // 1024) for length in (LENGTH // 4, LENGTH))
    return float(long["activations"] / short["activations"])


def _time(runs: Runs) -> float:
    """What the second half of a sequence takes over what its second quarter does, in slices of one size."""
    lengths = (LENGTH // 4, LENGTH // 2, LENGTH)
    quarter, half, whole = (runs.once(sliced_run, length, length // 1024)["step_time_s"] for length in lengths)
    return float((whole - half) / (half - quarter))


def _work(runs: Runs) -> float:
    two, one = (runs.once(sliced_run, LENGTH, slices)["step_time_s"] for slices in (2, 1))
    return float(two / one)


SLIM_PERFORMERS = System(
    number="16",
    name="slim-performers",
    paper="Sub-Linear Memory: How to Make Performers SLiM",
    year=2020,
    arxiv="2012.11346",
    quantities=(
        Quantity(
            name="memory of 4 times the sequence, slices of one size",
            published=1,
            unit="x",
            grade="S",
            tolerance=0.001,
            simulated=_memory,
        ),
        Quantity(
            name="time of 2 times the further tokens, slices of one size",
            published=2,
            unit="x",
            grade="S",
            tolerance=0.001,
            simulated=_time,
        ),
        Quantity(
            name="time in two slices over one: a forward pass more",
            published=4 / 3,
            unit="x",
            grade="D",
            tolerance=0.1,
            simulated=_work,
        ),
    ),
)
