"""The process groups of a training job: which ranks do what together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.context_groups import context_groups
from clustersim.workload.job import GroupFamily
from clustersim.workload.mesh import Mesh
from clustersim.workload.schedule.placement import Placement
from clustersim.workload.stage_chunk import hop
from clustersim.workload.stage_messages import message_slot

__all__ = ["process_groups"]


def process_groups(
    mesh: Mesh, placement: Placement, *, experts: Mesh | None = None, tied: bool = False, ulysses: int = 1
) -> tuple[GroupFamily, ...]:
    """Groups of a job; those of one rank are left out.

    Parameters
    ----------
    mesh : Mesh
        of ``tp``, ``cp``, ``dp_inner``, ``dp_outer`` and ``pp``
    placement : Placement
        of the chunks on the stages
    experts : Mesh, optional
        the same ranks as ``etp``, ``ep``, ``edp_inner``, ``edp_outer`` and ``pp``
    ulysses : int
        neighbours along cp that exchange heads
    tied : bool
        first and last stage share the embedding and sum its gradient

    Returns
    -------
    tuple[GroupFamily, ...]
        ``tp``, ``cp`` and its rings, ``dp`` (also over cp, and over the stages that hold copies), ``dp_inner``,
        ``dp_outer``; the same of experts; pairs of stages for the messages of each hop, ``forward`` and ``backward``;
        ``embedding`` of (first, last) stages
    """
    copies = len(placement.routes) > 1
    families = [
        _family("tp", mesh.groups("tp")),
        *context_groups(mesh, ulysses=ulysses),
        _family("dp", _copied(mesh, mesh.groups("cp", "dp_inner", "dp_outer"), copies=copies)),
        _family("dp_inner", mesh.groups("cp", "dp_inner")),
        _family("dp_outer", mesh.groups("dp_outer")),
    ]
    if experts is not None:
        families += [
            _family("ep", experts.groups("ep")),
            _family("etp", experts.groups("etp")),
            _family("edp", _copied(experts, experts.groups("edp_inner", "edp_outer"), copies=copies)),
            _family("edp_inner", experts.groups("edp_inner")),
            _family("edp_outer", experts.groups("edp_outer")),
        ]
    if mesh.size("dp_outer") == 1 or mesh.size("dp_inner") * mesh.size("cp") == 1:
        families = [f for f in families if f.name not in ("dp_inner", "dp_outer")]
    if experts is not None and 1 in (experts.size("edp_inner"), experts.size("edp_outer")):
        families = [f for f in families if f.name not in ("edp_inner", "edp_outer")]
    families = [f for f in families if f.members.shape[1] > 1]
    stages = mesh.groups("pp")
    families += _messages(stages, placement)
    ends = {route[place][0] for route in placement.routes for place in (0, -1)}
    if tied and len(ends) > 1 and not copies:
        first, last = placement.routes[0][0][0], placement.routes[0][-1][0]
        families.append(_family("embedding", np.ascontiguousarray(stages[:, [first, last]])))
    return tuple(families)


def _family(name: str, members: NDArray[np.int64]) -> GroupFamily:
    return GroupFamily(name=name, members=members, slots=(name,))


def _copied(mesh: Mesh, groups: NDArray[np.int64], *, copies: bool) -> NDArray[np.int64]:
    """Where every chunk stands on stage s and on p - 1 - s, the groups of both stages are one."""
    if not copies:
        return groups
    stage = mesh.coordinate("pp")
    num_stages = mesh.size("pp")
    by_stage = [groups[stage[groups[:, 0]] == s] for s in range(num_stages)]
    pairs = [np.concatenate([by_stage[s], by_stage[num_stages - 1 - s]], axis=1) for s in range(num_stages // 2)]
    return np.concatenate(pairs)


def _messages(stages: NDArray[np.int64], placement: Placement) -> list[GroupFamily]:
    """(sender, receiver) pairs for each hop between two stages, once for activations and once for gradients."""
    by_hop: dict[int, list[tuple[int, int]]] = {}
    for route in placement.routes:
        for (sender, _), (receiver, _) in _steps(route):
            if sender != receiver:
                way = by_hop.setdefault(hop(sender, receiver, placement.num_stages), [])
                way += [(sender, receiver)] if (sender, receiver) not in way else []
    families = []
    for step, pairs in sorted(by_hop.items(), key=lambda item: (abs(item[0]), -item[0])):
        forward = np.concatenate([stages[:, list(pair)] for pair in sorted(pairs)])
        for side, members in (("forward", forward), ("backward", np.ascontiguousarray(forward[:, ::-1]))):
            name = message_slot(side, step)
            families.append(GroupFamily(name=name, members=members, slots=(f"{name}_out", f"{name}_in")))
    return families


def _steps(route: Sequence[tuple[int, int]]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return list(pairwise(route))
