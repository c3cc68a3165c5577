"""The settings of collectives: what NCCL costs, as what it runs them, and what they take from kernels."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.library.keys.key import TOPOLOGY, Key
from clustersim.library.values import Name, Number

__all__ = ["COMMUNICATION_KEYS"]

COMMUNICATION_KEYS: Mapping[str, Key] = {
    "communication.node": Key(Name("a communication card"), "what NCCL costs inside nodes", otherwise=TOPOLOGY),
    "communication.network": Key(Name("a transport card"), "what NCCL costs between nodes", otherwise=TOPOLOGY),
    **{
        f"algorithms.{kind}": Key(
            Name("an algorithm, or with a protocol: ring, tree/LL128"), f"that {kind} runs as", otherwise="the fastest"
        )
        for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce")
    },
    "overlap.sm": Key(
        Number(0, 100), "factor on the SMs that collectives take from kernels beside them; 0: they take none", 1.0
    ),
    "overlap.hbm": Key(
        Number(0, 100), "factor on the bytes in HBM of collectives, which compete with kernels'; 0: they do not", 1.0
    ),
}
"""By dotted name."""
