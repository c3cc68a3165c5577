"""Sequences of a step over replicas and micro-batches."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.schedule import SCHEDULES, legal

__all__ = ["batch_faults", "pass_faults"]

_MOST_NUMBERS = 2**46
"""Of a pass, in the widest tensor that ranks exchange: in four bytes each they are half of the largest payload."""


def pass_faults(case: Case) -> Iterator[Fault]:
    """Tokens of a micro-batch whose bytes cannot be counted."""
    experts = case.model.experts
    columns = case.model.hidden * (experts.top_k if experts else 1)
    seq_len, micro_batch = case.seq_len, case.micro_batch
    most = _MOST_NUMBERS // columns
    if seq_len > most:
        rule = f"must be at most {most}: a tensor of its {columns} columns has too many bytes to be counted"
        yield Fault(key="seq_len", value=seq_len, rule=rule, nearest=most)
    elif micro_batch * seq_len > most:
        rule = f"must be at most {most // seq_len} with seq_len {seq_len}: {columns} columns have too many bytes"
        yield Fault(key="micro_batch", value=micro_batch, rule=rule, nearest=most // seq_len)


def batch_faults(case: Case) -> Iterator[Fault]:
    dp, micro_batch, batch = case.replicas, case.micro_batch, case.global_batch
    each = dp * micro_batch
    by = f"dp {dp} x micro_batch {micro_batch}"
    if batch % each:
        rule = f"must be a multiple of {by} = {each}"
        yield Fault(key="global_batch", value=batch, rule=rule, nearest=max(1, round(batch / each)) * each)
    elif case.schedule in SCHEDULES:
        count = case.num_micro_batches
        for fault in legal(str(case.schedule), case.plan.pp, case.num_virtual, count):
            if fault.key == "num_micro_batches" and isinstance(fault.nearest, int):
                rule = f"gives {count} micro-batches a replica; {fault.rule}, each {by} = {each} sequences"
                yield Fault(key="global_batch", value=batch, rule=rule, nearest=fault.nearest * each)
