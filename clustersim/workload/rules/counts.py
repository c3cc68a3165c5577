"""Whole numbers, each by itself."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from typing import SupportsIndex

from clustersim.faults import Fault
from clustersim.workload.case import Case

__all__ = ["count_faults"]


def count_faults(case: Case) -> Iterator[Fault]:
    """Whole numbers from 1, and from 0."""
    plan = case.plan
    given = ("tp", "pp", "cp", "ep", "sync_ranks", "zeropp_ranks", "sequence_slices")
    values = {f"plan.{n}": getattr(plan, n) for n in given}
    values |= {n: getattr(case, n) for n in ("global_batch", "micro_batch", "seq_len")}
    names = ("dp", "vpp", "bucket_bytes", "hsdp", "sync_every", "recompute_layers", "ulysses")
    optional = {f"plan.{n}": getattr(plan, n) for n in names}
    optional["num_devices"] = case.num_devices
    values |= {key: value for key, value in optional.items() if value is not None}
    for key, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            number = index(value) if isinstance(value, SupportsIndex) else value  # NumPy's whole numbers are no int
            nearest = max(1, round(number)) if isinstance(number, int | float) and abs(number) < 2**63 else 1
            yield Fault(key=key, value=value, rule="must be a whole number from 1", nearest=nearest)
    usual = {"prefetch": 1, "logged_losses": 0, "bf16_layers_at_start": 0, "bf16_layers_at_end": 0}
    for name, default in usual.items():
        count = getattr(plan, name)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            yield Fault(key=f"plan.{name}", value=count, rule="must be a whole number from 0", nearest=default)
