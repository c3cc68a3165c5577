"""Scripts: the collectives that each process group runs, in order, as its members' programs have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.arrays import Arrays
from clustersim.workload.exchange import Exchange
from clustersim.workload.job import Job
from clustersim.workload.op import Collective

__all__ = ["FamilyScripts", "Script", "Signature", "scripts"]

Signature = tuple[str, int, str | Callable[..., Any] | Exchange | None]
"""(kind, nbytes, algorithm) of a collective; a send and its recv are both ``send_recv``."""

Script = tuple[Signature, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FamilyScripts:
    """What the members of one family of groups run.

    Attributes
    ----------
    axis : str
        of its collectives; the family's name when it has none
    scripts : tuple[Script, ...]
        the distinct ones
    code : NDArray[int64], shape (num_groups, num_members)
        index into ``scripts`` of each member
    """

    axis: str
    scripts: tuple[Script, ...]
    code: NDArray[np.int64]


def scripts(job: Job) -> list[FamilyScripts]:
    """The scripts of all families of a job, in their order."""
    by_program = [_by_slot(program.arrays()) for program in job.programs]
    found = []
    for family in job.families:
        numbering: dict[Script, int] = {}
        seen: dict[int, int] = {}  # by identity: a script may be long, and its slot stands at many positions
        code = np.empty(family.members.shape, dtype=np.int64)
        axis = family.name
        for position in range(family.members.shape[1]):
            slot = family.slot(position)
            of_program = np.zeros(len(job.programs), dtype=np.int64)
            for p, by_slot in enumerate(by_program):
                script, its_axis = by_slot.get(slot, ((), family.name))
                axis = its_axis if script else axis
                if id(script) not in seen:
                    seen[id(script)] = numbering.setdefault(script, len(numbering))
                of_program[p] = seen[id(script)]
            code[:, position] = of_program[job.program_of[family.members[:, position]]]
        found.append(FamilyScripts(axis=axis, scripts=tuple(numbering), code=code))
    return found


def _by_slot(arrays: Arrays) -> dict[str, tuple[Script, str]]:
    """Slot -> (collectives on it in order, axis)."""
    signature: dict[int, Signature] = {}
    for k, op in enumerate(arrays.ops):
        if isinstance(op, Collective):
            kind = "send_recv" if op.kind in ("send", "recv") else op.kind
            signature[k] = (kind, op.nbytes, op.algorithm)
    result = {}
    for slot, numbers in arrays.slots().items():
        ops = arrays.op[numbers].tolist()
        first = arrays.ops[ops[0]]
        assert isinstance(first, Collective)
        result[slot] = (tuple(signature[k] for k in ops), first.axis)
    return result
