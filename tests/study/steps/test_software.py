"""Which software a row ran."""

from __future__ import annotations

from typing import Any

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.software import profile_of


@pytest.mark.parametrize(
    ("columns", "profile", "told"),
    [
        ({"source": "Megatron-LM (2019)", "year": 2019}, "megatron-2021", False),
        ({"source": "Megatron-LM README", "year": 2023}, "megatron-core-2024", False),
        ({"source": "Megatron-LM README"}, "megatron-core-2024", False),
        ({"source": "Megatron-Core 0.14", "year": 2026}, "megatron-core-2025", False),
        ({"source": "GPT-NeoX-20B paper", "year": 2022}, "megatron-deepspeed-2022", False),
        ({"source": "Reducing Activation Recomputation", "year": 2022}, "megatron-2022", False),
        ({"source": "a blog", "sharding": "FSDP", "year": 2024}, "fsdp-2024", True),
        ({"source": "a blog", "sharding": "FSDP", "year": 2023}, "fsdp-2023", True),
        ({"source": "a blog", "sharding": "FSDP2", "notes": "torch.compile", "year": 2025}, "fsdp2-compile-2024", True),
        ({"source": "a blog", "notes": "DeepSpeed 0.9", "zero_stage": 3}, "deepspeed-huggingface-2024", True),
        ({"source": "a paper", "sharding": "ZeRO-3", "zero_stage": 3, "year": 2022}, "deepspeed-zero3-2022", True),
        ({"source": "DeepSpeed settings", "year": 2024}, "deepspeed-huggingface-2024", False),
        ({"source": "a paper", "sharding": "full", "zero_stage": 3}, "fsdp-2024", True),
        ({"source": "a paper", "zero_stage": 3, "pp": 4, "year": 2022}, "megatron-2022", True),
        ({"source": "a paper", "tp": 8, "year": 2023}, "megatron-core-2024", True),
        ({"source": "torchtitan benchmarks", "notes": "compile + Float8"}, "torchtitan-compile-2024", False),
        ({"source": "NeMo AutoModel performance summary", "year": 2025}, "fsdp2-2024", False),
        ({"source": "a blog", "sharding": "FSDP", "notes": "no torch.compile", "year": 2024}, "fsdp-2024", True),
        ({"source": "a blog", "sharding": "FSDP", "notes": "without compiler", "year": 2024}, "fsdp-2024", True),
        ({"source": "a blog", "sharding": "HSDP", "notes": "compiled", "year": 2024}, "fsdp2-compile-2024", True),
        ({"source": "a blog", "sharding": "FULL_SHARD", "year": 2023}, "fsdp-2023", True),
        ({"source": "a blog", "sharding": "FSDP", "notes": "eager", "year": 2023}, "fsdp-2024", True),
        ({"source": "a blog", "sharding": "FSDP", "notes": "fused, no compiler", "year": 2023}, "fsdp-2023", True),
        ({"source": "llm.c discussion"}, "llm-c-2024", False),
        ({"source": "nanoGPT README", "sharding": "DDP", "year": 2023}, "pytorch-compile-2024", False),
        ({"source": "a blog", "sharding": "DDP", "year": 2024}, "pytorch-2024", True),
        ({"source": "a blog", "notes": "torch.compile, one GPU", "year": 2024}, "pytorch-compile-2024", True),
        ({"source": "a blog", "sharding": "DDP", "year": 2021}, "pytorch-eager-2024", True),
        ({"source": "a blog on PyTorch", "sharding": "FSDP", "year": 2024}, "fsdp-2024", True),
        ({"source": "a blog on PyTorch", "tp": 8, "year": 2024}, "megatron-core-2024", True),
    ],
)
def test_source_words_layout_and_year(columns: dict[str, Any], profile: str, told: bool) -> None:
    found, assumptions = profile_of(StepRow(line=2, value=1.0, **columns))
    assert found.name == profile
    assert [("does not name its software" in text) for text in assumptions] == [told]
