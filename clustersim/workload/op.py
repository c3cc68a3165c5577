"""Ops: what a rank puts on its streams. They carry work (FLOP and bytes), never seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from clustersim.hardware.kernel import Kernel
from clustersim.units import Unit
from clustersim.workload.exchange import Exchange

__all__ = ["Collective", "Compute", "Copy", "Delay", "HostLaunch", "HostWork", "Memory", "Op", "Storage"]

Memory = Literal["near", "spread", "far"]
"""Which of a node's host memory: that of the GPU's own socket; pages spread evenly over all sockets, as a process has
them that is bound to none; or that of another socket."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compute:
    """A block of kernels on the GPU.

    Parameters
    ----------
    name : str
        shown in the trace: ``attention forward``
    kind : str
        ``embedding``, ``norm``, ``attention``, ``mlp``, ``head``, ``loss``, ``optimizer`` …
    kernels : tuple[Kernel, ...]
        launched one after the other
    category : {"compute", "optimizer"}
        where its time belongs in the breakdown
    recomputed : bool
        work done a second time to save memory: not model FLOP
    """

    name: str
    kind: str
    kernels: tuple[Kernel, ...]
    category: Literal["compute", "optimizer"] = "compute"
    recomputed: bool = False

    @property
    def flops(self) -> int:
        """All kernels' work [FLOP]."""
        return sum(k.flops * k.count for k in self.kernels)

    @property
    def nbytes(self) -> int:
        """All kernels' HBM traffic [B]."""
        return sum(k.nbytes * k.count for k in self.kernels)


@dataclass(frozen=True, kw_only=True, slots=True)
class Collective:
    """A rank's part in a collective; it starts when the last member of the group has arrived.

    Parameters
    ----------
    name : str
        shown in the trace: ``all-reduce gradients``
    kind : str
        ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``broadcast``, ``send``, ``recv``, ``barrier`` …
        a ``send`` meets the ``recv`` of the same position in the group's order
    slot : str
        which of the rank's groups: ``tp``, ``dp``, ``forward_out``; bound to group numbers by the job
    nbytes : int
        payload of one rank [B], counted as :data:`clustersim.collective.traffic.Algorithm` says
    axis : str
        ``tp``, ``cp``, ``ep``, ``pp`` or ``dp``: where its exposed time belongs in the breakdown
    algorithm : str, callable or Exchange, optional
        pins the algorithm; None leaves it to the selector
    category : {"communication"}
        where its time belongs in the breakdown
    """

    name: str
    kind: str
    slot: str
    nbytes: Annotated[int, Unit("B")]
    axis: str
    algorithm: str | Callable[..., Any] | Exchange | None = None
    category: Literal["communication"] = "communication"


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """A copy between a GPU and its host, or within a GPU (``d2d``).

    Parameters
    ----------
    name : str
        shown in the trace: ``gradients to host``
    kind : {"h2d", "d2h", "d2d"}
        which way
    nbytes : int
        [B]
    pageable : bool
        host memory that is not pinned: the driver copies it through a buffer of its own, at the host's pageable rate
    memory : {"near", "spread", "far"}
        which host memory, see :data:`Memory`
    turns : float
        of ranks that copy one after the other and wait for each other, each with as much in the mean: how many times
        as long as its own copy takes alone all of theirs take, at least 1
    category : {"copy"}
        where its time belongs in the breakdown
    """

    name: str
    kind: Literal["h2d", "d2h", "d2d"]
    nbytes: Annotated[int, Unit("B")]
    pageable: bool = False
    memory: Memory = "near"
    turns: float = 1.0
    category: Literal["copy"] = "copy"


