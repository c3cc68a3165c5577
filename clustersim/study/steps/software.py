"""Source and year of a row -> the software profile that stands for it."""

from __future__ import annotations

from functools import cache

from clustersim.readers.step_rows import StepRow
from clustersim.study.profile import Profile, load_profile

__all__ = ["profile_of"]

_SOFTWARE: tuple[tuple[str, str], ...] = (
    ("bigscience", "megatron-deepspeed-2022"),
    ("vtrain", "megatron-deepspeed-moe-2021"),
    ("frontier", "megatron-deepspeed-2022"),
    ("glm-130b", "megatron-deepspeed-2022"),
    ("megatron-turing", "megatron-deepspeed-2022"),
    ("sc21 table 1", "megatron-2021"),
    ("readme table, january 2021", "megatron-2021"),
    ("activation recomputation", "megatron-2022"),
    ("megatron bridge", "megatron-bridge-2025"),
    ("nemo", "nemo-2024"),
    ("megatron", "megatron-core-2024"),
    ("megascale", "megatron-core-2024"),
    ("simumax", "megatron-core-2025"),
    ("primus", "primus-2025"),
    ("llama 3 herd", "llama-3-2024"),
    ("llm-foundry", "llm-foundry-2023"),
    ("torchtitan", "torchtitan-2024"),
    ("internevo", "internevo-2024"),
    ("neusight", "pytorch-eager-2024"),
    ("zenflow", "deepspeed-huggingface-2024"),
    ("deepcompile", "deepspeed-huggingface-2024"),
    ("superoffload", "deepspeed-huggingface-2024"),
    ("deepspeed", "deepspeed-zero3-2022"),
    ("zero-infinity", "deepspeed-zero3-2022"),
    ("deep optimizer states", "deepspeed-zero3-2022"),
    ("mlp-offload", "deepspeed-zero3-2022"),
    ("fsdp", "fsdp-2023"),
    ("opt-175b", "fsdp-2023"),
    ("maxtext", "fsdp-2023"),
)
"""Words of a source -> card of a profile, the first that fits."""

_COMPILED = {"torchtitan-2024": "torchtitan-compile-2024"}
"""Profile -> that of the same framework with a compiler, for rows whose notes tell of one."""

_UNKNOWN = "megatron-core-2024"
_UNKNOWN_UNTIL_2022 = "megatron-2021"


def profile_of(row: StepRow) -> tuple[Profile, list[str]]:
    """The profile of a row and what is assumed with it."""
    source = row.source.lower()
    name = next((name for words, name in _SOFTWARE if words in source), None)
    if name in _COMPILED and "compile" in row.notes.lower():
        name = _COMPILED[name]
    if name is not None:
        return _load(name), [f"profile: {name}"]
    name = _UNKNOWN_UNTIL_2022 if row.year is not None and row.year <= 2022 else _UNKNOWN
    return _load(name), [f"profile: {name}, by its year: the source is not known"]


_load = cache(load_profile)
