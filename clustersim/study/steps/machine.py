"""The hardware of a row as published -> a topology card, what differs from it, and where the ranks sit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from clustersim.faults import BadInput
from clustersim.library.topologies import load_topology
from clustersim.readers.step_rows import StepRow
from clustersim.study.measured import MACHINES
from clustersim.study.steps.refusal import RefusedError
from clustersim.topology.topology import Topology

__all__ = ["Machine", "attention_kernels", "find_card", "machine_of"]

_HARDWARE: tuple[tuple[tuple[str, ...], str, dict[str, object]], ...] = (
    (("jean zay", "a100"), "jean-zay-a100", {}),
    (("500 w",), "grand-teton-h100", {}),
    (("mi210",), "workstation-4090", {"node.gpu": "mi210"}),
    (("nvidia l4",), "workstation-4090", {"node.gpu": "l4"}),
    (("a100-sxm4-40gb (2 gpus",), "dgx-a100-40gb-2gpu", {}),
    (("a800", "8358"), "hgx-a800", {"host.cpu": "xeon-8358", "host.socket_link": "upi-11.2"}),
    *MACHINES,
)
"""Words of the hardware -> card and changes, the first that fits. A single GPU needs no card of its own node."""

_NETWORK: tuple[tuple[tuple[str, ...], dict[str, object]], ...] = (
    (
        ("a100", "4x100 gb/s roce"),
        {"fabric.nic": "ethernet-100g", "fabric.switch": "ethernet-100g", "nics_per_node": 4},
    ),
    (("a100", "800 gb/s per node"), {"nics_per_node": 4}),
    (("a100", "4x200 gb/s"), {"nics_per_node": 4}),
    (
        ("v100", "jean zay", "omni-path"),
        {"fabric.nic": "omni-path-100", "fabric.switch": "omni-path-100", "nics_per_node": 8},
    ),
)
"""Words of hardware and interconnect -> what of the card's network differs, the first that fits. Jean Zay's nodes have
four V100 and four ports (IDRIS), half of a card's eight."""

_TOLD = (
    "8x200 gb/s",
    "(8x200)",
    "8x400 gb/s",
    "8x800 gb/s",
    "8x100 gb/s ib",
    "800 gb/s ib per node",
    "4x100 gb/s omni-path",
    "4x200 gb/s slingshot",
    "400 gb/s rdma",
    "400 gb/s cx-7",
    "400 gb/s roce",
    "efa 3200",
)
"""Words of a network that is the card's own."""


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


def find_card(row: StepRow) -> tuple[str, dict[str, object]]:
    """Card of a row's hardware, and what differs from it.

    Raises
    ------
    RefusedError
        when no card stands for it
    """
    text = row.hardware.lower()
    found = next(((card, changes) for words, card, changes in _HARDWARE if all(w in text for w in words)), None)
    if found is None:
        raise RefusedError("hardware", f"hardware {row.hardware!r}")
    return found


def attention_kernels(row: StepRow) -> frozenset[str]:
    """Attention kernels whose times are known on a row's GPU.

    Raises
    ------
    RefusedError
        when no card stands for its hardware
    """
    card, changes = find_card(row)
    models = _load(card, 1, tuple(changes.items())).gpus[0].kernels
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
    text = row.hardware.lower()
    card, changes = find_card(row)
    size = _load(card, 1, tuple(changes.items())).num_devices
    per_node = min(size, num_ranks)
    if size > 16 and num_ranks > size:
        per_node = 64
    elif row.nodes and size <= 16 and -(-num_ranks // row.nodes) < size:
        per_node = -(-num_ranks // row.nodes)
    nodes = -(-num_ranks // per_node)
    assumptions = [f"card: {card} stands for {row.hardware}"]
    link = row.interconnect.lower()
    known = nodes == 1
    if nodes > 1:
        other = next((c for words, c in _NETWORK if all(w in f"{text} {link}" for w in words)), None)
        changes = {**changes, **(other or {})}
        known = other is not None or any(words in link for words in _TOLD)
        if not known:
            assumptions.append(f"network: that of {card} is taken; published as {row.interconnect!r}")
    machine = Machine(card=card, nodes=nodes, ranks_per_node=per_node, changes=tuple(changes.items()))
    try:
        machine.topology()
    except BadInput as refusal:
        detail = "; ".join(f"{fault.key} {fault.value} {fault.rule}" for fault in refusal.faults)
        raise RefusedError("network", detail) from None
    return machine, assumptions, known


@cache
def _load(card: str, nodes: int, changes: tuple[tuple[str, Any], ...]) -> Topology:
    return load_topology(card, nodes=nodes, **dict(changes))
