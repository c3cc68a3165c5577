"""Collectives as nccl-tests and rccl-tests measured them on machines beside the calibrated rows.

The numbers of networks and of RCCL start at them (``nccl-network``, ``nccl-efa``, ``rccl``, ``rccl-network``) when
published rows calibrate, so that cards are not held against them here: a part of each series is predicted by numbers
that the other parts give, from a start of other machines. Only the card of InfiniBand and RoCE came out of other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

import clustersim as cs
from clustersim.collective.explanations import explain_sizes
from clustersim.collective.price import price
from clustersim.hardware.communication import protocols
from clustersim.readers.collective_rows import CollectiveRow
from clustersim.study.calibration import Calibration, calibrate, errors
from clustersim.study.measured import Measured, locate

MIB = 2**20

INFINIBAND_US = {  # NVIDIA/nccl-tests issue 309: 8 H100 and eight 400 Gb/s ports a node, NCCL 2.26.2
    2: {1: 71.93, 2: 76.24, 4: 94.38, 8: 132.6, 16: 185.4, 32: 267.9, 64: 466.1, 128: 748.3, 512: 2357.6, 8192: 34381},
    4: {
        1: 82.17,
        4: 151.1,
        8: 217.3,
        16: 259.6,
        32: 376.0,
        64: 579.1,
        128: 990.7,
        256: 1768.0,
        512: 3109.0,
        8192: 45606,
    },
}
EFA_GB_PER_S = {  # crazyguitar/aws-gpu-communication-benchmark, data/nccl_all_reduce.csv: size / time on p5.48xlarge
    2: {32: 78.57, 64: 110.40, 128: 162.74, 512: 211.20, 2048: 237.36, 8192: 254.78},
    4: {32: 49.23, 64: 78.66, 128: 118.44, 512: 143.70, 2048: 179.39, 8192: 184.25},
    8: {32: 44.06, 64: 52.75, 128: 79.40, 512: 138.48, 2048: 141.28, 8192: 180.50},
    16: {32: 37.72, 64: 46.56, 128: 65.11, 512: 112.78, 2048: 136.52, 8192: 179.54},
}
EFA_ALL_TO_ALL_GB_PER_S = {  # the same, data/nccl_alltoall.csv
    2: {32: 47.78, 128: 73.38, 2048: 84.53},
    4: {32: 35.56, 128: 54.26, 2048: 55.82},
    8: {32: 29.13, 128: 36.77, 2048: 50.41},
}
EFA_US = {  # aws-samples/awsome-distributed-training, micro-benchmarks/nccl-tests: 2 nodes, size [KiB] -> time
    "p5": {1: 69.24, 8: 81.44, 128: 108.9, 512: 123.7, 1024: 123.2, 4096: 168.6, 16384: 298.1, 65536: 601.5},
    "p4de": {1: 165.0, 8: 175.9, 128: 229.7, 512: 260.3, 1024: 309.4, 4096: 533.9, 16384: 1191.8, 65536: 2644.6},
}
P4DE = {"fabric.nic": "efa", "nics_per_node": 4, "communication.network": "efa-sendrecv"}
RCCL_US = {  # hisohara/ai-scripts, training/01_rccl-smoketest: nodes of 8, size [KiB] -> time
    ("hgx-mi300x", 1): {1: 13.67, 64: 14.25, 1024: 28.39, 4096: 52.96, 16384: 149.9, 131072: 800.3, 1048576: 5990.7},
    ("hgx-mi355x", 2): {1: 47.20, 64: 59.17, 1024: 81.37, 4096: 118.6, 16384: 261.6, 131072: 1041.8, 1048576: 5525.0},
}
P5 = {"fabric.nic": "efa-v2", "nics_per_node": 32, "communication.network": "nccl-efa"}
INFINIBAND = cs.load_part("transport", "nccl-network")
GENERIC = Calibration(
    nodes={
        "nccl-a100": cs.load_part("communication", "nccl-a100"),
        "nccl-h100": cs.load_part("communication", "nccl-h100"),
        "rccl": cs.load_part("communication", "nccl"),
    },
    networks={
        **dict.fromkeys(("rdma", "efa", "rccl-network"), INFINIBAND),
        "efa-sendrecv": replace(INFINIBAND, in_order=False),
    },
)
"""Where the numbers start that a part of a series gives: no machine of EFA or of AMD is in them."""


def off(card: str, num_nodes: int, times_us: dict[int, float], settings: dict[str, object]) -> np.ndarray:
    """|predicted / measured - 1| of an all-reduce of every size [KiB]."""
    cluster = cs.load_topology(card, nodes=num_nodes, **settings)
    explained = explain_sizes("all_reduce", [size * 2**10 for size in times_us], cluster, range(cluster.num_devices))
    return np.array([abs(one.seconds * 1e6 / us - 1) for one, us in zip(explained, times_us.values(), strict=True)])


def rows(hardware: str, inter_link: str, kind: str, num_nodes: int, us: Mapping[int, float]) -> list[Measured]:
    """Times [us] by size [B] on nodes of 8 as rows of a file."""
    told = [
        CollectiveRow(
            line=0,
            id="",
            group="",
            source="",
            hardware=hardware,
            intra_link="",
            inter_link=inter_link,
            algo="",
            nccl_version="",
            confidence="",
            notes="",
            collective=kind,
            num_ranks=8 * num_nodes,
            num_nodes=num_nodes,
            ranks_per_node=8,
            nbytes=nbytes,
            time_us=time_us,
            algbw=None,
            busbw=None,
        )
        for nbytes, time_us in us.items()
    ]
    placed, refused = locate(told)
    assert not refused
    return placed


def left_out(parts: Sequence[Sequence[Measured]], start: Calibration = GENERIC) -> np.ndarray:
    """|predicted / measured - 1| of every part under numbers that the other parts give."""
    found = []
    for part in parts:
        others = [row for other in parts if other is not part for row in other]
        found.append(abs(errors(part, calibrate(others, start))))
    return np.concatenate(found)


def of_p5(kind: str, speeds: dict[int, dict[int, float]]) -> list[list[Measured]]:
    """By number of nodes."""
    network = "H100-SXM5 (AWS p5)", "32x100 Gb/s EFA per node"
    return [
        rows(*network, kind, num_nodes, {size * MIB: size * MIB / gb / 1e3 for size, gb in row.items()})
        for num_nodes, row in speeds.items()
    ]


def test_infiniband_of_other_rows() -> None:
    """Rows of CoreWeave, NVIDIA's issues and NERSC gave the card its numbers; it began at these and has moved."""
    moved = cs.load_part("transport", "rdma")
    assert moved.simple_latency != pytest.approx(cs.load_part("transport", "nccl-network").simple_latency, rel=0.2)
    wrong = np.concatenate(
        [off("dgx-h100", n, {size * 2**10: us for size, us in row.items()}, {}) for n, row in INFINIBAND_US.items()]
    )
    assert np.median(wrong) < 0.10
    assert np.quantile(wrong, 0.9) < 0.25


