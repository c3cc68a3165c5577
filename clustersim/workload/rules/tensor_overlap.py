"""What makes the words on overlapped tensor parallelism legal, and when they have nothing to say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from clustersim.faults import Fault, nearest_name
from clustersim.workload.case import Case
from clustersim.workload.tensor_overlap import TensorOverlap, TpOverlap

__all__ = ["TENSOR_OVERLAP_KEYS", "tensor_overlap_faults", "tensor_overlap_notes", "tensor_overlap_values"]

TENSOR_OVERLAP_KEYS = ("plan.tp_overlap", "plan.tp_overlap_chunks")
"""Settings of which :func:`tensor_overlap_values` checks each by itself."""

_CUT = frozenset({"attention", "mlp"})
"""Sublayers whose products are written to take and give tokens in parts."""


def tensor_overlap_values(case: Case) -> Iterator[Fault]:
    """Each setting by itself."""
    word, count = case.plan.tp_overlap, case.plan.tp_overlap_chunks
    names = get_args(TpOverlap)
    if word not in names:
        nearest = nearest_name(str(word), names) or "none"
        yield Fault(key="plan.tp_overlap", value=word, rule=f"must be one of {', '.join(names)}", nearest=nearest)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        yield Fault(key="plan.tp_overlap_chunks", value=count, rule="must be a whole number from 1", nearest=1)


def tensor_overlap_faults(case: Case) -> Iterator[Fault]:
    """Tokens can come in parts where they are gathered at all, which is under sequence parallelism.

    References
    ----------
    Megatron-LM, ``megatron/training/arguments.py``, ``validate_args``: ``tp_comm_overlap`` needs sequence parallelism.
    """
    plan = case.plan
    if plan.tp_overlap == "none" or plan.tp == 1:
        return
    if not case.sequence_parallel:
        rule = "needs plan.sequence_parallel: an all-reduce has no tokens that come before others"
        yield Fault(key="plan.tp_overlap", value=plan.tp_overlap, rule=rule, nearest="none")
        return
    rows = case.micro_batch * case.seq_len // (plan.cp * plan.tp * plan.sequence_slices)
    if _in_chunks(case) and plan.tp_overlap_chunks > rows:
        rule = f"must be at most the {rows} tokens of a rank"
        yield Fault(key="plan.tp_overlap_chunks", value=plan.tp_overlap_chunks, rule=rule, nearest=max(1, rows))


def tensor_overlap_notes(case: Case) -> Iterator[str]:
    """Settings without effect."""
    plan = case.plan
    if plan.tp_overlap != "none" and plan.tp == 1:
        yield "plan.tp_overlap: no effect with tp 1"
    elif plan.tp_overlap != "none":
        others = sorted(set(case.model.num_sublayers()) - _CUT)
        if not set(case.model.num_sublayers()) & _CUT:
            yield f"plan.tp_overlap: no effect on {', '.join(others)}, whose collectives stay whole"
        elif others:
            yield f"plan.tp_overlap: the collectives of {', '.join(others)} stay whole"
    if plan.tp_overlap_chunks != 4 and not _in_chunks(case):
        yield "plan.tp_overlap_chunks: no effect without plan.tp_overlap pipeline or userbuffers"


def _in_chunks(case: Case) -> bool:
    overlap = TensorOverlap.of(case.plan.tp_overlap)
    return "pipeline" in (overlap.gather, overlap.reduce)
