"""Measured collectives on the clusters they ran on."""

from __future__ import annotations

import pytest

from clustersim.readers.collective_rows import CollectiveRow
from clustersim.study.measured import locate


def row(hardware: str, inter_link: str) -> CollectiveRow:
    return CollectiveRow(
        line=2,
        id="one",
        group="one",
        source="a log",
        hardware=hardware,
        intra_link="",
        inter_link=inter_link,
        algo="",
        nccl_version="",
        confidence="",
        notes="",
        collective="all_reduce",
        num_ranks=16,
        num_nodes=2,
        ranks_per_node=8,
        nbytes=2**20,
        time_us=100.0,
        algbw=None,
        busbw=None,
    )


@pytest.mark.parametrize(
    ("hardware", "link", "node_gbits"),
    [
        ("H100-SXM5-80GB", "8x400 Gb/s", 3200),
        ("H100-SXM5-80GB", "not stated", 3200),
        ("H100-SXM5-80GB", "effectively one 400 Gb/s NIC in use", 400),
        ("H100-SXM5-80GB", "4x200 Gb/s HDR IB per node", 800),
        ("A100-SXM4-80GB", "100 Gb/s RoCE per node", 100),
        ("A100-SXM4-40GB", "EFA 400 Gb/s per node", 400),
    ],
)
def test_nodes_have_the_ports_that_are_told(hardware: str, link: str, node_gbits: float) -> None:
    ((one,), refused) = locate([row(hardware, link)])
    sent = next(block for block in one.topology.resources.blocks if block.kind == "nic")
    gbits = sent.capacity * sent.shape[1] * 8 / 1e9
    assert not refused
    assert 0.9 * node_gbits < gbits <= node_gbits