class TestCardsThatBeganAtTheseRows:
    """They tell of the numbers' fit, not of machines unseen."""

    def test_infiniband(self) -> None:
        start = {"communication.network": "nccl-network"}
        wrong = np.concatenate(
            [
                off("dgx-h100", n, {size * 2**10: us for size, us in row.items()}, start)
                for n, row in INFINIBAND_US.items()
            ]
        )
        assert np.median(wrong) < 0.08
        assert np.quantile(wrong, 0.9) < 0.20

    @pytest.mark.parametrize(
        ("kind", "speeds"), [("all_reduce", EFA_GB_PER_S), ("all_to_all", EFA_ALL_TO_ALL_GB_PER_S)]
    )
    def test_efa(self, kind: str, speeds: dict[int, dict[int, float]]) -> None:
        cluster = {n: cs.load_topology("dgx-h100", nodes=n, **P5) for n in speeds}
        wrong = [
            abs(one.seconds / (size * MIB / gb / 1e9) - 1)
            for n, row in speeds.items()
            for (size, gb), one in zip(
                row.items(), explain_sizes(kind, [size * MIB for size in row], cluster[n], range(8 * n)), strict=True
            )
        ]
        assert np.median(wrong) < 0.08
        assert np.quantile(wrong, 0.9) < 0.2

    def test_efa_of_small_sizes(self) -> None:
        assert np.median(off("dgx-h100", 2, EFA_US["p5"], P5)) < 0.10

    def test_efa_that_does_not_keep_order(self) -> None:
        """Simple alone, with one latency for eight sizes from 1 KiB to 64 MiB."""
        assert off("dgx-a100", 2, EFA_US["p4de"], P4DE).max() < 0.15

    @pytest.mark.parametrize(("card", "num_nodes"), RCCL_US)
    def test_rccl(self, card: str, num_nodes: int) -> None:
        wrong = off(card, num_nodes, RCCL_US[card, num_nodes], {})
        assert np.median(wrong) < 0.12
        assert wrong.max() < 0.25


