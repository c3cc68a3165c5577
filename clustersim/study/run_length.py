"""How many ops a run has, told before it is built."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.graph import Graph

__all__ = ["MOST_OPS", "too_long", "too_many_steps"]

MOST_OPS = 100_000_000
"""Ops of all stages and steps that are still built: their arrays take some 10 GB."""

_OPS_PER_LAYER = 20
"""Ops of one layer and micro-batch, forward and backward, to the nearest ten: what the layers' builders make."""


def too_long(case: Case, steps: int) -> Iterator[Fault]:
    """A run of more ops than anyone has memory for, refused before it is built."""
    replicas = 1 if case.seq_lens == "fixed" else case.replicas
    played = -(-steps // case.plan.period) * case.plan.period
    num_ops = replicas * case.num_micro_batches * case.model.num_layers * _OPS_PER_LAYER * played
    if num_ops > MOST_OPS:
        rule = (
            f"makes a run too long: {case.num_micro_batches} micro-batches x {case.model.num_layers} layers x steps "
            f"{steps} are about {num_ops:.1e} ops, at most {MOST_OPS:.0e} are built"
        )
        if played > steps:
            rule += f"; a round of the programs is {case.plan.period} steps"
        each = case.replicas * case.micro_batch
        nearest = max(1, MOST_OPS * case.num_micro_batches // num_ops) * each
        yield Fault(key="global_batch", value=case.global_batch, rule=rule, nearest=nearest)


def too_many_steps(graph: Graph, steps: int) -> Iterator[Fault]:
    """The same for a graph, each of whose ops is two."""
    num_ops = 2 * len(graph.ops) * steps
    if num_ops > MOST_OPS:
        rule = f"makes a run too long: {num_ops:.1e} ops, at most {MOST_OPS:.0e} are built"
        yield Fault(key="steps", value=steps, rule=rule, nearest=MOST_OPS // (2 * len(graph.ops)))
