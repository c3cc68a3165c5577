"""Which units compute a product of 16-bit operands that do not stand at multiples of 16 bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from clustersim.hardware.kernel import Kernel

__all__ = ["UnalignedUnits", "on_units"]

UnalignedUnits = Literal["matrix", "vector"]

_SIXTEEN_BIT = ("fp16", "bf16")


def on_units(kernel: Kernel, units: UnalignedUnits) -> Kernel:
    """A product on the units that the library takes for it.

    ``matrix``: matrix units, which are fed element by element (:mod:`clustersim.hardware.alignment`). ``vector``: the
    vector units, in fp32, as cuBLAS took them before CUDA 11.7; bytes stay those of 16-bit operands.

    Notes
    -----
    On an A100, 384 products of 1024 x 140 x 1024 take 9.2 ms in bf16 with CUDA 11.6 and 1.32 ms with CUDA 11.7 (PyTorch
    issue 83272). Vector units, whose peak is 19.5 TFLOP/s in fp32, take 10.6 ms for it by this device's numbers for
    fp32. In fp16 CUDA 11.6 took 2.1 ms. That releases before it took the vector units for fp16 too is assumed: with
    CUDA 11.5 a step of BLOOM's with heads of 225 or of 108 is longer by what that makes of its products.
    """
    if units == "matrix" or kernel.aligned or kernel.dtype not in _SIXTEEN_BIT:
        return kernel
    return replace(kernel, dtype="fp32")
