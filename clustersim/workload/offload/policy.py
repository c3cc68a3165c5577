"""The seam of offloading: what a policy has to say, and what every policy has in common.

A policy writes no ops. It says of each subgroup where its weights, gradients and optimizer state live (``place``), in
which order subgroups are updated (``order``), what an update waits for (``depends``) and who does it (``tier``). From
these answers ``gradient_path.py``, ``update.py`` and ``resident.py`` write reads, casts, updates and writes, and count
bytes. A policy of one's own is a subclass of :class:`OffloadPolicy` with some of the four methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from clustersim.faults import Fault
from clustersim.topology.drive_rates import DriveRates
from clustersim.workload.offload.casts import Casts
from clustersim.workload.offload.cpu_update import CpuUpdate
from clustersim.workload.offload.drive_queue import DriveQueue
from clustersim.workload.offload.gpu_staging import GpuStaging
from clustersim.workload.offload.gradient_flow import GradientFlow
from clustersim.workload.offload.host_memory import HostMemory
from clustersim.workload.offload.place import Place, Updater
from clustersim.workload.offload.run_ahead import RunAhead
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["OffloadPolicy", "Release"]

Release = Literal["norm", "gradient", "previous step"]


@dataclass(frozen=True, kw_only=True)
class OffloadPolicy(HostMemory, GradientFlow, Casts, CpuUpdate, GpuStaging, DriveQueue, RunAhead):
    """Optimizer state and update on the host, as ZeRO-Offload; the base of all policies.

    What is the same for all subgroups stands in the classes that it is made of, a noun each, and is set by field.

    Parameters
    ----------
    subgroup_size : int
        weights of a rank that are moved and updated together, at least; tensors stay whole
    fused_tensors : bool
        matrices that read one input are one tensor, as Megatron-LM's queries, keys and values, and gate and up
    """

    name: ClassVar[str] = "own"
    period: ClassVar[int] = 1
    """Steps after which orders and caches repeat."""

    subgroup_size: int = 1_000_000_000
    fused_tensors: bool = False

    def fitted(self, *, clip: bool, tokens: int) -> OffloadPolicy:
        """The policy as it works in one job, with what depends on the job decided.

        Parameters
        ----------
        clip : bool
            gradients are clipped by their norm
        tokens : int
            of a micro-batch on one rank
        """
        return self

    def on_drives(self, rates: Mapping[str, DriveRates]) -> OffloadPolicy:
        """The policy as it works on one cluster, with what depends on its drives decided.

        Parameters
        ----------
        rates : Mapping[str, DriveRates]
            of each kind of drive that a node has

        Raises
        ------
        BadInput
            when it needs others
        """
        return self

    def place(self, subgroup: Subgroup) -> Place:
        """Where a subgroup lives."""
        return Place()

    def order(self, subgroups: Sequence[Subgroup], step: int) -> Sequence[int]:
        """Indices in the order of their update, in step ``step`` of the period."""
        return range(len(subgroups))

    def depends(self, subgroup: Subgroup) -> Release:
        """What the update waits for.

        ``norm``: the gradients of all subgroups of the stage, and their norm; ``gradient``: its own; ``previous step``:
        nothing of this step, because it works on the gradients of the step before, beside the passes of this one.
        """
        return "norm"

    def tier(self, subgroup: Subgroup) -> Updater:
        """Who updates it."""
        return "cpu"

    def window(self, subgroup: Subgroup) -> int | None:
        """Which run of neighbours in the order it is in.

        New weights of a window's subgroups that the CPU has updated are cast and sent when all of them are updated, and
        the next window begins when they are there. None: each subgroup's go by themselves, and nothing waits for them.
        """
        return None

    def kept(self, subgroups: Sequence[Subgroup], step: int) -> frozenset[int]:
        """Of subgroups that live on drives, those whose state stays on the host from this step to the next."""
        return frozenset()

    def host_nbytes(self, subgroup: Subgroup) -> float:
        """Bytes a parameter that the host holds besides weights, gradients and states: copies, flat buffers [B]."""
        return 0.0

    def faults(self) -> Iterator[Fault]:
        """What is wrong with its settings, keys as ``plan.offload.stride``."""
        cores = self.update_cores
        if not (cores is None or (type(cores) in (int, float) and 0.01 <= cores <= 0.99)):
            rule = "must be from 0.01 to 0.99: casts and other passes have the rest"
            yield Fault(key="plan.offload.update_cores", value=cores, rule=rule, nearest=0.8)
        for key in ("subgroup_size", "buffers", "gradient_buffers", "staging", "update_threads", "cast_threads"):
            value = getattr(self, key)
            if value is not None and (type(value) is not int or value < 1):
                rule = "must be a whole number, at least 1"
                yield Fault(key=f"plan.offload.{key}", value=value, rule=rule, nearest=1)
