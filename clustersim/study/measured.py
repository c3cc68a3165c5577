"""Measured collectives on the clusters they ran on: a machine as published -> a topology card and its GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.explanations import largest_payload
from clustersim.library.topologies import communication_of, load_topology
from clustersim.readers.collective_rows import CollectiveRow
from clustersim.study.filled_nodes import nodes_disagree
from clustersim.study.hardware_words import has_words
from clustersim.study.networks import RowNetwork, network_of
from clustersim.topology.topology import Topology

__all__ = ["CLOCKS", "MACHINES", "Clock", "Measured", "Refused", "locate", "no_card"]

MACHINES: tuple[tuple[tuple[str, ...], str, dict[str, object]], ...] = (
    (("perlmutter",), "perlmutter", {}),
    (("h100", "pairwise"), "h100-pcie-pairs", {}),
    (("h100 pcie",), "h100-pcie-pairs", {}),
    (("h800 pcie",), "h100-pcie-pairs", {}),
    (("a100", "pairwise"), "a100-pcie-pairs", {}),
    (("a100 pcie",), "a100-pcie-pairs", {}),
    (("a800 pcie",), "a100-pcie-pairs", {}),
    (("gb300",), "gb300-nvl72", {}),
    (("gb200",), "gb200-nvl72", {}),
    (("gh200",), "gh200", {}),
    (("b300",), "dgx-b300", {}),
    (("b200", "aws"), "dgx-b200", {"fabric.nic": "efa-v4", "communication.network": "efa"}),
    (("b200",), "dgx-b200", {}),
    (("h200",), "hgx-h200", {}),
    (("h800",), "hgx-h800", {}),
    (("h20",), "hgx-h20", {}),
    (
        ("h100", "aws"),
        "dgx-h100",
        {"fabric.nic": "efa-v2", "nics_per_node": 32, "communication.network": "efa"},
    ),
    (("nccl issue 1357",), "hgx-h800", {}),
    (("h100",), "dgx-h100", {}),
    (("a800",), "hgx-a800", {}),
    (("a100", "40gb"), "dgx-a100-40gb", {}),
    (("a100", "320gb"), "dgx-a100-40gb", {}),
    (("a100",), "dgx-a100", {}),
    (("v100-sxm3",), "dgx2-v100", {}),
    (("v100",), "dgx1-v100", {}),
    (("mi355",), "hgx-mi355x", {}),
    (("mi350",), "hgx-mi355x", {}),
    (("mi300",), "hgx-mi300x", {}),
    (("mi250",), "frontier", {}),
)
"""Words that a description of the hardware has, as :func:`clustersim.study.hardware_words.has_words` reads them -> the
card that stands for it and what differs; the first that fits.

The card of a maker's own machine stands for all boards of its kind. MI350X boards are wired as MI355X ones. Who posted
NCCL's issue 1357 measured H800 (NVLink of 8, four ConnectX-7) in issue 1411."""


_MOST_RANKS = 2**17
"""More are not laid out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Clock:
    """What a benchmark program measures beside the collective.

    Parameters
    ----------
    added : float
        between the clock's start and the kernel's [s]
    least : float
        the host's time for one call, which shows where it exceeds the GPU's [s]
    """

    added: float = 0.0
    least: float = 0.0


CLOCKS: tuple[tuple[str, str, Clock], ...] = (
    ("all_reduce_bench", "", Clock(added=20e-6)),
    ("PyTorch", "a100", Clock(least=53e-6)),
    ("PyTorch", "", Clock(least=31e-6)),
)
"""Words in what is published about a program and about the hardware -> the clock; nccl-tests, which launches ahead, has
neither.

