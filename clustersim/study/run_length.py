"""How many ops a run has and how long it is, told before it is simulated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clustersim.faults import Fault
from clustersim.topology.topology import Topology
from clustersim.workload.case import Case
from clustersim.workload.checkpoint import Background, Checkpoint
from clustersim.workload.checkpoint.save import usual_rounds
from clustersim.workload.graph import Graph
from clustersim.workload.job import Job
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.training_step import OFFLOADED_ROUNDS

__all__ = ["MOST_OPS", "too_long", "too_many_steps", "too_slow"]

MOST_OPS = 100_000_000
"""Ops of all stages and steps that are still built: their arrays take some 10 GB."""

_LONGEST_S = 365 * 86400
"""A run at the peak of all its GPUs [s]; what it really takes is some times as much, and clocks end after 146 years."""

_OPS_PER_LAYER = 20
"""Ops of one layer and micro-batch, forward and backward, to the nearest ten: what the layers' builders make."""

_SAVED = 14
"""Bytes of a parameter that all ranks save together: Adam's state in fp32 and weights of 16 bits."""


def too_long(case: Case, steps: int | None) -> Iterator[Fault]:
    """A run of more ops than anyone has memory for, refused before it is built.

    Parameters
    ----------
    case : Case
        that is legal
    steps : int, optional
        of the run; None: as many as its job takes by itself, at least
    """
    replicas = 1 if case.seq_lens == "fixed" else case.replicas
    steps = steps or _usual_steps(case.plan)
    played = -(-steps // case.plan.period) * case.plan.period
    if case.plan.checkpoint is not None:
        yield from _too_many_pieces(case, case.plan.checkpoint, saves=played // case.plan.checkpoint.every)
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


def _usual_steps(plan: ParallelPlan) -> int:
    """Of a run that does not say how many; more where a buffer of saves holds several."""
    if plan.period > 1:
        return 2 * plan.period
    if plan.checkpoint is not None:
        return usual_rounds(plan.checkpoint, ())
    return 1 if plan.offload is None else OFFLOADED_ROUNDS


def _too_many_pieces(case: Case, policy: Checkpoint, *, saves: int) -> Iterator[Fault]:
    """Saves that are cut too fine: each piece is copied and written, and some are serialised."""
    pool = policy.pool_bytes if isinstance(policy, Background) else None
    chunk = min(policy.chunk_bytes, pool or policy.chunk_bytes)
    of_stages = _SAVED * case.model.num_parameters // (case.replicas * case.plan.tp * case.plan.cp)
    pieces = -(-of_stages // chunk)
    of_each = saves * (2 + policy.serialises)
    num_ops = pieces * of_each
    if num_ops > MOST_OPS:
        rule = (
            f"makes a run too long: {pieces:.1e} pieces x {saves} saves are about {num_ops:.1e} ops, at most "
            f"{MOST_OPS:.0e} are built"
        )
        key = "chunk_bytes" if chunk == policy.chunk_bytes else "pool_bytes"
        nearest = -(-of_stages // max(1, MOST_OPS // of_each))
        yield Fault(key=f"plan.checkpoint.{key}", value=chunk, rule=rule, nearest=nearest)


def too_many_steps(graph: Graph, steps: int) -> Iterator[Fault]:
    """The same for a graph, each of whose ops is two."""
    num_ops = 2 * len(graph.ops) * steps
    if num_ops > MOST_OPS:
        rule = f"makes a run too long: {num_ops:.1e} ops, at most {MOST_OPS:.0e} are built"
        yield Fault(key="steps", value=steps, rule=rule, nearest=MOST_OPS // (2 * len(graph.ops)))


def too_slow(job: Job, topology: Topology, steps: int | None) -> Iterator[Fault]:
    """Steps that keep the cluster busy for longer than anyone would wait."""
    peaks = np.array([max(gpu.tensor_flop_per_s.values()) for gpu in topology.gpus])
    seconds = job.ledger.model_flops * (steps or job.usual_steps) / float(peaks[topology.gpu_of].sum())
    if seconds > _LONGEST_S:
        rule = f"makes a run too long: {seconds / _LONGEST_S:.2g} years at the peak of all {topology.num_devices} GPUs"
        yield Fault(key="global_batch", value=job.ledger.samples, rule=f"{rule}, at most 1 is simulated")
