"""The seam of offloading: what a policy has to say, and what every policy has in common.

A policy writes no ops. It says of each subgroup where its weights, gradients and optimizer state live (``place``), in
which order subgroups are updated (``order``), what an update waits for (``depends``) and who does it (``tier``). From
these answers ``gradient_path.py``, ``update.py`` and ``resident.py`` write reads, casts, updates and writes, and count
bytes. A policy of one's own is a subclass of :class:`OffloadPolicy` with some of the four methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from clustersim.faults import Fault
from clustersim.topology.drive_rates import DriveRates
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.op import Memory

__all__ = ["DRIVES", "Adam", "Cast", "Drive", "OffloadPolicy", "Place", "Release", "Tier", "Updater"]

Tier = Literal["gpu", "host", "nvme", "file_system"]
Drive = Literal["nvme", "file_system"]
DRIVES: tuple[Drive, ...] = get_args(Drive)
Updater = Literal["cpu", "gpu"]
Release = Literal["norm", "gradient", "previous step"]
Cast = Literal["gpu", "cpu", "late", "update"]
Adam = Literal["adam", "adam_torch", "adam_tuned"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a subgroup lives between steps.

    Parameters
    ----------
    weights, gradients, states : {"gpu", "host", "nvme", "file_system"}
        of the weights that the passes read; of gradients from the backward pass to the update; of the fp32 weights and
        the optimizer's averages
    """

    weights: Tier = "gpu"
    gradients: Tier = "host"
    states: Tier = "host"


@dataclass(frozen=True, kw_only=True)
class OffloadPolicy:
    """Optimizer state and update on the host, as ZeRO-Offload; the base of all policies.

    Parameters
    ----------
    subgroup_size : int
        weights of a rank that are moved and updated together, at least; tensors stay whole
    fused_tensors : bool
        matrices that read one input are one tensor, as Megatron-LM's queries, keys and values, and gate and up
    pinned : bool
        host memory is page-locked; else copies go through the driver's staging buffer and hold up who asks for them
    pinned_weights : bool, optional
        the same of what new weights are copied from alone; None: as ``pinned``
    pinned_states : bool, optional
        the same of optimizer states alone; None: as ``pinned``
    powers_of_two : bool
        pinned memory is taken in powers of two, a piece for each tensor, as PyTorch's allocator of the host does
    binding : {"numa", "none"}
        threads and memory of a rank stay on the socket of its GPU, or lie anywhere on the node
    adam : {"adam", "adam_torch", "adam_tuned"}
        how the CPU's update is written: vectorised (DeepSpeed's CPU-Adam), PyTorch's, or for this very CPU
    cast : {"gpu", "cpu", "late", "update"}
        who turns gradients into fp32 and new weights into 16 bits: the GPU, so that 4 bytes a parameter cross the
        link; the CPU in passes of its own, of gradients when they come or, ``late``, right before their update; or its
        update in passing
    cast_weights : {"gpu", "cpu", "update"}, optional
        the same of new weights alone; None: as ``cast``
    update_threads, cast_threads : int, optional
        of the CPU's updates, and of its casts; None: the rank's share of the cores, which is even over the GPUs of
        the socket, used or not
    update_cores : float, optional
        part of the rank's cores that a process of its own has for the CPU's updates, in (0, 1); passes have the others.
        None: both have all
    temporaries : bool
        what the CPU casts in passes of its own crosses the link through memory that is allocated for each copy: not
        pinned, and its pages touched for the first time
    flat_buffer : bool
        gradients of each micro-batch pass through a pinned buffer of their own format on the host: there, and back to
        the GPU, which adds them up and takes their norm in fp64; those of the last go on to their place
    scales : bool
        gradients are scaled, and clipped, by a pass of its own before the update
    norm : {"gpu", "cpu"}
        who takes the norm of the gradients that are on the host
    blocking : bool
        the backward pass stands still until a gradient has come to the host
    gradient_buffers : int, optional
        of the largest subgroup's gradients in fp32, for those on their way to drives: when all are full, the backward
        pass stands still until all are written; None: as many as it takes
    serial : bool
        one thread does the CPU's update, its casts and the copies of weights in turn; else they are a pipeline
    collects : bool
        new weights are cast and copied, and gradients scaled for nothing, when all updates are through, by another
        thread than that of the updates; else each behind its update
    in_turn : bool
        one thread asks for the updates in their order and waits for each, also those of the GPU; else CPU and GPU work
        beside each other
    each_micro_batch : bool
        gradients leave the GPU with each micro-batch and are added up on the host; else they stay until all are added
    overlaps_forward : bool
        the next forward pass begins when the first weights are there; else when the update is through
    validates : bool
        of updates that wait for their own gradients alone: when all gradients are there, a pass of the CPU over them,
        which the updates of the next step wait for, says whether they were right to go on
    rolls_back : bool
        of ``validates``: they were not. The CPU takes its updates back, each as long as an update, and does them again
    buffers : int
        subgroups that are on their way from or to one kind of drive, or wait for it, at a time
    read_ahead : bool
        reads run ahead of the updates as far as there are buffers; else each follows the update before it
    write_behind : bool
        updates go on while their states are written; else each waits for the write before it
    staging : int
        subgroups whose state is on the GPU at a time to be updated there
    duplex : bool
        states that come to the GPU and states that leave it pass beside each other; else in turn
    lock : bool
        one rank of a node reads, and one writes, a drive or file system at a time
    """

    name: ClassVar[str] = "own"
    period: ClassVar[int] = 1
    """Steps after which orders and caches repeat."""

    subgroup_size: int = 1_000_000_000
    fused_tensors: bool = False
    pinned: bool = True
    pinned_weights: bool | None = None
    pinned_states: bool | None = None
    powers_of_two: bool = False
    binding: Literal["numa", "none"] = "numa"
    adam: Adam = "adam"
    cast: Cast = "update"
    cast_weights: Cast | None = None
    update_threads: int | None = None
    cast_threads: int | None = None
    update_cores: float | None = None
    temporaries: bool = False
    flat_buffer: bool = False
    scales: bool = False
    norm: Updater = "gpu"
    blocking: bool = False
    gradient_buffers: int | None = None
    serial: bool = False
    collects: bool = False
    in_turn: bool = False
    each_micro_batch: bool = True
    overlaps_forward: bool = False
    validates: bool = False
    rolls_back: bool = False
    buffers: int = 2
    read_ahead: bool = True
    write_behind: bool = True
    staging: int = 1
    duplex: bool = True
    lock: bool = False

    @property
    def parts(self) -> tuple[float, float]:
        """Of the rank's cores for the CPU's updates, and for its passes."""
        return (1.0, 1.0) if self.update_cores is None else (self.update_cores, 1 - self.update_cores)

    @property
    def memory(self) -> Memory:
        """Which host memory its copies and passes use."""
        return "near" if self.binding == "numa" else "spread"

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
        if self.update_cores is not None and not 0 < self.update_cores < 1:
            rule = "must be above 0 and below 1: casts and other passes have the rest"
            yield Fault(key="plan.offload.update_cores", value=self.update_cores, rule=rule, nearest=0.8)
        for key in ("subgroup_size", "buffers", "gradient_buffers", "staging", "update_threads", "cast_threads"):
            value = getattr(self, key)
            if value is not None and (type(value) is not int or value < 1):
                rule = "must be a whole number, at least 1"
                yield Fault(key=f"plan.offload.{key}", value=value, rule=rule, nearest=1)
