"""When a job saves its state, where to, and what waits for it.

A save starts when the update of its step is through. What differs between strategies is who waits, and for what:

============== ======================= ============================================================
strategy       what waits              until
============== ======================= ============================================================
synchronous    the next forward pass   the rank's part is copied, serialised and written, in turn
asynchronous   the next forward pass   the rank's part is copied to a buffer of the host
lazy           the next update         the same; the copies pass beside forward and backward
============== ======================= ============================================================

A strategy of one's own is a subclass of :class:`Synchronous`, or of :class:`Background` with another ``waits``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, Literal, get_args

from clustersim.faults import Fault
from clustersim.units import Unit

__all__ = ["PHASE", "TARGETS", "Asynchronous", "Background", "Checkpoint", "Lazy", "Synchronous", "Target"]

Target = Literal["file_system", "nvme", "host"]
TARGETS: tuple[Target, ...] = get_args(Target)

PHASE = "checkpoint"
"""Of the ops of saves, in the trace."""

_OF_WRITES = ("files", "pool_bytes", "serialises", "metadata_bytes")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What all strategies have in common.

    Parameters
    ----------
    every : int
        steps from one save to the next
    tier : {"file_system", "nvme", "host"}
        where to; in host memory nothing is written
    chunk_bytes : int
        at most so much is copied, and then written, at a time [B]
    files : int
        of a rank; each costs the store's metadata latency once
    pinned : bool
        host memory that copies go to is page-locked; else they go through the driver's staging buffer
    serialises : bool
        one thread passes over all bytes before they are written, as ``torch.save`` does; else they are written as they
        are
    metadata_bytes : int
        of Python objects, which one thread pickles beside the copies [B]
    keeps : int
        versions that are held at a time, the one that is being written included
    """

    name: ClassVar[str] = "own"

    every: int = 1
    tier: Target = "file_system"
    chunk_bytes: Annotated[int, Unit("B")] = 2**28
    files: int = 1
    pinned: bool = True
    serialises: bool = False
    metadata_bytes: Annotated[int, Unit("B")] = 0
    keeps: int = 2

    def faults(self) -> Iterator[Fault]:
        """What is wrong with its settings, keys as ``plan.checkpoint.every``."""
        for key, least in (("every", 1), ("chunk_bytes", 1), ("files", 1), ("keeps", 1), ("metadata_bytes", 0)):
            value = getattr(self, key)
            if type(value) is not int or value < least:
                rule = f"must be a whole number, at least {least}"
                yield Fault(key=f"plan.checkpoint.{key}", value=value, rule=rule, nearest=least)
        if self.tier not in TARGETS:
            rule = f"must be one of {', '.join(TARGETS)}"
            yield Fault(key="plan.checkpoint.tier", value=self.tier, rule=rule, nearest=TARGETS[0])
        for field in fields(self) if self.tier == "host" else ():
            value = getattr(self, field.name)
            if field.name in _OF_WRITES and value != field.default:
                rule = "has nothing to act on with plan.checkpoint.tier host: nothing is written"
                yield Fault(key=f"plan.checkpoint.{field.name}", value=value, rule=rule, nearest=field.default)


@dataclass(frozen=True, kw_only=True)
class Synchronous(Checkpoint):
    """One thread copies, serialises and writes chunk by chunk; training goes on when the last is written.

    References
    ----------
    PyTorch, ``torch/serialization.py``, ``_save``: each storage goes to the host (``storage.cpu()``, not pinned) and
    then into the archive. DeepSpeed, ``runtime/checkpoint_engine/torch_checkpoint_engine.py``.
    """

    name: ClassVar[str] = "synchronous"

    pinned: bool = False
    serialises: bool = True


@dataclass(frozen=True, kw_only=True)
class Background(Checkpoint):
    """Copies go to a ring buffer of the host, and from there to files, each by threads of their own.

    Parameters
    ----------
    pool_bytes : int, optional
        of a rank's buffer: a copy waits until a write has left room for it [B]; None: as large as the largest rank's
        part
    """

    waits: ClassVar[Literal["passes", "update"]] = "passes"
    """What of the next step waits for the last copy."""

    pool_bytes: Annotated[int | None, Unit("B")] = None

    def faults(self) -> Iterator[Fault]:
        """Those of all, and a buffer without room."""
        yield from super().faults()
        if self.pool_bytes is not None and (type(self.pool_bytes) is not int or self.pool_bytes < 1):
            rule = "must be a whole number, at least 1"
            yield Fault(key="plan.checkpoint.pool_bytes", value=self.pool_bytes, rule=rule, nearest=1)


@dataclass(frozen=True, kw_only=True)
class Asynchronous(Background):
    """Training goes on when the rank's part is in host memory; files are written behind it.

    References
    ----------
    Mohan et al., CheckFreq, FAST 2021: snapshot, then persist. pytorch/torchsnapshot, ``snapshot.py``, ``async_take``:
    returns when all tensors are in staging buffers, within a budget of host memory.
    """

    name: ClassVar[str] = "asynchronous"


@dataclass(frozen=True, kw_only=True)
class Lazy(Background):
    """Weights and optimizer state stay as they are until the next update: they are copied out beside the passes.

    References
    ----------
    Maurya et al., DataStates-LLM, HPDC 2024. DataStates/datastates-llm, ``datastates/ckpt/src``: ``engine.cpp``
    (``wait`` is for copies off the GPU, not for files), ``tiers/gpu_tier.cpp`` (``flush_io_``: one thread takes room in
    the pinned pool and copies), ``tiers/host_tier.cpp`` (``flush_io_``: one thread writes and gives the room back).
    """

    name: ClassVar[str] = "lazy"
    waits: ClassVar[Literal["passes", "update"]] = "update"
