"""A 64-bit mixer, for hashes of multisets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["mix"]

_U64 = np.uint64


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014)."""
    x = x ^ (x >> _U64(30))
    x *= _U64(0xBF58476D1CE4E5B9)
    x ^= x >> _U64(27)
    x *= _U64(0x94D049BB133111EB)
    x ^= x >> _U64(31)
    return x
