"""A job: programs, the ranks that run them, and the process groups that tie the ranks together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.program import Program

__all__ = ["TIERS", "GroupFamily", "Job", "Ledger", "Pool"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GroupFamily:
    """Process groups of one kind and one size.

    Parameters
    ----------
    name : str
        ``tp``, ``dp``, ``forward`` …
    members : NDArray[int64], shape (num_groups, num_members)
        ranks in group order
    slots : tuple[str, ...]
        the name by which a member's program calls the group: one for all members, or one per position
        (``("forward_out", "forward_in")`` for sender and receiver)
    """

    name: str
    members: NDArray[np.int64]
    slots: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", np.asarray(self.members, dtype=np.int64))
        if self.members.ndim != 2:
            raise ValueError(f"{self.name}: members must be (num_groups, num_members), got shape {self.members.shape}")
        if len(self.slots) not in (1, self.members.shape[1]):
            raise ValueError(
                f"{self.name}: slots: {len(self.slots)} names must be 1 or one per member ({self.members.shape[1]})"
            )

    def slot(self, position: int) -> str:
        """Slot of the member at ``position``."""
        return self.slots[0] if len(self.slots) == 1 else self.slots[position]


_SHARED_BY = {
    "gpu": ("rank",),
    "host_pinned": ("rank", "node"),
    "host_pageable": ("rank", "node"),
    "nvme": ("rank", "node"),
    "file_system": ("rank", "job"),
}
"""Tier -> who can share a pool of its memory."""

TIERS = tuple(_SHARED_BY)
"""Where bytes are held."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """A counted store that ops take from before they start: pinned buffers, staging slots, a lock.

    Parameters
    ----------
    capacity : int
        units
    scope : {"rank", "node", "job"}
        who shares one store
    memory : str
        what its units are memory of, by ``"tier/category"``: ``"host_pinned/staging"``; empty for a lock, or where
        programs count the bytes themselves
    unit_bytes : int
        of one unit, rounding by the allocator included: the whole pool is held from beginning to end [B]

    Raises
    ------
    ValueError
        when there is no unit, or a unit of memory has no place or no bytes; or when the memory is not that of those who
        share it: a GPU's is one rank's, host memory and drives are a node's
    """

    capacity: int
    scope: Literal["rank", "node", "job"] = "rank"
    memory: str = ""
    unit_bytes: int = 0

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise ValueError(f"capacity: {self.capacity} must be at least 1")
        if (self.unit_bytes > 0) != bool(self.memory) or self.unit_bytes < 0:
            raise ValueError(f"unit_bytes: {self.unit_bytes} must be 1 or more with memory {self.memory!r}, 0 without")
        tier = self.memory.partition("/")[0]
        if self.memory and self.scope not in _SHARED_BY.get(tier, ()):
            rule = "; ".join(f"{tier}: {', '.join(scopes)}" for tier, scopes in _SHARED_BY.items())
            raise ValueError(f"scope: {self.scope} of {self.memory} must be one that shares such memory ({rule})")

    @property
    def nbytes(self) -> int:
        """Of all its units [B]."""
        return self.capacity * self.unit_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """What one step of the job achieves, counted from the model alone, for tokens/s and MFU.

    Parameters
    ----------
    tokens : int
        of one step; 0 where a sample has none
    samples : int
        of one step: sequences, or what the table of a data-flow graph calls a sample
    model_flops : int
        6 FLOP per matmul parameter and token plus causal attention (half), no recompute [FLOP]
    model_flops_full_attention : int
        the same with attention over the full square, as PaLM counts [FLOP]
    dtype : str
        whose dense peak MFU is measured against
    """

    tokens: int = 0
    samples: int = 0
    model_flops: int = 0
    model_flops_full_attention: int = 0
    dtype: str = "bf16"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Job:
    """What runs on a cluster.

    Parameters
    ----------
    name : str
    programs : tuple[Program, ...]
        one a role
    program_of : NDArray[int64], shape (num_ranks,)
        index into ``programs``
    families : tuple[GroupFamily, ...]
    devices : NDArray[int64], shape (num_ranks,), optional
        device of each rank; rank r sits on device r when None
    pools : Mapping[str, Pool]
        by the name that programs use
    ledger : Ledger
    plan : Mapping[str, Any]
        the resolved plan, for the result
    notes : tuple[str, ...]
        what was assumed or split on the way, for the result's warnings
    rounds : int, optional
        times that a run plays the programs unless it says for how many steps, so that its last step is like all later
        ones; None: 1, or 2 where a round is of several steps
    """

    name: str
    programs: tuple[Program, ...]
    program_of: NDArray[np.int64]
    families: tuple[GroupFamily, ...] = ()
    devices: NDArray[np.int64] | None = None
    pools: Mapping[str, Pool] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    plan: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rounds: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "program_of", np.asarray(self.program_of, dtype=np.int64))
        if self.devices is not None:
            object.__setattr__(self, "devices", np.asarray(self.devices, dtype=np.int64))

    def __repr__(self) -> str:
        """One line: name, ranks, programs."""
        return f"Job({self.name}: {self.num_ranks:,} ranks, {len(self.programs)} programs)"

    @property
    def num_ranks(self) -> int:
        """Number of ranks."""
        return len(self.program_of)

    @property
    def period(self) -> int:
        """Optimizer steps that one round of its programs covers; :func:`~clustersim.workload.check.check` refuses a job
        whose programs cover different numbers."""
        return max((program.period for program in self.programs), default=1)

    @property
    def usual_steps(self) -> int:
        """Optimizer steps of a run that does not say how many: :attr:`rounds` of them."""
        return self.period * (self.rounds or (1 if self.period == 1 else 2))
