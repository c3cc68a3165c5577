"""The settings of recomputation: what a layer keeps for its backward pass, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from clustersim.library.keys.key import Key
from clustersim.library.values import Flag, Names, Whole, Word
from clustersim.workload.recompute import MODULES, Recompute, RecomputeMethod

__all__ = ["RECOMPUTE_KEYS"]

RECOMPUTE_KEYS: Mapping[str, Key] = {
    "plan.recompute": Key(Word(get_args(Recompute)), "what the backward pass computes again", "none"),
    "plan.recompute_modules": Key(
        Names(f"some of {', '.join(MODULES)}", tuple(MODULES)),
        "parts of a layer that selective computes again",
        ("core",),
    ),
    "plan.recompute_method": Key(
        Word(get_args(RecomputeMethod)), "full: layers in groups, or the first of each chunk", "uniform"
    ),
    "plan.recompute_layers": Key(
        Whole(1, 10**4), "full: layers of a group, or of a chunk", otherwise="1 with uniform, all with block"
    ),
    "plan.recompute_early_stop": Key(
        Flag(), "full: layers are computed again only until all that is read is there", False
    ),
    "plan.offload_activations": Key(Flag(), "what layers keep for the backward pass waits on the host", False),
}
"""By dotted name."""
