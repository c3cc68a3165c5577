"""Where calibrations start."""

from __future__ import annotations

import pytest

import clustersim as cs
from clustersim.library.topologies import communication_of
from clustersim.study.measured import MACHINES
from clustersim.study.starts import network_start, node_start


@pytest.mark.parametrize(
    ("name", "start"),
    [("nccl-a100", "nccl"), ("nccl-v100", "nccl"), ("of-tomorrow", "nccl"), ("rccl", "rccl")],
)
def test_nodes(name: str, start: str) -> None:
    assert node_start(name) == cs.load_part("communication", start)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("rdma", "nccl-network"),
        ("of-tomorrow", "nccl-network"),
        ("efa", "nccl-efa"),
        ("efa-sendrecv", "efa-sendrecv"),
        ("rccl-network", "rccl-network"),
    ],
)
def test_networks(name: str, start: str) -> None:
    assert network_start(name) == cs.load_part("transport", start)


@pytest.mark.parametrize("card", sorted({card for _, card, _ in MACHINES}))
def test_nodes_of_mi300_and_later_start_from_rccl_and_all_others_from_nccl(card: str) -> None:
    node, network = communication_of(card)
    late = all(gpu.name.startswith("mi3") for gpu in cs.load_topology(card, nodes=1).gpus)
    assert node_start(node).name == ("rccl" if late else "nccl")
    assert network_start(network).name == ("rccl-network" if late else "nccl-network")