def test_infiniband_by_the_other_number_of_nodes() -> None:
    network = "H100-SXM5", "8x400 Gb/s NDR InfiniBand per node"
    parts = [
        rows(*network, "all_reduce", n, {size * MIB: us for size, us in row.items()})
        for n, row in INFINIBAND_US.items()
    ]
    wrong = left_out(parts)
    assert np.median(wrong) < 0.10
    assert np.quantile(wrong, 0.9) < 0.20


def test_efa_by_other_numbers_of_nodes() -> None:
    wrong = left_out(of_p5("all_reduce", EFA_GB_PER_S))
    assert np.median(wrong) < 0.10
    assert np.quantile(wrong, 0.9) < 0.20


def test_all_to_all_over_efa_by_other_numbers_of_nodes() -> None:
    """Six rows do not pull two numbers far from those of InfiniBand: a fifth off."""
    wrong = left_out(of_p5("all_to_all", EFA_ALL_TO_ALL_GB_PER_S))
    assert np.median(wrong) < 0.20
    assert wrong.max() < 0.35


def test_ll128_of_efa_is_a_switch_and_no_rate() -> None:
    """Four times its fraction or a quarter of it moves nothing from 128 KiB on, where Simple alone runs."""
    cluster = cs.load_topology("dgx-h100", nodes=2, **P5)
    node, network = cs.load_part("communication", "nccl-h100"), cs.load_part("transport", "nccl-efa")
    sizes = [2**k for k in range(17, 30)]
    times = []
    for times_as_much in (0.25, 1, 4):
        other = replace(network, ll128_fraction=times_as_much * network.ll128_fraction)
        priced = price(replace(cluster, protocols=protocols(node, other)), range(16), "all_reduce", sizes)
        assert {one.protocol for one in priced} == {"Simple"}
        times.append([one.ns for one in priced])
    assert times[0] == times[1] == times[2]


def test_efa_that_does_not_keep_order() -> None:
    """Every second size by numbers that the sizes between give to Simple alone; with the others it is too quick."""
    us = {size * 2**10: us for size, us in EFA_US["p4de"].items()}
    placed = rows("A100-SXM4-80GB (AWS p4de)", "4x100 Gb/s EFA per node", "all_reduce", 2, us)
    assert left_out([placed[::2], placed[1::2]]).max() < 0.25
    assert off("dgx-a100", 2, EFA_US["p4de"], {**P4DE, "communication.network": "nccl-efa"})[:5].min() > 0.2


@pytest.mark.parametrize(("card", "num_nodes"), RCCL_US)
def test_rccl_by_other_sizes(card: str, num_nodes: int) -> None:
    """Every second size by numbers that the sizes between give, from NCCL's generic ones."""
    network = ("MI300X" if num_nodes == 1 else "MI355X"), "8x400 Gb/s RoCE per node"
    placed = rows(
        *network, "all_reduce", num_nodes, {size * 2**10: us for size, us in RCCL_US[card, num_nodes].items()}
    )
    wrong = left_out([placed[::2], placed[1::2]])
    assert np.median(wrong) < 0.12
    assert wrong.max() < 0.35
