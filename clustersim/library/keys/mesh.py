"""The settings of the mesh: its degrees, the order of its axes, and what ranks that share a layer exchange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from clustersim.library.keys.key import DEGREE, Key
from clustersim.library.values import Flag, Names, Whole, Word
from clustersim.workload.context import METHODS
from clustersim.workload.tensor_overlap import TpOverlap

__all__ = ["MESH_KEYS"]

MESH_KEYS: Mapping[str, Key] = {
    "plan.tp": Key(DEGREE, "tensor-parallel ranks a layer", 1),
    "plan.pp": Key(DEGREE, "pipeline stages", 1),
    "plan.dp": Key(DEGREE, "replicas", otherwise="what fills the devices"),
    "plan.cp": Key(DEGREE, "context-parallel ranks, which share each sequence", 1),
    "plan.context": Key(
        Word(tuple(METHODS)),
        "how attention reaches across them: around a ring, with keys and values gathered, or heads exchanged",
        "zigzag",
    ),
    "plan.ulysses": Key(DEGREE, "ranks of a group that exchange heads, with plan.context hybrid"),
    "plan.sequence_parallel": Key(
        Flag(), "norms and residual stream split along the sequence", otherwise="true with tp above 1"
    ),
    "plan.axis_order": Key(
        Names("each of tp, cp, dp, pp once", ("tp", "cp", "dp", "pp")),
        "axes of the rank numbers, innermost first",
        ("tp", "cp", "dp", "pp"),
    ),
    "plan.gather_cast": Key(Flag(), "what ranks of tp gather for quantised products is cast before", False),
    "plan.batch_first": Key(Flag(), "what ranks of tp gather and reduce along the sequence is copied", False),
    "plan.overlap_tp": Key(Flag(), "weight gradients computed beside a reduction", True),
    "plan.tp_overlap": Key(
        Word(get_args(TpOverlap)),
        "products take and give tokens in parts: round the ranks, each by a collective, or gathered so and reduced so",
        "none",
    ),
    "plan.tp_overlap_chunks": Key(Whole(1, 1024), "parts of plan.tp_overlap pipeline", 4),
}
"""By dotted name."""
