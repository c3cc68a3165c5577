"""What people write about the network between nodes."""

from __future__ import annotations

import pytest

from clustersim.library.topologies import fabric_of, load_topology
from clustersim.study.published_network import PublishedNetwork, read_network

DGX_A100 = fabric_of("dgx-a100")
DGX_H100 = fabric_of("dgx-h100")


@pytest.mark.parametrize(
    ("text", "kind", "node", "port"),
    [
        ("NVLink3 600 GB/s; 8x200 Gb/s HDR IB per node, fat tree", "infiniband", 1600, 200),
        ("8 x 200Gbps InfiniBand", "infiniband", 1600, 200),
        ("4x HDR", "infiniband", 800, 200),
        ("8x NDR200", "infiniband", 1600, 200),
        ("RoCE 1600 Gb/s node-to-node (8x200)", "roce", 1600, 200),
        ("1.6 Tb/s RoCE per node", "roce", 1600, None),
        ("400 Gb/s EFA", "efa", 400, None),
        ("InfiniBand NDR, 400 Gb/s per GPU", "infiniband", 3200, 400),
        ("200Gb/s HDR InfiniBand (one per GPU)", "infiniband", 1600, 200),
        ("effectively one 400 Gb/s NIC in use", "rdma", 400, 400),
        ("NVLink2; 100 Gb/s Omni-Path", "omni-path", None, 100),
        ("100 GbE TCP", "ethernet", None, 100),
    ],
)
def test_words_are_read(text: str, kind: str, node: float | None, port: float | None) -> None:
    assert read_network(text, 8) == PublishedNetwork(kind=kind, node_gbits=node, port_gbits=port)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-4x200 Gb/s",
        "0x200 Gb/s",
        "8x0 Gb/s IB",
        "not stated",
        "NVLink3; IB",
        "NVLink3 400 GB/s; PCIe4 host link",
        "NVLink5, 144 Gb/s",
    ],
)
def test_no_rate_is_no_network(text: str) -> None:
    assert read_network(text, 8) is None


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("8x200 Gb/s HDR IB per node", {}),
        ("8x200 Gb/s", {}),
        ("4x200 Gb/s IB", {"fabric.nics_per_node": 4}),
        ("800 Gb/s per node", {"fabric.nics_per_node": 4}),
        ("100 Gb/s IB", {"fabric.nic": "connectx-5", "fabric.switch": "switch-ib2"}),
        (
            "4x100 Gb/s RoCE",
            {"fabric.nic": "connectx-5", "fabric.nics_per_node": 4, "fabric.switch": "ethernet-100g"},
        ),
        (
            "EFA, 400 Gb/s per node",
            {"fabric.nic": "efa-v2", "fabric.nics_per_node": 4, "communication.network": "efa"},
        ),
        ("3x200 Gb/s IB", None),
        ("2 Tb/s RoCE", None),
        ("64x200 Gb/s IB", None),
        ("999999999 Tb/s", None),
        ("50 Gb/s Ethernet", None),
    ],
)
def test_what_differs_from_a_card(text: str, changes: dict[str, object] | None) -> None:
    network = read_network(text, 8)
    assert network is not None
    assert network.changes(DGX_A100, 8) == changes
    if changes:
        load_topology("dgx-a100", nodes=2, **changes)


def test_a_sum_is_divided_into_the_cards_own_ports() -> None:
    network = read_network("1600 Gb/s IB per node", 8)
    assert network is not None
    assert network.changes(DGX_A100, 8) == {}
    assert network.changes(DGX_H100, 8) == {"fabric.nics_per_node": 4}


def test_told_ports_are_not_the_cards_own() -> None:
    network = read_network("8x200 Gb/s IB", 8)
    assert network is not None
    assert network.changes(DGX_H100, 8) == {"fabric.nic": "connectx-6", "fabric.switch": "quantum"}
