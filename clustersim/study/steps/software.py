"""Source and year of a row, or what else it tells of its framework -> the software profile that stands for it."""

from __future__ import annotations

import re
from functools import cache

from clustersim.readers.step_rows import StepRow
from clustersim.study.profile import Profile, load_profile

__all__ = ["profile_of"]

_SOURCES: tuple[tuple[str, str], ...] = (
    ("bigscience", "megatron-deepspeed-2022"),
    ("vtrain", "megatron-deepspeed-moe-2021"),
    ("frontier", "megatron-deepspeed-2022"),
    ("glm-130b", "megatron-deepspeed-2022"),
    ("megatron-turing", "megatron-deepspeed-2022"),
    ("sc21 table 1", "megatron-2021"),
    ("readme table, january 2021", "megatron-2021"),
    ("activation recomputation", "megatron-2022"),
    ("automodel", "fsdp2-2024"),
    ("nemo", "nemo"),
    ("megascale", "megatron-core-2024"),
    ("simumax", "megatron-core-2025"),
    ("llama 3 herd", "llama-3-2024"),
    ("neusight", "pytorch-eager-2024"),
    ("zenflow", "deepspeed-huggingface-2024"),
    ("deepcompile", "deepspeed-huggingface-2024"),
    ("superoffload", "deepspeed-huggingface-2024"),
    ("zero-infinity", "deepspeed-zero3-2022"),
    ("deep optimizer states", "deepspeed-zero3-2022"),
    ("mlp-offload", "deepspeed-zero3-2022"),
    ("opt-175b", "fsdp-2023"),
)
"""Words of a source that does not name its framework, or uses it in a way of its own."""

_FRAMEWORKS: tuple[tuple[str, str], ...] = (
    ("megatron-deepspeed", "megatron-deepspeed-2022"),
    ("neox", "megatron-deepspeed-2022"),
    ("megatron bridge", "megatron-bridge-2025"),
    ("megatron-bridge", "megatron-bridge-2025"),
    ("nemo ", "nemo"),
    ("megatron", "megatron"),
    ("primus", "primus-2025"),
    ("llm-foundry", "llm-foundry-2023"),
    ("torchtitan", "torchtitan-2024"),
    ("internevo", "internevo-2024"),
    ("fsdp2", "fsdp2-2024"),
    *((words, "fsdp") for words in ("fsdp", "hsdp", "full_shard", "hybrid_shard", "shard_grad_op")),
    ("maxtext", "fsdp-2023"),
    ("deepspeed", "deepspeed"),
    ("llm.c", "llm-c-2024"),
    ("nanogpt", "pytorch-compile-2024"),
)
"""Words of a framework, looked for in the source, and then in how states are sharded and the notes."""

_PLAIN = re.compile(r"\b(ddp|distributed data[- ]parallel|pytorch|torch\.compile)\b")
"""Words of PyTorch where no more is told."""

_COMPILER = re.compile(
    r"(?<!no )(?<!no torch\.)(?<!not )(?<!without )(?<!without torch\.)compile[rd]?(?! off|=false|: false)"
)
"""That a compiler ran, and not that none did."""

_LATER = 9999
_BY_YEAR: dict[str, tuple[tuple[int, str], ...]] = {
    "megatron": (
        (2021, "megatron-2021"),
        (2022, "megatron-2022"),
        (2024, "megatron-core-2024"),
        (_LATER, "megatron-core-2025"),
    ),
    "deepspeed": ((2022, "deepspeed-zero3-2022"), (_LATER, "deepspeed-huggingface-2024")),
    "fsdp": ((2023, "fsdp-2023"), (_LATER, "fsdp-2024")),
    "nemo": ((2024, "nemo-2024"), (_LATER, "nemo-2025")),
    "pytorch": ((2022, "pytorch-eager-2024"), (_LATER, "pytorch-2024")),
}
"""Framework -> last year and profile, in order; a row without a year has that of 2024.

DeepSpeed ran Megatron-LM's layers until models came from Hugging Face; who sharded by FSDP before had kernels of his
own. What PyTorch ran until 2022 had attention as separate kernels: ``scaled_dot_product_attention`` is of PyTorch 2."""

_COMPILED = {
    "torchtitan-2024": "torchtitan-compile-2024",
    "fsdp2-2024": "fsdp2-compile-2024",
    "fsdp-2024": "fsdp2-compile-2024",
    "pytorch-2024": "pytorch-compile-2024",
}
"""Profile -> that of the same framework with a compiler, for rows whose notes tell of one."""


_PLAINER = {"fsdp-2023": "fsdp-2024"}
"""Profile -> that of the same framework without kernels of its own, for rows whose notes tell of none."""

_EAGER = re.compile(r"\beager\b|\b(no|without) (torch\.)?compile")


def profile_of(row: StepRow) -> tuple[Profile, list[str]]:
    """The profile of a row and what is assumed with it."""
    source = row.source.lower()
    name = _first(_SOURCES, source) or _first(_FRAMEWORKS, source)
    if name is None:
        name = _first(_FRAMEWORKS, f"{row.sharding} {row.notes}".lower()) or _by_layout(row)
        told = ": the source does not name its software"
    else:
        told = ""
    if name in _BY_YEAR:
        name = next(profile for last, profile in _BY_YEAR[name] if (row.year or 2024) <= last)
        told = told and f", by its year{told}"
    if name in _PLAINER and _EAGER.search(row.notes.lower()) and "fused" not in row.notes.lower():
        name = _PLAINER[name]
    if name in _COMPILED and _COMPILER.search(row.notes.lower()):
        name = _COMPILED[name]
    return _load(name), [f"profile: {name}{told}"]


def _by_layout(row: StepRow) -> str:
    """Weights that are sharded without a pipeline are PyTorch's or DeepSpeed's, and so is what names PyTorch or DDP.

    The rest is as Megatron does it.
    """
    if _PLAIN.search(f"{row.sharding} {row.notes} {row.source}".lower()) and (row.tp or 1) == (row.pp or 1) == 1:
        return "pytorch"
    if (row.pp or 1) == 1 and (row.zero_stage or 0) >= 2:
        return "deepspeed" if "zero" in row.sharding.lower() else "fsdp"
    return "megatron"


def _first(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for words, name in table if words in text), None)


_load = cache(load_profile)
