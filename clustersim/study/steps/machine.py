"""The hardware of a row as published -> a cluster, and where the ranks sit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from clustersim.faults import BadInput
from clustersim.library.topologies import load_topology
from clustersim.readers.step_rows import StepRow
from clustersim.study.hardware_words import sizes_told
from clustersim.study.networks import network_of
from clustersim.study.steps.published_hardware import find_card
from clustersim.study.steps.refusal import RefusedError
from clustersim.topology.topology import Topology

__all__ = ["Machine", "attention_kernels", "machine_of", "one_node"]

_HELD = ("peak memory", "max_memory_allocated")
"""Metrics that are bytes of a GPU [GiB]."""


_NOMINAL = 0.1
"""By how much of it the memory of a card's GPU may miss a size in words, which are of 10^9 or 2^30 B."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A cluster, hashable.

    Parameters
    ----------
    card : str
    nodes : int
        of the topology
    changes : tuple[tuple[str, Any], ...]
        keys of the card and their values
    ranks_per_node : int
        that are used, from the first GPU on
    """

    card: str
    nodes: int
    ranks_per_node: int
    changes: tuple[tuple[str, Any], ...] = ()

    def topology(self) -> Topology:
        """The cluster, loaded once a process."""
        return _load(self.card, self.nodes, self.changes)

    def devices(self, num_ranks: int) -> list[int] | None:
        """Device of each rank; None where rank r sits on device r."""
        size = self.topology().num_devices // self.nodes
        if size == self.ranks_per_node or self.nodes == 1:
            return None
        return [r // self.ranks_per_node * size + r % self.ranks_per_node for r in range(num_ranks)]


def one_node(row: StepRow) -> Topology:
    """A node of a row's hardware, or a scale-up domain of several.

    Raises
    ------
    RefusedError
        when no card stands for it
    """
    card, changes = find_card(row)
    return _load(card, 1, tuple(changes.items()))


def attention_kernels(row: StepRow) -> frozenset[str]:
    """Attention kernels whose times are known on a row's GPU.

    Raises
    ------
    RefusedError
        when no card stands for its hardware
    """
    models = one_node(row).gpus[0].kernels
    return frozenset() if models is None else frozenset(models.attention)


def machine_of(row: StepRow, num_ranks: int) -> tuple[Machine, list[str], bool]:
    """The cluster that stands for a row's hardware.

    A domain of 72 GPUs is filled with 64 where more ranks need several, as published jobs of powers of two do.

    Returns
    -------
    machine : Machine
    assumptions : list[str]
    known : bool
        whether the network between its nodes is known, or not used

    Raises
    ------
    RefusedError
        when no card stands for it, or its network does not reach so far
    """
    card, changes = find_card(row)
    size = _load(card, 1, tuple(changes.items())).num_devices
    per_node = min(size, num_ranks)
    if size > 16 and num_ranks > size:
        per_node = 64
    elif row.nodes and size <= 16 and -(-num_ranks // row.nodes) < size:
        per_node = -(-num_ranks // row.nodes)
    nodes = -(-num_ranks // per_node)
    assumptions = [f"card: {card} stands for {row.hardware}"]
    assumptions += _other_memory(row, size)
    held, capacity = row.value if row.metric in _HELD else 0.0, one_node(row).gpus[0].memory_bytes / 2**30
    if held > capacity:
        assumptions.append(f"card: its GPUs have {capacity:.1f} GiB, less than the row says is held")
    if num_ranks % per_node:
        assumptions.append(f"gpus: {per_node} on each node but the last")
    known = nodes == 1
    if nodes > 1:
        between = network_of(row.interconnect, card, changes, size)
        changes = {**changes, **between.changes}
        known = between.known
        if not (known and between.ports_told):
            assumptions.append(f"network: {between.told}")
    machine = Machine(card=card, nodes=nodes, ranks_per_node=per_node, changes=tuple(changes.items()))
    try:
        machine.topology()
    except BadInput as refusal:
        detail = "; ".join(f"{fault.key} {fault.value} {fault.rule}" for fault in refusal.faults)
        raise RefusedError("network", detail) from None
    return machine, assumptions, known


def _other_memory(row: StepRow, num_gpus: int) -> list[str]:
    """That the row's words tell of GPUs with another memory than the card's, of which there are so many a node."""
    nominal = round(one_node(row).gpus[0].memory_bytes / 2**30)
    told = sizes_told(row.hardware)
    if not told or any(abs(size / of - nominal) <= _NOMINAL * nominal for size in told for of in (1, num_gpus)):
        return []
    return [f"card: its GPUs have {nominal} GiB; published as {row.hardware!r}"]


@cache
def _load(card: str, nodes: int, changes: tuple[tuple[str, Any], ...]) -> Topology:
    return load_topology(card, nodes=nodes, **dict(changes))
