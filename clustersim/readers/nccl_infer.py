"""Which collective a table of nccl-tests is of, and how many ranks ran it: told by the log, or by its own numbers.

The bus bandwidth is the algorithm bandwidth times a factor of the collective and the number of ranks alone
(:func:`clustersim.collective.bound.bus_factor`), so a table carries both even where every line above it is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from clustersim.collective.bound import bus_factor
from clustersim.readers.nccl_run import NcclCell, NcclLine, NcclRun

__all__ = ["MOST_RANKS", "candidates", "factor_range", "ranks_of"]

MOST_RANKS = 1 << 20
"""Numbers of ranks beyond it are not looked for."""

_REDUCED = ("all_reduce", "reduce_scatter", "reduce")
_MOVED = ("all_gather", "all_to_all", "broadcast", "gather", "scatter", "send_recv")
_ROOTED = ("broadcast", "reduce", "gather", "scatter")


def factor_range(lines: Sequence[NcclLine]) -> tuple[float, float]:
    """Least and largest factor that all rows allow, given how many digits were printed.

    A row with algbw a ± da and busbw b ± db allows (b - db)/(a + da) to (b + db)/(a - da); the range is what all rows
    share, widened by 1e-9 for the rounding of the division. Without a row that says anything it is 0 to infinity;
    where rows contradict each other the first number is the larger.
    """
    low, high = 0.0, math.inf
    for cell in _cells(lines):
        a, da, b, db = cell.algbw, cell.algbw_half_unit, cell.busbw, cell.busbw_half_unit
        if a <= da:
            continue
        low = max(low, (b - db) / (a + da) * (1 - 1e-9))
        high = min(high, (b + db) / (a - da) * (1 + 1e-9))
    return low, high


def ranks_of(collective: str, low: float, high: float) -> tuple[int, int] | None:
    """Fewest and most ranks whose factor lies in a range; None where no number of ranks from 1 has such a factor.

    Factors grow with the number of ranks, or do not change.
    """
    fewest = _first(lambda n: bus_factor(collective, n) >= low)
    most = _first(lambda n: bus_factor(collective, n) > high) - 1
    return (fewest, min(most, MOST_RANKS)) if fewest <= min(most, MOST_RANKS) else None


def candidates(run: NcclRun, lines: Sequence[NcclLine], num_ranks: int | None) -> list[str]:
    """Collectives that a table can be of: by operation and root, by its factor, and by which halves were checked.

    Parameters
    ----------
    run : NcclRun
    lines : Sequence[NcclLine]
        of one type, operation and root; at least one
    num_ranks : int, optional
        where it is known
    """
    redop, root = lines[0].redop, lines[0].root
    if not redop:
        kinds = [*_REDUCED, *_MOVED]
    elif redop == "none":
        kinds = [*_MOVED]
    else:
        kinds = [*_REDUCED, "send_recv"]  # several versions print "sum" for sends too
    if root is not None:
        kinds = [kind for kind in kinds if (kind in _ROOTED) == (root >= 0)]
    # In place, alltoall and sendrecv are timed but never checked; all others are checked in both halves or in none.
    in_place = [line.in_place for line in lines if line.in_place is not None]
    checked = any(line.out_of_place is not None and line.out_of_place.wrong is not None for line in lines)
    if run.counts_wrong and in_place and checked:
        unchecked = all(cell.wrong is None for cell in in_place)
        kinds = [kind for kind in kinds if (kind in ("all_to_all", "send_recv")) == unchecked]
    low, high = factor_range(lines)
    fits = {kind: ranks_of(kind, low, high) for kind in kinds}
    return [k for k, span in fits.items() if span and (num_ranks is None or span[0] <= num_ranks <= span[1])]


def _cells(lines: Sequence[NcclLine]) -> Iterator[NcclCell]:
    for line in lines:
        yield from (cell for cell in (line.out_of_place, line.in_place) if cell is not None)


def _first(holds: Callable[[int], bool]) -> int:
    """Least number of ranks for which ``holds``, that stays true once it is; one beyond the most where it never is."""
    low, high = 1, MOST_RANKS + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
