"""The number format of a row in its source's words -> a recipe."""

from __future__ import annotations

from clustersim.faults import nearest_name
from clustersim.readers.step_rows import StepRow
from clustersim.study.profile import Profile
from clustersim.study.steps.refusal import RefusedError

__all__ = ["dtype_of"]

_WORDS: tuple[tuple[str, str], ...] = (
    ("nvfp4", "nvfp4"),
    ("fp8-cs", "fp8_current"),
    ("mxfp8", "mxfp8"),
    ("fp8_mx", "mxfp8"),
    ("fp8-mx", "mxfp8"),
    ("float8 rowwise", "fp8_rowwise"),
    ("float8", "fp8_current"),
    ("current scaling", "fp8_current"),
    ("delayed scaling", "fp8"),
    ("blockwise", "fp8_blockwise"),
    ("amp_fp8", "fp8"),
    ("fp8 hybrid", "fp8"),
    ("fp8", ""),
    ("bf16-true", "bf16_pure"),
    ("bf16 true", "bf16_pure"),
    ("pure bf16", "bf16_pure"),
    ("bf16 pure", "bf16_pure"),
    ("full bf16", "bf16_pure"),
    ("bf16/fp16", "bf16"),
    ("bf16", "bf16"),
    ("bfloat16", "bf16"),
    ("fp16", "fp16"),
    ("float16", "fp16"),
    ("half", "fp16"),
    ("tf32", "tf32"),
    ("fp32", "fp32"),
    ("float32", "fp32"),
)
"""Words of a precision -> recipe, the first that fits: the narrowest first, since other parts of such a step are in 16
bits and sources name both ("BF16/FP8"); a bare ``fp8``, empty here, is the profile's."""


def dtype_of(row: StepRow, profile: Profile) -> tuple[str, list[str]]:
    """The recipe and what is assumed with it.

    Raises
    ------
    RefusedError
        when the words are not known
    """
    text = row.precision.lower()
    if not text:
        return "bf16", ["precision: bf16, none is published"]
    found = next((recipe for words, recipe in _WORDS if words in text), None)
    if found == "":
        return profile.fp8, [f"precision: {profile.fp8}; published as {row.precision!r}"]
    if found is not None:
        told = "not stated" in text or "default" in text or "rowwise" in text or "(" in text
        return found, [f"precision: {found}; published as {row.precision!r}"] if told else []
    near = nearest_name(text, [words for words, _ in _WORDS])
    raise RefusedError("precision", f"precision {row.precision!r}" + (f"; nearest: {near}" if near else ""))
