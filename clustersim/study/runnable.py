"""Whether a cluster has the units, kernels and drives that a job uses, told by the settings that ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from clustersim.faults import Fault
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import CostModel, Kernel
from clustersim.topology.drive_rates import drive_rates
from clustersim.topology.topology import Topology
from clustersim.workload.case import Case
from clustersim.workload.job import Job
from clustersim.workload.op import Compute, Storage
from clustersim.workload.precision import find_recipe
from clustersim.workload.shard import FP8_ATTENTION, FP8_KERNELS

__all__ = ["absent_drives", "unrunnable"]

_USUAL = ("bf16", "fp16")
_DRIVES = {"nvme": "its nodes have no drives", "file_system": "it has no storage"}


def unrunnable(
    job: Job, topology: Topology, cost: CostModel, *, dtype: Any, module_dtypes: Sequence[str] = ()
) -> Iterator[Fault]:
    """Number formats and attention kernels that a GPU of the cluster does not have, one fault each and GPU.

    Parameters
    ----------
    job : Job
        that trains a model
    topology : Topology
    cost : CostModel
        that the run will ask
    dtype : Any
        as the job sets it
    module_dtypes : Sequence[str]
        ``plan.module_dtypes``
    """
    arrays = [program.arrays() for program in job.programs]
    kernels = (k for each in arrays for op in each.ops if isinstance(op, Compute) for k in op.kernels)
    one_of_each = {(k.kind, k.dtype, k.form): k for k in kernels if k.kind != "memory"}
    found: dict[tuple[str, str], Fault] = {}
    for gpu in topology.gpus:
        for kernel in one_of_each.values():
            try:
                cost(kernel, gpu)
            except KeyError as error:
                fault = _fault(kernel, gpu, str(error.args[0]), dtype, module_dtypes)
                found.setdefault((fault.key, gpu.name), fault)
    yield from found.values()


def _fault(kernel: Kernel, gpu: GPU, told: str, dtype: Any, module_dtypes: Sequence[str]) -> Fault:
    rule = f"cannot run on {gpu.name}: {told}"
    if kernel.dtype in gpu.tensor_flop_per_s or kernel.form in FP8_KERNELS.values():
        value = FP8_ATTENTION if kernel.form in FP8_KERNELS.values() else kernel.form
        return Fault(key="plan.attention", value=value, rule=rule, nearest="flash")
    asked = [item for item in module_dtypes if _operands(item.partition(":")[2]) == kernel.dtype]
    if asked and _operands(dtype) != kernel.dtype:
        module = asked[0].partition(":")[0]
        return Fault(key="plan.module_dtypes", value=asked[0], rule=rule, nearest=f"{module}:bf16")
    nearest = next((name for name in _USUAL if name in gpu.tensor_flop_per_s), None)
    return Fault(key="dtype", value=dtype, rule=rule, nearest=nearest)


def _operands(dtype: Any) -> str:
    """Units that multiply the operands of a recipe's linear products."""
    return find_recipe(dtype).weight_operand.dtype


def absent_drives(case: Case, job: Job, topology: Topology) -> Iterator[Fault]:
    """Tiers that the job writes to or reads from and the cluster does not have."""
    ops = (op for program in job.programs for op in program.arrays().ops if isinstance(op, Storage))
    used = {"file_system" if op.kind.startswith("fs") else "nvme" for op in ops}
    plan, there = case.plan, drive_rates(topology)
    for tier in sorted(used - set(there)):
        rule = f"is no tier of {topology.name}: {_DRIVES[tier]}"
        if plan.checkpoint is not None and plan.checkpoint.tier == tier:
            yield Fault(key="plan.checkpoint.tier", value=tier, rule=rule, nearest=next(iter(there), "host"))
        elif plan.offload is not None:
            rule = f"keeps bytes on {tier}, which {rule}"
            yield Fault(key="plan.offload.policy", value=plan.offload.name, rule=rule, nearest="zero-offload")
