"""Documents that a row's sequences are packed with."""

from __future__ import annotations

import re

from clustersim.readers.step_rows import StepRow

__all__ = ["documents_of"]

_TUNED = re.compile(r"\b(sft|lora)\b", re.IGNORECASE)

_SQUAD = ("nemo", "megatron bridge")
"""Sources whose fine-tuning benchmarks pack SQuAD 1.1: performance summary of NeMo 24.07, packed to 4,096 tokens;
Megatron-Bridge, scripts/performance/configs/llama/llama3_llm_finetune.py, ``packed_sequence=True``. NeMo AutoModel's
have no padding and one document a sequence (performance summary: mock data)."""

_TOKENS = 256
"""Of a document. 94 MB of text in 98,169 examples (TensorFlow Datasets, squad 1.1) are 958 bytes each, 190 to 240
tokens of 4 to 5 bytes; the next divisor of a sequence makes all micro-batches alike."""


def documents_of(row: StepRow) -> tuple[str | tuple[int, ...], tuple[str, ...]]:
    """Lengths of a row's documents, as a job takes ``seq_lens``, and what is assumed of them.

    Attention sees no other document, and its kernels skip what a mask hides.
    """
    source = row.source.lower()
    if not _TUNED.search(row.notes) or "automodel" in source or not any(word in source for word in _SQUAD):
        return "fixed", ()
    return (_TOKENS,), (f"documents: packed, {_TOKENS} tokens each, near those of SQuAD",)
