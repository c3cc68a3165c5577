"""The product of the degrees of parallelism, and the devices it fills."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case

__all__ = ["device_faults"]


def device_faults(case: Case) -> Iterator[Fault]:
    plan, devices, each = case.plan, case.num_devices, case.ranks_per_replica
    degrees = f"tp {plan.tp}{f' x cp {plan.cp}' if plan.cp > 1 else ''} x pp {plan.pp}"
    if devices is None:
        if plan.dp is None:
            rule = f"must be given, or the number of devices: {degrees} x dp ? has no end"
            yield Fault(key="plan.dp", value=None, rule=rule, nearest=1)
    elif plan.dp is None and devices % each:
        below, above = devices // each * each, (devices // each + 1) * each
        rule = f"is not a multiple of {each}: {degrees} x dp ? = {devices} devices"
        nearest = f"{below} or {above}" if below else str(above)
        yield Fault(key="num_devices", value=devices, rule=rule, nearest=nearest)
    elif plan.dp is not None and plan.dp * each != devices:
        ranks = plan.dp * each
        rule = f"does not fill {devices} devices: {degrees} x dp {plan.dp} = {ranks}"
        fits = devices % each == 0
        yield Fault(
            key="plan.dp" if fits else "num_devices",
            value=plan.dp if fits else devices,
            rule=rule if fits else f"is not {degrees} x dp {plan.dp} = {ranks}",
            nearest=devices // each if fits else ranks,
        )
