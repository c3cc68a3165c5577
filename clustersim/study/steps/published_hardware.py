"""The hardware of a row in the source's words -> the topology card that stands for it, and what differs from it."""

from __future__ import annotations

import re

from clustersim.readers.step_rows import StepRow
from clustersim.study.measured import MACHINES
from clustersim.study.steps.refusal import RefusedError

__all__ = ["find_card"]

_PCIE = "workstation-4090"
"""A node of as many GPUs on PCIe as a row has there."""

_P4: dict[str, object] = {"fabric.nic": "efa", "fabric.nics_per_node": 4, "communication.network": "efa-sendrecv"}

_HARDWARE: tuple[tuple[tuple[str, ...], str, dict[str, object]], ...] = (
    (("jean zay", "a100"), "jean-zay-a100", {}),
    (
        ("jean zay", "v100"),
        "dgx1-v100",
        {"fabric.nic": "omni-path-100", "fabric.switch": "omni-path-100", "fabric.nics_per_node": 8},
    ),
    (("500 w",), "grand-teton-h100", {}),
    (("p4de",), "dgx-a100", _P4),
    (("p4d",), "dgx-a100-40gb", _P4),
    (("p3dn",), "aws-p3dn", {}),
    (("gh200", "alps"), "gh200-quad", {}),
    (("gh200", "jupiter"), "gh200-quad", {}),
    (("v100", "pcie"), _PCIE, {"node.gpu": "v100-pcie", "node.p2p": True}),
    (("v100", "16gb"), "dgx1-v100", {"node.gpu": "v100-sxm2-16gb"}),
    (("h100", "nvl"), "h100-pcie-pairs", {}),
    (("a100-sxm4-40gb (2 gpus",), "dgx-a100-40gb-2gpu", {}),
    (("a800", "8358"), "hgx-a800", {"host.cpu": "xeon-8358", "host.socket_link": "upi-11.2"}),
    *MACHINES,
)
"""Words of the hardware -> card and changes, the first that fits: machines, then boards.

Jean Zay's nodes have four V100 and four ports (IDRIS), half of a card's eight."""


_ON_PCIE: tuple[tuple[tuple[str, ...], dict[str, object]], ...] = (
    (("4090",), {}),
    (("3090",), {"node.gpu": "rtx-3090"}),
    (("6000", "ada"), {"node.gpu": "rtx-6000-ada", "node.p2p": True}),
    (("mi210",), {"node.gpu": "mi210", "node.p2p": True}),
    (("l40s",), {"node.gpu": "l40s", "node.p2p": True}),
    (("l4",), {"node.gpu": "l4", "node.p2p": True}),
    (("a40",), {"node.gpu": "a40", "node.p2p": True}),
    (("a30",), {"node.gpu": "a30", "node.p2p": True}),
    (("a10",), {"node.gpu": "a10", "node.p2p": True}),
    (("t4",), {"node.gpu": "t4", "node.p2p": True}),
)
"""Whole words of other hardware -> what differs from a node on PCIe, whose host and network then stand for theirs."""


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
        words = set(re.findall(r"[a-z0-9]+", text))
        found = next(((_PCIE, changes) for gpu, changes in _ON_PCIE if words.issuperset(gpu)), None)
    if found is None:
        raise RefusedError("hardware", f"hardware {row.hardware!r}")
    card, changes = found
    return card, {**changes, "node.num_gpus": _per_node(row)} if card == _PCIE else changes


def _per_node(row: StepRow) -> int:
    """GPUs of a node, at most eight where nodes are not told."""
    gpus = row.gpus or 1
    return -(-gpus // row.nodes) if row.nodes else min(gpus, 8)
