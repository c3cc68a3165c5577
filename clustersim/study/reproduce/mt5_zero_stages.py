"""Stages of ZeRO for mT5 of 13 billion parameters on nodes of A100 (Benington et al.).

Its numbers are not at hand: only the order of the two stages at every number of nodes.
"""

from __future__ import annotations

from functools import partial

from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System

__all__ = ["MT5_ZERO_STAGES", "step_time"]

_JOB = "mt5-xxl-zero-16"


def step_time(runs: Runs, nodes: int, stage: int, *, micro_batch: int = 1, micro_batches: int = 1) -> float:
    """Of one stage on so many nodes [s]."""
    values = {"nodes": nodes, "plan.dp": 8 * nodes, "plan.zero": stage, "micro_batch": micro_batch, "steps": 2}
    values |= {"global_batch": 8 * nodes * micro_batch * micro_batches}
    found = runs.step(_JOB, values)
    if not found["fits"]:
        raise ValueError(f"micro_batch {micro_batch} does not fit on {nodes} nodes under stage {stage}")
    return float(found["step_time_s"])


def _two_over_three(runs: Runs, nodes: int) -> float:
    two, three = (step_time(runs, nodes, stage) for stage in (2, 3))
    return two / three


MT5_ZERO_STAGES = System(
    number="15",
    name="mt5-zero-stages",
    paper="Scaling Studies for Efficient Parameter Search and Parallelism for Large Language Model Pre-training",
    year=2023,
    arxiv="2310.05350",
    quantities=tuple(
        Quantity(
            name=f"step of stage 2 against stage 3, {nodes} nodes",
            published=1,
            unit="x",
            relation="<",
            grade="S",
            job=_JOB,
            simulated=partial(_two_over_three, nodes=nodes),
        )
        for nodes in (2, 4, 8)
    ),
)
