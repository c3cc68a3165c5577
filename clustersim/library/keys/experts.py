"""The settings of experts: where they are, which tokens they get and how these reach them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from clustersim.library.keys.key import DEGREE, Key
from clustersim.library.values import Flag, Name, Number, Whole, Word
from clustersim.workload.exchange import Dispatch
from clustersim.workload.expert_kernels import ExpertKernels

__all__ = ["EXPERT_KEYS"]

EXPERT_KEYS: Mapping[str, Key] = {
    "plan.ep": Key(DEGREE, "ranks that the experts of a layer are spread over, of those of dp, cp and tp", 1),
    "plan.etp": Key(DEGREE, "ranks that share each expert; Megatron-Core's default is tp", otherwise="1"),
    "plan.capacity_factor": Key(
        Number(0, 2**20, above=True),
        "copies of tokens that an expert takes, over its even share; the rest is dropped",
        otherwise="none is dropped",
        usual=1.25,
    ),
    "plan.token_imbalance": Key(
        Name("uniform, zipf:S or a .csv of the experts' popularity"), "which experts tokens go to", "uniform"
    ),
    "plan.token_seed": Key(Whole(0, 2**32 - 1), "which experts are popular under zipf", 0),
    "plan.dispatch": Key(
        Word(get_args(Dispatch)),
        "tokens go by pairs of ranks, first inside nodes, or once to each node and rank",
        "all_to_all",
    ),
    "plan.overlap_dispatch": Key(Whole(1, 1024), "parts in which a micro-batch is sent to its experts", 1),
    "plan.overlap_shared": Key(Flag(), "shared experts work while tokens are on their way", False),
    "plan.fp8_dispatch": Key(Flag(), "tokens are sent to experts as dtype quantises them", False),
    "plan.fp8_activation_input": Key(
        Flag(), "what the activations of experts read is kept as dtype quantises it", False
    ),
    "plan.expert_kernels": Key(
        Word(get_args(ExpertKernels)), "products of a rank's experts: one kernel for all, or one for each", "grouped"
    ),
}
"""By dotted name."""
