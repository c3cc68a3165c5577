"""A number as a product of a few: the sides of a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

__all__ = ["factorizations", "nearest_dims"]


def factorizations(number: int, num_factors: int) -> Iterator[tuple[int, ...]]:
    """Every way to write ``number`` as an ordered product of ``num_factors`` positive whole numbers."""
    if num_factors == 1:
        yield (number,)
        return
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    for factor in sorted({*small, *(number // d for d in small)}):
        for rest in factorizations(number // factor, num_factors - 1):
            yield (factor, *rest)


def nearest_dims(number: int, dims: Sequence[float]) -> tuple[int, ...]:
    """The factorisation of ``number`` whose sides differ least from ``dims``, in ratio; the widest first of several."""

    def distance(found: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        ratio = sum(abs(math.log(side / max(1, wanted))) for side, wanted in zip(found, dims, strict=True))
        return round(ratio, 9), tuple(-side for side in found)

    return min(factorizations(number, len(dims)), key=distance)
