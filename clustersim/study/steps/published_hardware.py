"""The hardware of a row in the source's words -> the topology card that stands for it, and what differs from it."""

from __future__ import annotations

import re
from difflib import get_close_matches

from clustersim.readers.step_rows import StepRow
from clustersim.study.hardware_words import has_words
from clustersim.study.measured import MACHINES
from clustersim.study.steps.refusal import RefusedError

__all__ = ["find_card"]

_PCIE = "workstation-4090"
"""A node of as many GPUs on PCIe as a row has there."""

_P4: dict[str, object] = {"fabric.nic": "efa", "fabric.nics_per_node": 4, "communication.network": "efa-sendrecv"}
_EFA: dict[str, object] = {"communication.network": "efa"}

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
    (("p5.48xlarge",), "dgx-h100", {**_EFA, "fabric.nic": "efa-v2", "fabric.nics_per_node": 32}),
    (("p5e.48xlarge",), "hgx-h200", {**_EFA, "fabric.nic": "efa-v2", "fabric.nics_per_node": 32}),
    (("p5en.48xlarge",), "hgx-h200", {**_EFA, "fabric.nic": "efa-v3", "fabric.nics_per_node": 16}),
    (("polaris",), "polaris", {}),
    (("frontier",), "frontier", {}),
    (("lumi", "mi250"), "frontier", {}),
    (("selene",), "dgx-a100", {}),
    *((("gh200", site), "gh200-quad", {}) for site in ("alps", "jupiter", "isambard")),
    (("grace hopper",), "gh200", {}),
    (("v100 pcie",), _PCIE, {"node.gpu": "v100-pcie", "node.p2p": True}),
    (("v100", "16gb"), "dgx1-v100", {"node.gpu": "v100-sxm2-16gb"}),
    (("h100", "nvl"), "h100-pcie-pairs", {}),
    (("a100", "40gb", "(2 gpus"), "dgx-a100-40gb-2gpu", {}),
    (("a800", "8358"), "hgx-a800", {"host.cpu": "xeon-8358", "host.socket_link": "upi-11.2"}),
    *MACHINES,
    (("dgx-2",), "dgx2-v100", {}),
    (("dgx-1",), "dgx1-v100", {}),
)
"""Words of the hardware -> card and changes, the first that fits: machines, then boards.

Jean Zay's nodes have four V100 and four ports (IDRIS), half of a card's eight. EC2's p5 and p5e have 32 ports of EFA at
100 Gb/s, p5en 16 at 200 (EC2 User Guide). LUMI's nodes are Frontier's: four MI250X and four ports of Slingshot."""


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


_ALIKE = 0.7
"""How alike two names must be for one to stand beside the other in a refusal: MI325X and MI355 are 0.73."""


def find_card(row: StepRow) -> tuple[str, dict[str, object]]:
    """Card of a row's hardware, and what differs from it.

    Raises
    ------
    RefusedError
        when no card stands for it
    """
    found = next(((card, changes) for told, card, changes in _HARDWARE if has_words(row.hardware, told)), None)
    words = re.findall(r"[a-z0-9]+", row.hardware.lower())
    if found is None:
        found = next(((_PCIE, changes) for gpu, changes in _ON_PCIE if set(words).issuperset(gpu)), None)
    if found is None:
        raise RefusedError("hardware", f"hardware {row.hardware!r}{_nearest(words)}")
    card, changes = found
    return card, {**changes, "node.num_gpus": _per_node(row)} if card == _PCIE else changes


def _per_node(row: StepRow) -> int:
    """GPUs of a node, at most eight where nodes are not told."""
    gpus = row.gpus or 1
    return -(-gpus // row.nodes) if row.nodes else min(gpus, 8)


def _nearest(words: list[str]) -> str:
    """GPU that has a card and whose name is most like one of the words, of the same series."""
    tables = (*_HARDWARE, *_ON_PCIE)
    gpus = sorted({word for told, *_ in tables for word in told if re.fullmatch(r"[a-z]+\d+[a-z]*", word)})
    for word in words:
        near = get_close_matches(word, [gpu for gpu in gpus if gpu[0] == word[0]], n=1, cutoff=_ALIKE)
        if near:
            return f"; nearest: {near[0].upper()}"
    return ""
