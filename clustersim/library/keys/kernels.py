"""The settings of what runs on a GPU: formats, kernels, fused operators, the update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from clustersim.library.keys.key import Key
from clustersim.library.values import Flag, Names, Whole, Word
from clustersim.workload.fusion import FUSED, FUSIONS, LOSSES
from clustersim.workload.gradient_passes import GRADIENT_PASSES
from clustersim.workload.module_dtypes import MODULE_DTYPES, PRODUCTS
from clustersim.workload.number_format import Dtype
from clustersim.workload.optimizer import OPTIMIZERS
from clustersim.workload.optimizers.separate import UPDATE_KERNELS
from clustersim.workload.shard import Attention
from clustersim.workload.unaligned import UnalignedUnits

__all__ = ["KERNEL_KEYS"]

KERNEL_KEYS: Mapping[str, Key] = {
    "plan.module_dtypes": Key(
        Names(f"module:dtype, modules {', '.join(PRODUCTS)}", MODULE_DTYPES),
        "modules whose products are in another format than dtype quantises to",
        (),
    ),
    "plan.bf16_layers_at_start": Key(Whole(0, 10_000), "layers whose products dtype does not quantise", 0),
    "plan.bf16_layers_at_end": Key(Whole(0, 10_000), "layers whose products dtype does not quantise", 0),
    "plan.gradient_dtype": Key(
        Word(get_args(Dtype)), "format in which gradients are summed and reduced", otherwise="the recipe's"
    ),
    "plan.attention": Key(
        Word(get_args(Attention)),
        "one kernel, the device's usual one (flash) or one by name, in fp8 cudnn-fp8; or score matrices in memory",
        "flash",
    ),
    "plan.repeat_heads": Key(Flag(), "keys and values are copied for each query head that reads them", False),
    "plan.split_projections": Key(
        Flag(), "queries, keys and values, and gate and up, are products of their own, not one each", False
    ),
    "plan.dropout": Key(Flag(), "dropout masks are made and kept, as GPT-2 and GPT-3 train", False),
    "plan.sequence_slices": Key(
        Whole(1, 2**20), "linear attention: parts of a sequence computed one after the other, one in memory", 1
    ),
    "plan.fusion": Key(
        Names(f"some of {', '.join(FUSIONS)}", tuple(FUSIONS)), "element-wise operators that share a kernel", FUSED
    ),
    "plan.loss": Key(
        Word(LOSSES), "cross-entropy over a split vocabulary, operator by operator, or in one kernel", "parallel"
    ),
    "plan.logged_losses": Key(Whole(0, 2**4), "times that cross-entropy is computed once more for a log", 0),
    "plan.unaligned": Key(
        Word(get_args(UnalignedUnits)), "units for 16-bit products whose sides are no multiples of 16 bytes", "matrix"
    ),
    "plan.clip": Key(Flag(), "gradients are clipped by their norm", True),
    "plan.gradient_passes": Key(
        Names(f"some of {', '.join(GRADIENT_PASSES)}", GRADIENT_PASSES),
        "passes over all gradients before they are reduced: divided by the number of replicas, searched for NaN",
        (),
    ),
    "plan.optimizer": Key(Word(tuple(OPTIMIZERS)), "rule of the update", "adam"),
    "plan.update_kernels": Key(
        Word(UPDATE_KERNELS),
        "the update as one pass, with copies in fp32 around it, or Adam as operators over lists of tensors or one each",
        "fused",
    ),
}
"""By dotted name."""
