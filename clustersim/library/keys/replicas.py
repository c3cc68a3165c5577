"""The settings of data parallelism: what replicas split, gather, reduce and exchange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from clustersim.library.keys.key import DEGREE, Key
from clustersim.library.values import Bytes, Flag, Name, Names, Whole, Word
from clustersim.workload.number_format import Dtype
from clustersim.workload.placeholders import Placeholders
from clustersim.workload.sharding.zeropp import PARTS

__all__ = ["REPLICA_KEYS"]

REPLICA_KEYS: Mapping[str, Key] = {
    "plan.zero": Key(Whole(0, 3), "split over replicas: 1 optimizer state, 2 also gradients, 3 also weights", 0),
    "plan.fsdp": Key(Flag(), "weights split over replicas and gathered layer by layer, as plan.zero 3", False),
    "plan.hsdp": Key(DEGREE, "ranks that weights are split over, the splits repeated over the others", otherwise="all"),
    "plan.prefetch": Key(Whole(0, 2**10), "layers gathered ahead of the one in use", 1),
    "plan.limit_gathers": Key(Flag(), "a gathering waits for room: at most plan.prefetch others are held", True),
    "plan.gather_blocks": Key(Flag(), "weights gathered block by block, as ZeRO-3 does; else layer by layer", False),
    "plan.reduce_scatter": Key(Flag(), "split gradients are reduced by reduce-scatter; else by all-reduce", True),
    "plan.per_parameter": Key(Flag(), "weights split parameter by parameter and copied, as FSDP2 does", False),
    "plan.flat_parameters": Key(
        Flag(), "gradients that go together are put together, cast and divided before, as FSDP1 and DeepSpeed do", False
    ),
    "plan.placeholders": Key(
        Word(get_args(Placeholders)), "what stands for gradients that are added to their buffer at once", "none"
    ),
    "plan.reshard": Key(Flag(), "gathered weights are given back after the forward pass", True),
    "plan.reduce_each": Key(
        Flag(), "gradients of each micro-batch are reduced", otherwise="true with plan.fsdp and plan.zero 2 and 3"
    ),
    "plan.gather_dtype": Key(
        Word(get_args(Dtype)), "format of weights that are gathered for their use", otherwise="that of dtype"
    ),
    "plan.reduce_dtype": Key(
        Word(get_args(Dtype)), "format in which gradients are reduced", otherwise="plan.gradient_dtype"
    ),
    "plan.bucket_bytes": Key(
        Bytes(),
        "gradients reduced together",
        otherwise="40e6 parameters or 1e6 a replica, the larger; 5e8 where each is reduced",
        unit="B",
    ),
    "plan.overlap_dp": Key(Flag(), "gradients reduced beside the backward pass", True),
    "plan.overlap_refresh": Key(Flag(), "updated weights are gathered beside the next forward pass", True),
    "plan.zeropp": Key(
        Names(f"some of {', '.join(PARTS)}", PARTS),
        "parts of ZeRO++: quantised gathers, weights once more in each node, quantised reductions",
        (),
    ),
    "plan.zeropp_ranks": Key(DEGREE, "ranks of a node, for hpz and qgz", 8),
    "plan.sync_every": Key(
        Whole(1, 10**4), "steps that workers train by themselves between two exchanges: local SGD, DiLoCo"
    ),
    "plan.sync_ranks": Key(DEGREE, "ranks of one worker", 1),
    "plan.sync_dtype": Key(Word(get_args(Dtype)), "format of what workers exchange", "fp32"),
    "plan.sync_momentum": Key(Flag(), "an outer Nesterov step (DiLoCo); else weights are averaged", True),
    "plan.sharding": Key(
        Name("my_package.module:function"), "an own way to split weights, gradients and state over replicas"
    ),
}
"""By dotted name."""
