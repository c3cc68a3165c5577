"""Blocks of kernels on a GPU."""

from __future__ import annotations

from clustersim.engine.cost.local_cost import LocalCost, whole_ns
from clustersim.engine.cost.paths import paths
from clustersim.faults import BadInput, Fault
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Cost, CostModel, Provenance
from clustersim.workload.op import Compute

__all__ = ["compute_cost"]


def compute_cost(op: Compute, gpu: GPU, cost: CostModel, slowdown: float) -> LocalCost:
    """One kernel after another; :class:`BadInput` where the GPU has no units for a dtype."""
    seconds: dict[str, float] = {}
    provenance: dict[Provenance, float] = {}
    costs: list[Cost] = []
    for kernel in op.kernels:
        try:
            of = cost(kernel, gpu)
        except KeyError as error:
            what = "form" if kernel.form and kernel.dtype in gpu.tensor_flop_per_s else "dtype"
            key, rule = f"{op.name}.{what}", f"cannot run on {gpu.name}: {error.args[0]}"
            raise BadInput([Fault(key=key, value=getattr(kernel, what), rule=rule)]) from error
        costs.append(of)
        seconds[of.bound] = seconds.get(of.bound, 0.0) + of.seconds * slowdown
        provenance[of.provenance] = provenance.get(of.provenance, 0.0) + of.seconds * slowdown
    total = sum(seconds.values())
    sm_bound = seconds.get("tensor", 0.0) + seconds.get("vector", 0.0)
    bound = max(seconds, key=lambda b: seconds[b]) if seconds else "launch"
    sm_ns = min(whole_ns(sm_bound), whole_ns(total))
    crowded_ns = round(sm_ns * gpu.crowding)
    return LocalCost(whole_ns(total), sm_ns, bound, provenance, paths(op), tuple(costs), crowded_ns)
