"""What no step is written for yet."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.unsupported import unsupported_parts

__all__ = ["unsupported_faults"]


def unsupported_faults(case: Case) -> Iterator[Fault]:
    plan = case.plan
    if missing := unsupported_parts(case.model):
        rule = f"cannot be simulated yet: {', '.join(missing)}"
        yield Fault(key="model", value=case.model.name, rule=rule)
    if plan.zero not in (0, 1, 2, 3) or type(plan.zero) is not int:
        is_number = isinstance(plan.zero, int | float) and plan.zero == plan.zero
        nearest = round(min(3, max(0, plan.zero))) if is_number else 0
        yield Fault(key="plan.zero", value=plan.zero, rule="must be 0, 1, 2 or 3", nearest=nearest)
