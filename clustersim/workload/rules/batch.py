"""Sequences of a step over replicas and micro-batches."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.schedule import SCHEDULES, legal

__all__ = ["batch_faults"]


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
