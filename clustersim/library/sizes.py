"""Message sizes as nccl-tests takes them: ``8G`` is 8 · 2^30 bytes; ranges and lists of them."""

from __future__ import annotations

import re
from decimal import Decimal

from clustersim.library.values import Refused

__all__ = ["read_size", "read_sizes"]

_SUFFIXES = "KMGTPE"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTPE]?)(?:iB|B)?", re.IGNORECASE)
_DECIMAL = re.compile(r"\d+(?:\.\d+)?\s*[KMGTPE]B", re.IGNORECASE)
_MOST_DIGITS = 30


def read_size(text: str) -> int:
    """One size.

    Parameters
    ----------
    text : str
        ``64``, ``1M``, ``1.5G``, ``8GiB``

    Returns
    -------
    int
        [B]

    Raises
    ------
    Refused
        when it is no whole number of bytes; ``1MB`` too, since nccl-tests has no powers of ten

    Examples
    --------
    >>> read_size("8G") == 8 * 2**30
    True
    """
    given = text.strip()
    match = _SIZE.fullmatch(given)
    if match is None or len(given) > _MOST_DIGITS:
        raise Refused("must be a size as 64, 1M, 8G or 8GiB; 1G is 2^30 bytes", "1M")
    if _DECIMAL.fullmatch(given):
        raise Refused("may mean powers of ten or of two; 1M is 2^20 bytes", given[:-1])
    factor = 1024 ** (_SUFFIXES.index(match[2].upper()) + 1) if match[2] else 1
    nbytes = Decimal(match[1]) * factor
    if nbytes != int(nbytes):
        raise Refused("must be a whole number of bytes", int(nbytes))
    return int(nbytes)


def read_sizes(text: str, factor: int = 2) -> list[int]:
    """Sizes in one text.

    Parameters
    ----------
    text : str
        ``8..8G``: from the first, each ``factor`` times the last, up to the second; ``1M,4M``; or one size
    factor : int
        at least 2

    Returns
    -------
    list[int]
        [B]

    Raises
    ------
    Refused
        when a part is no size, a range is empty or begins at 0, or ``factor`` is less than 2

    Examples
    --------
    >>> read_sizes("1K..8K"), read_sizes("8..100", factor=3), read_sizes("1K,3K")
    ([1024, 2048, 4096, 8192], [8, 24, 72], [1024, 3072])
    """
    if factor < 2:
        raise Refused("must be stepped by a factor of at least 2", 2)
    sizes: list[int] = []
    for part in text.split(","):
        low, dots, high = part.partition("..")
        first = read_size(low)
        if not dots:
            sizes.append(first)
            continue
        last = read_size(high)
        if not 1 <= first <= last:
            raise Refused("must be a range from at least 1 byte up", f"{max(1, first)}..{max(1, first, last)}")
        while first <= last:
            sizes.append(first)
            first *= factor
    return sizes
