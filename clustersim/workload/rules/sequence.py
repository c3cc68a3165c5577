"""The length of a sequence."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case

__all__ = ["sequence_faults"]


def sequence_faults(case: Case) -> Iterator[Fault]:
    """A length that ranks can divide; an image has as many tokens as it has."""
    tp, seq_len, model = case.plan.tp, case.seq_len, case.model
    tokens = seq_len if model.patches is None else model.patches.num_tokens
    if case.sequence_parallel and model.patches is not None and tokens % tp:
        rule = f"must be false with the {tokens} tokens of an image, which tp {tp} does not divide"
        yield Fault(key="plan.sequence_parallel", value=True, rule=rule, nearest=False)
    elif case.sequence_parallel and case.plan.cp == 1 and seq_len % tp:
        rule = f"must be a multiple of tp {tp} with sequence parallelism"
        yield Fault(key="seq_len", value=seq_len, rule=rule, nearest=max(1, round(seq_len / tp)) * tp)
    if model.positions == "learned" and seq_len > model.max_seq_len:
        rule = f"must be at most the {model.max_seq_len} positions that the model has learned"
        yield Fault(key="seq_len", value=seq_len, rule=rule, nearest=model.max_seq_len)
