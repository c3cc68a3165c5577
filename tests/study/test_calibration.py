"""Numbers are found again from times that they made, and what no time depends on stays where it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import clustersim as cs
from clustersim.readers.collective_rows import CollectiveRow
from clustersim.study.calibration import Calibration, calibrate, errors
from clustersim.study.measured import Measured, locate
from clustersim.study.trials import Trials

NODE, NETWORK = cs.load_part("communication", "nccl"), cs.load_part("transport", "nccl-network")
START = Calibration(nodes={"nccl-a100": NODE}, networks={"rdma": NETWORK})
SIZES = [1 << k for k in range(10, 33, 2)]


def rows(kind: str, num_ranks: int, num_nodes: int = 1, *, inter_link: str = "8x200 Gb/s") -> list[Measured]:
    given = [
        CollectiveRow(
            line=line,
            id=f"{kind}-{num_ranks}-{nbytes}",
            group=f"{kind}-{num_ranks}",
            source="made",
            hardware="A100-SXM4-80GB",
            intra_link="",
            inter_link=inter_link,
            algo="",
            nccl_version="",
            confidence="high",
            notes="",
            collective=kind,
            num_ranks=num_ranks,
            num_nodes=num_nodes,
            ranks_per_node=num_ranks // num_nodes,
            nbytes=nbytes,
            time_us=1.0,
            algbw=None,
            busbw=None,
        )
        for line, nbytes in enumerate(SIZES, start=2)
    ]
    placed, refused = locate(given)
    assert not refused
    return placed


def timed(placed: Sequence[Measured], truth: Calibration) -> list[Measured]:
    """The rows with the times that ``truth`` predicts."""
    seconds = Trials.of(placed).seconds(truth.nodes["nccl-a100"], truth.networks["rdma"])
    return [
        replace(one, row=replace(one.row, time_us=float(took * 1e6))) for one, took in zip(placed, seconds, strict=True)
    ]


def test_what_made_the_times_is_found() -> None:
    node = replace(NODE, launch_latency=12e-6, ll128_latency=1.5e-6, simple_fraction=0.7, message_fraction=0.5)
    truth = replace(START, nodes={"nccl-a100": node})
    placed = [*rows("all_reduce", 8), *rows("all_reduce", 2), *rows("all_gather", 8), *rows("all_to_all", 8)]
    measured = timed(placed, truth)
    found = calibrate(measured, START)
    assert np.abs(errors(measured, START)).max() > 0.3
    assert np.quantile(np.abs(errors(measured, found)), 0.9) < 0.03
    assert found.nodes["nccl-a100"].simple_fraction == pytest.approx(0.7, rel=0.05)
    assert found.nodes["nccl-a100"].nvls_fraction == NODE.nvls_fraction, "an A100 has no NVLS"
    assert "nvls_fraction" not in found.determined["nccl-a100"]
    assert found.networks == START.networks, "one node says nothing about the network"


def test_a_slow_network_is_found_whatever_protocol_was_the_fastest() -> None:
    """Half the bandwidth: every protocol must be slower, not only the one that is taken in the end."""
    slow = replace(NETWORK, ll128_fraction=0.4, simple_fraction=0.5)
    measured = timed(rows("all_reduce", 16, 2), replace(START, networks={"rdma": slow}))
    found = calibrate(measured, START)
    assert np.abs(errors(measured, START)).max() > 0.3
    assert np.quantile(np.abs(errors(measured, found)), 0.9) < 0.05
    assert found.nodes == START.nodes


@pytest.mark.parametrize("inter_link", ["", "8x200 Gb/s assumed"])
def test_a_network_that_nobody_knows_calibrates_nothing(inter_link: str) -> None:
    slow = replace(NETWORK, simple_fraction=0.5)
    measured = timed(rows("all_reduce", 16, 2, inter_link=inter_link), replace(START, networks={"rdma": slow}))
    found = calibrate(measured, START)
    assert found.networks == START.networks
    assert not found.determined


def test_the_search_is_the_same_each_time() -> None:
    measured = timed(rows("all_reduce", 8), replace(START, nodes={"nccl-a100": replace(NODE, simple_fraction=0.6)}))
    assert calibrate(measured, START).nodes == calibrate(measured, START).nodes