Programs that call through PyTorch see its dispatch. ``all_reduce_bench.py`` (ml-engineering) waits for all ranks before
each call, so that nothing hides it; where calls follow one another (Vidur's profiler, Estimate-Train-Time) it hides
behind a longer collective, and is as long as the host is slow: A100 machines have EPYC of 2019 to 2021, those of H100
Xeon of 2023. All are measured: below 1 MiB all_reduce_bench takes 19.8 us longer than nccl-tests (median of 6 sizes on
H200 and B200), and a call in Vidur's profiles of one node 53 us on two machines with A100 and 31 us on two with H100
(medians of 28 calls each). The first program stands behind one source here."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Measured:
    """A row on its cluster.

    Parameters
    ----------
    row : CollectiveRow
    card : str
        of the topology
    topology : Topology
    devices : NDArray[int64], shape (n,)
        of the ranks
    node, network : str
        cards of what the communication library costs there
    algorithm : str, optional
        that the row says it ran
    clock : Clock
    between : RowNetwork
        what joins the nodes; known where there is one node
    """

    row: CollectiveRow
    card: str
    topology: Topology
    devices: NDArray[np.int64]
    node: str
    network: str
    algorithm: str | None
    clock: Clock
    between: RowNetwork

    @property
    def group(self) -> str:
        """The sweep that the row belongs to."""
        return self.row.group


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """A row that no cluster here stands for, and all reasons why."""

    row: CollectiveRow
    reasons: tuple[str, ...]


def no_card(hardware: str) -> str:
    """That no card stands for hardware as published; empty where one does."""
    return "" if _card_of(hardware) else f"no card stands for the hardware {hardware!r}"


def _card_of(hardware: str) -> tuple[str, dict[str, object]] | None:
    return next(((card, changes) for words, card, changes in MACHINES if has_words(hardware, words)), None)


def _misfits(row: CollectiveRow) -> Iterator[str]:
    """All that a row's own numbers and words refuse it for."""
    if row.num_nodes is not None and (told := nodes_disagree(row.num_ranks, row.num_nodes, row.ranks_per_node)):
        yield told
    if row.num_ranks > _MOST_RANKS:
        yield f"{row.num_ranks} ranks; at most {_MOST_RANKS}"
    if row.nbytes > (most := largest_payload(row.num_ranks)):
        yield f"{row.nbytes} bytes; at most {most}"
    if told := no_card(row.hardware):
        yield told


def locate(rows: Iterable[CollectiveRow]) -> tuple[list[Measured], list[Refused]]:
    """Find the cluster of each row.

    Ranks take the first GPUs of each node, as many on each as the row says or as its nodes share, else as many as fit.
    In a scale-up domain of several boards (NVL72) nodes are filled one after the other, whatever the number of boards.
    Between nodes are the ports that the row's words tell of, or where they tell of none the card's own.
    """
    placed: list[Measured] = []
    refused = []
    for row in rows:
        text, found, misfits = row.hardware.lower(), _card_of(row.hardware), tuple(_misfits(row))
        if found is None or misfits:
            refused.append(Refused(row=row, reasons=misfits))
            continue
        card, changes = found
        size = _load(card, 1, ()).num_devices
        per_node = row.ranks_per_node or (-(-row.num_ranks // row.num_nodes) if row.num_nodes else None)
        if (per_node or 0) > size:
            refused.append(Refused(row=row, reasons=(f"{per_node} ranks on a node of {size} GPUs, {card}",)))
            continue
        per_node = min(row.num_ranks, size if size > 16 else per_node or size)
        num_nodes = -(-row.num_ranks // per_node)
        between = network_of(row.inter_link, card, changes, size) if num_nodes > 1 else RowNetwork(known=True)
        changes = {**changes, **between.changes}
        topology = _load(card, num_nodes, tuple(changes.items()))
        devices = (size * np.arange(num_nodes)[:, None] + np.arange(per_node)).reshape(-1)[: row.num_ranks]
        about = f"{row.source} {row.algo} {row.notes}"
        clock = next((clock for word, part, clock in CLOCKS if word in about and part in text), Clock())
        node, network = communication_of(card)
        network = str(changes.get("communication.network", network))
        one = Measured(
            row=row,
            card=card,
            topology=topology,
            devices=devices,
            node=node,
            network=network,
            algorithm=_algorithm(row),
            clock=clock,
            between=between,
        )
        placed.append(one)
    return placed, refused


@cache
def _load(card: str, nodes: int, changes: tuple[tuple[str, object], ...]) -> Topology:
    return load_topology(card, nodes=nodes, **dict(changes))


def _algorithm(row: CollectiveRow) -> str | None:
    """The algorithm that the row names as the one that ran."""
    text = row.algo.lower()
    if row.collective != "all_reduce":
        return None
    if "nvls_enable=0" in text or text.startswith("ring"):
        return "ring"
    return "tree" if text == "tree" else "nvls" if text == "nvls" else None
