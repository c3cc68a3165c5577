"""The process groups of ranks that share a sequence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.job import GroupFamily
from clustersim.workload.mesh import Mesh

__all__ = ["context_groups"]


def context_groups(mesh: Mesh, *, ulysses: int = 1) -> list[GroupFamily]:
    """Groups of a job; a program uses those of its own way of context parallelism.

    Parameters
    ----------
    mesh : Mesh
        with an axis ``cp``
    ulysses : int
        neighbours along it that exchange heads, all of them or some

    Returns
    -------
    list[GroupFamily]
        ``cp``, of the ranks that gather or exchange; ``cp_forward`` and ``cp_backward``, pairs of neighbours (sender,
        receiver) on the ring through one rank of each of these, or through all
    """
    members = mesh.groups("cp")
    num_groups, cp = members.shape
    wide = ulysses if ulysses > 1 else cp
    together = members.reshape(-1, wide)
    rings = members.reshape(num_groups, cp // ulysses, ulysses).transpose(0, 2, 1).reshape(-1, cp // ulysses)
    families = [GroupFamily(name="cp", members=together, slots=("cp",))]
    if rings.shape[1] > 1:
        onwards = np.stack([rings, np.roll(rings, -1, axis=1)], axis=2).reshape(-1, 2)
        families += [_pairs("cp_forward", onwards), _pairs("cp_backward", np.ascontiguousarray(onwards[:, ::-1]))]
    return families


def _pairs(name: str, members: NDArray[np.int64]) -> GroupFamily:
    return GroupFamily(name=name, members=members, slots=(f"{name}_out", f"{name}_in"))
