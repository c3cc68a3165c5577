"""What is known of the networks that measurements ran over."""

from __future__ import annotations

from pathlib import Path

import pytest

import clustersim as cs
from clustersim.study.networks import network_of

HEADER = "id,group,source,hardware,nodes,gpus,gpus_per_node,inter_link,collective,size_bytes,time_us"


@pytest.mark.parametrize(
    ("text", "known", "ports_told"),
    [
        ("8x400 Gb/s", True, True),
        ("400 Gb/s IB", True, False),
        ("8x400 Gb/s assumed", False, False),
        ("4 NICs per node in use, NIC speed not read", True, False),
        ("", False, False),
        (";;;;", False, False),
        ("0x200 Gb/s", False, False),
        ("3x400 Gb/s", False, False),
        ("64x400 Gb/s", False, False),
        ("NVLink4", False, False),
    ],
)
def test_only_words_that_can_be_read_are_known(text: str, known: bool, ports_told: bool) -> None:
    network = network_of(text, "dgx-h100", {}, 8)
    assert (network.known, network.ports_told) == (known, ports_told)
    assert repr(text) in network.told


@pytest.mark.parametrize(
    ("text", "card", "changes"),
    [
        ("400 Gbps", "dgx-a100", {"fabric.nics_per_node": 2}),
        ("200 Gbps", "dgx-a100", {}),
        ("800 Gbps", "dgx-h100", {"fabric.nics_per_node": 2}),
        ("400 Gbps", "dgx-h100", {}),
        ("800 Gb/s", "dgx-b300", {}),
    ],
)
def test_a_rate_that_no_port_of_the_node_has_is_the_nodes(text: str, card: str, changes: dict[str, object]) -> None:
    network = network_of(text, card, {}, 8)
    assert dict(network.changes) == changes
    assert network.ports_told is bool(changes)


def test_collectives_over_unreadable_networks_are_out_of_domain(tmp_path: Path) -> None:
    links = ("8x400 Gb/s", "4x400 Gb/s", "3x400 Gb/s", ";;;;", "64x400 Gb/s")
    rows = [f"r{i},g,s,H100,2,16,8,{link},all_reduce,1073741824,6000" for i, link in enumerate(links)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    known, halved, *others = cs.validate(path).rows
    assert [row.labels["network"] for row in (known, halved)] == ["known", "known"]
    assert known.predicted is not None
    assert halved.predicted is not None
    assert halved.predicted > 1.2 * known.predicted
    for row in others:
        assert (row.labels["network"], row.in_domain, row.predicted) == ("not known", False, known.predicted)
        assert any(text.startswith("unknown network: that of dgx-h100 is taken") for text in row.assumptions)
