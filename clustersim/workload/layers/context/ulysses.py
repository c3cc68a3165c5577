"""Attention in which ranks exchange heads for tokens: each has all tokens of its group, with some of the heads.

References
----------
Jacobs et al., DeepSpeed Ulysses, 2023, section 3. NVIDIA Transformer Engine, ``context_parallel.py``: what ``a2a`` and
``a2a+p2p`` exchange and keep.
"""

from __future__ import annotations

from clustersim.workload.layers.core import Core
from clustersim.workload.layers.piece import Piece
from clustersim.workload.op import Collective

__all__ = ["exchange", "exchange_back", "exchange_workspace"]


def exchange(core: Core, *, gradients: bool = False) -> tuple[Piece, ...]:
    """From parts of the sequence to parts of the heads: of queries, keys and values, or of the output's gradient.

    Where a ring goes across, the output is not kept as the kernel gave it, and goes once more.
    """
    if not gradients:
        return _all_to_all(core, _inputs(core))
    again = {} if core.shard.context.across == 1 else {"output again": core.output_features}
    return _all_to_all(core, again | {"gradient of the output": core.output_features})


def exchange_back(core: Core, *, gradients: bool = False) -> tuple[Piece, ...]:
    """From parts of the heads to parts of the sequence: of the output, or of the gradients of its inputs."""
    if gradients:
        return _all_to_all(core, {f"gradient of the {what}": columns for what, columns in _inputs(core).items()})
    return _all_to_all(core, {"output": core.output_features})


def exchange_workspace(core: Core) -> tuple[int, int]:
    """Bytes of the tensors before their exchange, beside what attention on one rank does: forward and backward."""
    features = core.query_features + core.kv_features
    nbytes = core.shard.width * core.shard.tokens * features
    outputs = core.shard.width * core.shard.tokens * core.output_features
    return nbytes, nbytes + outputs * (1 if core.shard.context.across == 1 else 2)


def _inputs(core: Core) -> dict[str, int]:
    return {
        "queries": core.query_features,
        "keys": core.kv_heads * core.key_dim,
        "values": core.kv_heads * core.value_dim,
    }


def _all_to_all(core: Core, columns: dict[str, int]) -> tuple[Piece, ...]:
    """One all-to-all a tensor, one after the other."""
    return tuple(
        Piece(
            op=Collective(
                name=f"all-to-all {what}",
                kind="all_to_all",
                slot="cp",
                nbytes=core.shard.width * core.shard.tokens * count,
                axis="cp",
            ),
            after=(),
        )
        for what, count in columns.items()
    )
