"""Collectives as nccl-tests and rccl-tests measured them on machines beside the calibrated rows.

The numbers of networks and of RCCL start at them (``nccl-network``, ``nccl-efa``, ``rccl``, ``rccl-network``) when
published rows calibrate: the start must predict them, and the card of InfiniBand and RoCE that came out must not have
left them.
"""

from __future__ import annotations

import numpy as np
import pytest

import clustersim as cs
from clustersim.collective.explanations import explain_sizes

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


def off(card: str, num_nodes: int, times_us: dict[int, float], settings: dict[str, object]) -> np.ndarray:
    """|predicted / measured - 1| of an all-reduce of every size [KiB]."""
    cluster = cs.load_topology(card, nodes=num_nodes, **settings)
    explained = explain_sizes("all_reduce", [size * 2**10 for size in times_us], cluster, range(cluster.num_devices))
    return np.array([abs(one.seconds * 1e6 / us - 1) for one, us in zip(explained, times_us.values(), strict=True)])


def errors(kind: str, seconds: dict[int, dict[int, float]], settings: dict[str, object]) -> np.ndarray:
    """|predicted / measured - 1| of every size [MiB] on every number of nodes."""
    found = []
    for num_nodes, times in seconds.items():
        cluster = cs.load_topology("dgx-h100", nodes=num_nodes, **settings)
        explained = explain_sizes(kind, [size * MIB for size in times], cluster, range(8 * num_nodes))
        found += [abs(one.seconds / measured - 1) for one, measured in zip(explained, times.values(), strict=True)]
    return np.array(found)


@pytest.mark.parametrize(("network", "middle", "far"), [("nccl-network", 0.08, 0.20), ("rdma", 0.10, 0.25)])
def test_infiniband(network: str, middle: float, far: float) -> None:
    seconds = {n: {size: us / 1e6 for size, us in times.items()} for n, times in INFINIBAND_US.items()}
    off = errors("all_reduce", seconds, {"communication.network": network})
    assert np.median(off) < middle
    assert np.quantile(off, 0.9) < far


@pytest.mark.parametrize(("kind", "speeds"), [("all_reduce", EFA_GB_PER_S), ("all_to_all", EFA_ALL_TO_ALL_GB_PER_S)])
def test_efa(kind: str, speeds: dict[int, dict[int, float]]) -> None:
    seconds = {n: {size: size * MIB / gb / 1e9 for size, gb in row.items()} for n, row in speeds.items()}
    off = errors(kind, seconds, P5)
    assert np.median(off) < 0.08
    assert np.quantile(off, 0.9) < 0.2


def test_efa_of_small_sizes() -> None:
    assert np.median(off("dgx-h100", 2, EFA_US["p5"], P5)) < 0.10


def test_efa_that_does_not_keep_order() -> None:
    """Simple alone, with one latency for eight sizes from 1 KiB to 64 MiB."""
    assert off("dgx-a100", 2, EFA_US["p4de"], P4DE).max() < 0.15
    with_others = {**P4DE, "communication.network": "nccl-efa"}
    assert off("dgx-a100", 2, EFA_US["p4de"], with_others)[:5].min() > 0.2


@pytest.mark.parametrize(("card", "num_nodes"), RCCL_US)
def test_rccl(card: str, num_nodes: int) -> None:
    wrong = off(card, num_nodes, RCCL_US[card, num_nodes], {})
    assert np.median(wrong) < 0.12
    assert wrong.max() < 0.25
