"""What a placement is judged by before the run: times of ops alone, and of transfers alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import CostModel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.units import Unit
from clustersim.workload.op import Compute, Delay

__all__ = ["Estimate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Times of ops and messages that have their device and their link to themselves.

    Parameters
    ----------
    bandwidth : float
        between any two devices of a worker, one direction [B/s]
    latency : float
        of a transfer, beside its bytes [s]
    gpu : GPU, optional
        what ops run on; not needed where the table gives seconds
    cost : CostModel
        seconds of a kernel

    Raises
    ------
    ValueError
        when the bandwidth is not positive or the latency is negative
    """

    bandwidth: Annotated[float, Unit("B/s")]
    latency: Annotated[float, Unit("s")] = 0.0
    gpu: GPU | None = None
    cost: CostModel = kernel_cost

    def __post_init__(self) -> None:
        if not self.bandwidth > 0:
            raise ValueError(f"bandwidth: {self.bandwidth} must be positive")
        if not self.latency >= 0:
            raise ValueError(f"latency: {self.latency} must not be negative")

    def compute(self, op: Compute | Delay) -> float:
        """Seconds of an op alone [s].

        Raises
        ------
        ValueError
            when the op gives work and there is no ``gpu``
        """
        if isinstance(op, Delay):
            return op.measured_ns / 1e9
        if self.gpu is None:
            raise ValueError(f"gpu: None must be a GPU: {op.name} gives work, not seconds")
        return sum(self.cost(kernel, self.gpu).seconds for kernel in op.kernels)

    def transfer(self, nbytes: int) -> float:
        """Seconds of a message alone [s]."""
        return self.latency + nbytes / self.bandwidth
