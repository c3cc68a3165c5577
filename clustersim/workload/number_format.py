"""Number formats, and how the operands of products are brought into them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from clustersim.units import Unit

__all__ = ["COLUMNS", "FORMATS", "TURNED", "WIDTH", "Dtype", "Format", "Quantisation"]

TURNED = 2.2 / 1.4
"""Time of a compiler's cast that also writes a tensor turned, over that of its other casts: 2.2 and 1.4 TB/s on H100
(PyTorch issue 133242). Other GPUs are taken to be alike."""

COLUMNS = 2.1 / 0.65
"""Time of a compiler's cast with a scale a column, over that of one with a scale a row: 2.0 to 2.2 and 0.6 to 0.7 TB/s
on H100, whose reads lie apart (PyTorch issue 149982, measured with columns of 32). Other GPUs are taken to be alike."""

Dtype = Literal["bf16", "fp16", "fp32"]

WIDTH: Mapping[str, int] = {"bf16": 2, "fp16": 2, "fp32": 4}
"""Bytes of an element of a tensor that is not quantised."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """How the elements of a matrix product's operand are stored.

    Parameters
    ----------
    dtype : str
        of the matrix units that multiply it, as a GPU's card names their peak
    bits : int
        of an element
    block : int
        elements that share a scale; 0: one scale a tensor, which is not counted
    scale_bytes : int
        of one scale [B]
    """

    dtype: str
    bits: int
    block: int = 0
    scale_bytes: Annotated[int, Unit("B")] = 0

    def nbytes(self, elements: int) -> int:
        """Bytes of a tensor with its scales [B]."""
        scales = -(-elements // self.block) * self.scale_bytes if self.block else 0
        return -(-elements * self.bits // 8) + scales


FORMATS: Mapping[str, Format] = {
    "fp32": Format(dtype="fp32", bits=32),
    "tf32": Format(dtype="tf32", bits=32),
    "bf16": Format(dtype="bf16", bits=16),
    "fp16": Format(dtype="fp16", bits=16),
    "fp8": Format(dtype="fp8", bits=8),
    "fp8 1x128": Format(dtype="fp8", bits=8, block=128, scale_bytes=4),
    "fp8 128x128": Format(dtype="fp8", bits=8, block=128 * 128, scale_bytes=4),
    "mxfp8": Format(dtype="mxfp8", bits=8, block=32, scale_bytes=1),
    "nvfp4": Format(dtype="nvfp4", bits=4, block=16, scale_bytes=1),
}
"""Formats of operands. tf32 is a way to multiply fp32 tensors; E4M3 and E5M2 are as wide and as fast as each other.

Sources: Open Compute Project, Microscaling Formats (MX) 1.0, 2023, table 1 (32 elements, one E8M0 scale); DeepSeek-V3,
2024, section 3.3.2 (tiles of 1 x 128, blocks of 128 x 128, fp32 scales); NVIDIA, Pretraining Large Language Models
with NVFP4, 2025, section 2 (16 elements, one E4M3 scale, and one fp32 scale a tensor). The 16 x 16 blocks in which that
recipe scales weights store their scale once a row, so weights take the same bytes as activations.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantisation:
    """How the operands of linear layers are made from 16-bit tensors, for forward and backward products alike.

    Parameters
    ----------
    activations : Format
        of a layer's input and of the gradient of its output
    weights : Format
    searches : int
        reads of a tensor that find its largest value before it can be cast
    copies : int
        times that a tensor is stored: by row for one product and by column for the other
    together : bool
        a kernel casts the tensors of all experts, not one of them
    apart : bool
        a tensor has a scale a row for one product and a scale a column for the other, each from the 16-bit tensor
    promoted : bool
        products of the backward pass keep their sums in fp32; those of the forward pass accumulate fast
    """

    activations: Format
    weights: Format
    searches: int = 0
    copies: int = 2
    together: bool = False
    apart: bool = False
    promoted: bool = False

    @property
    def one_scale(self) -> bool:
        """A tensor has one scale, so that its parts can be cast before ranks gather them."""
        return not self.apart and not self.activations.block

    def cast_nbytes(self, elements: int, *, width: int, compiled: bool = False) -> int:
        """Bytes that casting an activation of ``width`` bytes an element reads and writes [B].

        With scales of their own, rows are searched and cast in one pass, columns in two. What the casts of a compiler
        read and write out of order counts as often as it takes longer.
        """
        read, written = width * elements, self.activations.nbytes(elements)
        if self.apart:
            return 2 * read + written + round((read + written) * (COLUMNS if compiled else 1))
        turned = TURNED if compiled and self.copies > 1 else 1
        return self.searches * read + round((read + self.copies * written) * turned)

    def gathered_cast_nbytes(self, elements: int, *, width: int, ranks: int, compiled: bool = False) -> int:
        """The same where each of ``ranks`` casts its part and gathers the others', whose second copy it then makes."""
        part = replace(self, copies=1).cast_nbytes(elements // ranks, width=width, compiled=compiled)
        turned = 2 * (self.copies - 1) * self.activations.nbytes(elements)
        return part + round(turned * (TURNED if compiled else 1))

    def weight_cast_nbytes(self, elements: int, *, width: int) -> int:
        """The same of a weight; once a step, as the copies serve all its micro-batches."""
        return self._read(elements, width) + self.weight_copies_nbytes(elements)

    def weight_copies_nbytes(self, elements: int) -> int:
        """What is held of a weight beside its 16-bit tensor [B]."""
        return self.copies * self.weights.nbytes(elements)

    def _read(self, elements: int, width: int) -> int:
        return (1 + self.searches) * width * elements
