"""What one step of a transformer achieves, counted from its model alone."""

from __future__ import annotations

from collections import Counter

from clustersim.workload.documents import Documents
from clustersim.workload.job import Ledger
from clustersim.workload.model import Model
from clustersim.workload.model_flops import ModelFlops, training_flops
from clustersim.workload.precision import Recipe, find_recipe

__all__ = ["ledger"]


def ledger(
    model: Model, *, tokens: int, seq_len: int, dtype: str | Recipe, documents: Documents | None = None
) -> Ledger:
    """Model FLOP of a step.

    As :func:`clustersim.workload.model_flops.training_flops` counts them: with N matmul parameters that a token meets,
    L layers, a heads of width d and sequences of s tokens, 6·N FLOP a token, and attention 12·L·a·d·s a token over the
    full square and half of it under the causal mask. Of sequences that are packed the square is that of each document.

    Parameters
    ----------
    model : Model
    tokens, seq_len : int
        of the step; of a sequence
    dtype : str or Recipe
    documents : Documents, optional
        of as many sequences as the step has, or of those of each of its optimizer steps
    """
    flops = training_flops(model, seq_len) * (tokens // seq_len)
    if documents is not None:
        lengths = Counter(length for sequence in documents.sequences for length in sequence)
        whole = sum((training_flops(model, length) * count for length, count in lengths.items()), ModelFlops())
        flops = whole * (tokens // (seq_len * len(documents.sequences)))
    return Ledger(
        tokens=tokens,
        samples=tokens // seq_len,
        model_flops=flops.total,
        model_flops_full_attention=flops.total_full_attention,
        dtype=find_recipe(dtype).activation_operand.dtype,
    )
