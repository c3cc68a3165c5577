"""Documents of fine-tuning benchmarks."""

from __future__ import annotations

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.packed import documents_of


@pytest.mark.parametrize(
    ("source", "notes", "packed"),
    [
        ("NVIDIA NeMo 24.07-v2 performance summary (FP8 finetuning)", "SFT; packed sequences of 4096", True),
        ("NVIDIA Megatron Bridge performance summary 26.06", "LoRA", True),
        ("NVIDIA Megatron Bridge performance summary 26.06", "", False),
        ("a paper", "LoRA", False),
        ("NeMo AutoModel performance summary", "LoRA", False),
    ],
)
def test_what_nvidia_tunes_on_is_packed(source: str, notes: str, packed: bool) -> None:
    lengths, assumed = documents_of(StepRow(line=1, value=1.0, source=source, notes=notes))
    assert (lengths != "fixed") is packed
    assert bool(assumed) is packed


def test_micro_batches_stay_alike() -> None:
    lengths, _ = documents_of(StepRow(line=1, value=1.0, source="NVIDIA NeMo", notes="SFT"))
    assert all(seq_len % int(tokens) == 0 for seq_len in (2048, 4096, 16384) for tokens in lengths)
