"""What a rank's own ops take alone: kernels, copies, drives, the host."""

from __future__ import annotations

from clustersim.engine.cost.compute_cost import compute_cost
from clustersim.engine.cost.host_cost import launch_cost, work_cost
from clustersim.engine.cost.local_cost import LocalCost
from clustersim.engine.cost.transfer_cost import transfer_cost
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import CostModel
from clustersim.topology.topology import Topology
from clustersim.workload.op import Collective, Compute, Copy, Delay, HostLaunch, HostWork, Op, Storage

__all__ = ["local_cost"]


def local_cost(
    op: Op, gpu: GPU, cpu: CPU, device: int, topology: Topology, cost: CostModel, slowdown: float
) -> LocalCost:
    """Cost of ``op`` on ``device``.

    Parameters
    ----------
    slowdown : float
        factor on what the GPU and the CPU compute (a straggler has more than 1); copies keep their links' speed

    Raises
    ------
    BadInput
        when the topology has no path of that kind, a drive where the node has none, the GPU no units for a dtype, or
        the CPU no launch times or no rate for memory that is not pinned
    """
    match op:
        case Compute():
            return compute_cost(op, gpu, cost, slowdown)
        case Delay():
            return LocalCost(
                round(op.measured_ns * slowdown), 0, "measured", {"measured": op.measured_ns * slowdown / 1e9}
            )
        case HostWork():
            return work_cost(op, cpu, device, topology, slowdown)
        case HostLaunch():
            return launch_cost(op, cpu, slowdown)
        case Copy() | Storage():
            return transfer_cost(op, cpu, device, topology)
        case Collective():
            raise TypeError(f"{op.name}: a collective has no local cost")
