"""Whether a cluster's GPUs have units and kernels for what a job computes, told by the settings that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clustersim.faults import Fault
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import CostModel, Kernel
from clustersim.topology.topology import Topology
from clustersim.workload.job import Job
from clustersim.workload.op import Compute

__all__ = ["unrunnable"]

_USUAL = ("bf16", "fp16")


def unrunnable(job: Job, topology: Topology, cost: CostModel, *, dtype: Any) -> Iterator[Fault]:
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
                fault = _fault(kernel, gpu, str(error.args[0]), dtype)
                found.setdefault((fault.key, gpu.name), fault)
    yield from found.values()


def _fault(kernel: Kernel, gpu: GPU, told: str, dtype: Any) -> Fault:
    rule = f"cannot run on {gpu.name}: {told}"
    if kernel.dtype in gpu.tensor_flop_per_s:
        return Fault(key="plan.attention", value=kernel.form, rule=rule, nearest="flash")
    nearest = next((name for name in _USUAL if name in gpu.tensor_flop_per_s), None)
    return Fault(key="dtype", value=dtype, rule=rule, nearest=nearest)
