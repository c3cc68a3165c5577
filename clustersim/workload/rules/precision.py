"""Number formats against each other."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.precision import find_recipe

__all__ = ["gradient_faults"]


def gradient_faults(case: Case) -> Iterator[Fault]:
    given, width = case.plan.gradient_dtype, find_recipe(case.dtype).activations
    if given not in (None, "fp32", width):
        rule = f"must be fp32 or the training dtype {width}"
        yield Fault(key="plan.gradient_dtype", value=given, rule=rule, nearest=width)