@dataclass(frozen=True, kw_only=True, slots=True)
class Storage:
    """A read or write of the node's drives, or of the file system that all nodes share.

    Parameters
    ----------
    name : str
        shown in the trace: ``read moments``
    kind : {"nvme_read", "nvme_write", "fs_read", "fs_write"}
        which store and which way
    nbytes : int
        [B]
    direct : bool
        between the GPU's memory and the store (GPUDirect Storage), instead of host memory and the store
    files : int
        that it opens: each costs the store's metadata latency once; 0 where it is open already
    category : {"storage"}
        where its time belongs in the breakdown
    """

    name: str
    kind: Literal["nvme_read", "nvme_write", "fs_read", "fs_write"]
    nbytes: Annotated[int, Unit("B")]
    direct: bool = False
    files: int = 1
    category: Literal["storage"] = "storage"


@dataclass(frozen=True, kw_only=True, slots=True)
class HostWork:
    """Work of the CPU: an optimizer step, a cast, data loading; it takes cores of its socket and shares DRAM.

    Parameters
    ----------
    name : str
        shown in the trace: ``cpu adam``
    kind : str
        what it does, which says how fast a core is and how much of the DRAM it can use: ``adam`` (vectorised, 28 B a
        parameter), ``adam_torch``, ``adam_tuned``, ``cast``, ``norm``, ``check``, ``serialise``, ``data``,
        ``touch`` (the first use of memory), ``copy``
    nbytes : int
        DRAM traffic, read plus write [B]
    flops : int
        [FLOP]
    threads : int, optional
        of the CPU; None: an even share of the socket's cores among the GPUs that hang on it
    part : float
        of that share, for a process that has some of a rank's cores, in (0, 1]
    memory : {"near", "spread", "far"}
        which host memory, see :data:`Memory`; its cores are always those of the GPU's own socket
    category : {"host"}
        where its time belongs in the breakdown
    """

    name: str
    kind: str
    nbytes: Annotated[int, Unit("B")]
    flops: Annotated[int, Unit("FLOP")] = 0
    threads: int | None = None
    part: float = 1.0
    memory: Memory = "near"
    category: Literal["host"] = "host"


@dataclass(frozen=True, kw_only=True, slots=True)
class HostLaunch:
    """Calls of the host thread that issues work to the GPU, in the kinds that :class:`~clustersim.hardware.
    launch_times.LaunchTimes` times.

    Parameters
    ----------
    name : str
        shown in the trace: ``launch forward``
    kind : str
        how the framework runs: ``eager``, ``layers``, ``modules``, ``compiled`` or ``cuda_graphs``
    forward, backward : int
        kernels of a model's passes that the framework issues one by one
    experts, experts_backward : int
        further kernels of these, each for one more expert
    hooks, hooks_backward : int
        kernels around which Python is called to gather and release weights
    operators : int
        of a tensor library outside of these passes: of the update, copies
    collectives : int
        collectives and messages
    compiled, entries, graphs : int
        kernels of compiled graphs, entries into these, and captured graphs
    waits : int
        times that the host has waited for the device before
    collections : int
        of Python's garbage
    category : {"launch"}
        where its time belongs in the breakdown
    """

    name: str
    kind: str
    forward: int = 0
    backward: int = 0
    experts: int = 0
    experts_backward: int = 0
    hooks: int = 0
    hooks_backward: int = 0
    operators: int = 0
    collectives: int = 0
    compiled: int = 0
    entries: int = 0
    graphs: int = 0
    waits: int = 0
    collections: int = 0
    category: Literal["launch"] = "launch"


@dataclass(frozen=True, kw_only=True, slots=True)
class Delay:
    """A time that is known from elsewhere: a replayed measurement, or 0 for a marker.

    Parameters
    ----------
    name, kind : str
        shown in the trace; what it was
    measured_ns : int
        [ns]
    category : {"compute", "optimizer", "host"}
        where its time belongs in the breakdown
    """

    name: str
    kind: str
    measured_ns: int
    category: Literal["compute", "optimizer", "host"] = "compute"


Op = Compute | Collective | Copy | Storage | HostWork | HostLaunch | Delay
