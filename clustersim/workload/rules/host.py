"""The host that issues kernels, and how operators and the update are cut into them."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case

__all__ = ["HOST_KEYS", "host_faults", "host_notes"]

HOST_KEYS = (
    "plan.tp",
    "plan.pp",
    "plan.loss",
    "plan.update_kernels",
    "plan.gradient_passes",
    "plan.optimizer",
    "plan.schedule",
    "plan.vpp",
    "plan.wait_layers",
    "plan.wait_messages",
    "plan.wait_kernels",
)

_SEPARATE = ("adam", "adamw")


def host_faults(case: Case) -> Iterator[Fault]:
    """Losses over a split vocabulary, updates known as one kernel only, messages that could wait for each other."""
    plan = case.plan
    if plan.loss != "parallel" and plan.tp > 1:
        rule = "is for a whole vocabulary; with plan.tp above 1 it is split"
        yield Fault(key="plan.loss", value=plan.loss, rule=rule, nearest="parallel")
    for name in ("wait_layers", "wait_messages", "wait_kernels"):
        if getattr(plan, name) and plan.launch != "none" and plan.pp > 1 and case.schedule != "1f1b":
            rule = "is for plan.schedule 1f1b: a host that waits under another could wait for ever"
            yield Fault(key=f"plan.{name}", value=True, rule=rule, nearest=False)
    if plan.gradient_passes and (plan.fsdp or plan.zero >= 2 or plan.sync_every):
        rule = "is for whole gradients that are reduced once a step: plan.zero 0 or 1, no plan.fsdp, no plan.sync_every"
        yield Fault(key="plan.gradient_passes", value=list(plan.gradient_passes), rule=rule, nearest=[])
    if plan.update_kernels != "fused" and plan.optimizer not in _SEPARATE:
        rule = f"is for {' and '.join(_SEPARATE)}; the kernels of other updates are not known one by one"
        yield Fault(key="plan.update_kernels", value=plan.update_kernels, rule=rule, nearest="fused")


def host_notes(case: Case) -> Iterator[str]:
    """Settings without effect."""
    plan = case.plan
    for name in ("wait_norm", "wait_layers", "module_hooks", "wait_messages", "wait_kernels", "memory_breakdown"):
        if getattr(plan, name) and plan.launch == "none":
            yield f"plan.{name}: no effect without plan.launch"
    if plan.gradient_passes and plan.offload is not None:
        yield "plan.gradient_passes: no effect with plan.offload"
    elif tuple(plan.gradient_passes) == ("average",) and case.replicas * plan.cp == 1:
        yield "plan.gradient_passes: average has no effect with one replica"
    if plan.cuda_graphs and plan.launch not in ("layers", "modules"):
        yield "plan.cuda_graphs: no effect without plan.launch layers or modules"
    if plan.wait_messages and plan.launch != "none" and plan.pp == 1:
        yield "plan.wait_messages: no effect with pp 1"
