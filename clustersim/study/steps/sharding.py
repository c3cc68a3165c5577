"""How a row's weights, gradients and optimizer state are split over replicas, in its source's words."""

from __future__ import annotations

import re
from typing import Any

from clustersim.readers.step_rows import StepRow
from clustersim.study.profile import Profile
from clustersim.study.steps.machine import one_node
from clustersim.study.steps.refusal import RefusedError
from clustersim.workload.precision import WIDTH
from clustersim.workload.sharding import ZeroWithin

__all__ = ["sharding_of"]

_WITHIN = re.compile(r"zero-1 within (\d+)")
"""How sources say that neighbours share one copy of the optimizer state, and all sum their gradients."""

_STAGE = re.compile(r"\b(?:zero|stage)[- ]?([0-3])\b(?! style)")
_HYBRID = re.compile(r"\bhsdp[ -]?(\d+)\b|\bfsdp (\d+) x dp\b")
"""How many ranks share one copy of the weights."""

_HYBRID_WORDS = re.compile(r"hsdp|hybrid[_ ]?shard")
"""Of a number that is not told: a node, as PyTorch's ``HYBRID_SHARD`` (torch.distributed.fsdp.ShardingStrategy)."""

_REPLICAS = re.compile(r"\bddp\b|\bno[_ ]shard\b|distributed data[- ]parallel")
"""Each rank holds all."""

_JOINED = re.compile(r"(?<=fsdp)_|_(?=zero)")
"""Underscores between words that mean something by themselves, as LitGPT's ``fsdp_zero2``."""

_READ = re.compile(
    r"\b(?:zero[ -])?(?:zero|stage)[- ]?[0-3]( style in pipeline)?\b|\bddp\b|\bno[_ ]shard\b"
    r"|\bdistributed data[- ]parallel\b|\bhybrid[_ ]?shard\b"
    r"|\b(?:distributed )?optimizer\b|\blauncher default\b|\bwithin \d+ (gpus|ranks)\b|\bhybrid\b"
    r"|\bfsdp2?( \d+ x dp \d+)?\b|\bhsdp(?:[ -]?\d+)?\b|\bfull[_ ]shard\b|\bshard_grad_op\b|\btp ?\d+\b"
)
"""What is understood; degrees of tensor parallelism have a column of their own."""


def sharding_of(row: StepRow, profile: Profile, ranks: int, assumed: list[str]) -> dict[str, Any]:
    """zero, fsdp, hsdp, reshard and the dtype of gradients.

    Parameters
    ----------
    row : StepRow
    profile : Profile
        which says what the row does not
    ranks : int
        that hold the same weights
    assumed : list[str]
        is extended by what is assumed, and by words that are not understood

    Raises
    ------
    RefusedError
        when the words tell of another stage of ZeRO than the column
    """
    text = _JOINED.sub(" ", row.sharding.lower())
    found = _told(row, text, profile, ranks, assumed)
    if other := re.sub(r"[^\w]+", " ", _READ.sub(" ", text)).strip():
        assumed.append(f"sharding: {other!r} is not understood; published as {row.sharding!r}")
    return {"zero": 0} if ranks == 1 else found


def _told(row: StepRow, text: str, profile: Profile, ranks: int, assumed: list[str]) -> dict[str, Any]:
    if "zero-2 style" in text:
        return {"zero": 2}
    if re.search(r"fsdp|hsdp|full[_ ]shard|hybrid[_ ]?shard|shard_grad_op", text):
        found: dict[str, Any] = {"fsdp": True}
        kept = _STAGE.search(text)
        if "shard_grad_op" in text or (kept is not None and kept[1] == "2"):
            found["reshard"] = False
        inner = _HYBRID.search(text)
        of = int(inner[1] or inner[2]) if inner is not None else _node(row, text, assumed)
        if of and ranks > of:
            found["hsdp"] = of
        return found
    if _REPLICAS.search(text):
        return {"zero": 0}
    words = _STAGE.search(text)
    stage = row.zero_stage if words is None else int(words[1])
    if stage is not None and row.zero_stage not in (None, stage):
        raise RefusedError("numbers", f"zero_stage {row.zero_stage} and sharding {row.sharding!r}")
    within = _WITHIN.search(text)
    if within is not None:
        width = WIDTH["bf16"]
        assumed.append("sharding: gradients summed over all ranks in the weights' dtype, as InternEvo does")
        sharding = ZeroWithin(inner=int(within[1]), weight=width, gradient=width)
        return {"sharding": sharding, "gradient_dtype": "bf16"}
    if "within" in text:
        assumed.append(f"sharding: over all {ranks} ranks; published as {row.sharding!r}")
    if stage is None and "distributed optimizer" in text:
        stage = 1
    if stage is None:
        stage = profile.zero
        assumed.append(f"sharding: zero {stage}, the profile's")
    return {"zero": stage}


def _node(row: StepRow, text: str, assumed: list[str]) -> int:
    """Replicas of a node that share one copy of the weights; 0 where words do not tell of a hybrid."""
    if not _HYBRID_WORDS.search(text):
        return 0
    size = one_node(row).num_devices
    per_node = -(-row.gpus // row.nodes) if row.gpus and row.nodes else size
    of = max(1, min(size, per_node) // ((row.tp or 1) * (row.cp or 1)))
    assumed.append(f"sharding: over the {of} replicas of a node, as HYBRID_SHARD; published as {row.sharding!r}")
    return of
