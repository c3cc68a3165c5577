"""One run of nccl-tests or rccl-tests, as it was printed."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

__all__ = ["NcclLog", "NcclRow"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NcclRow:
    """One message size, in place or out of place.

    Parameters
    ----------
    nbytes : int
        the size column: the largest buffer of one rank [B]
    time_us : float
        mean over iterations [us]
    algbw, busbw : float
        algorithm and bus bandwidth [GB/s]
    wrong : int, optional
        elements that came out wrong; None where the run did not check
    line : int
        where it stands in the file; for JSON its position in ``results``, from 1
    """

    nbytes: int
    time_us: float
    algbw: float
    busbw: float
    wrong: int | None
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NcclLog:
    """One table: one collective, one type, one operation, over a range of sizes.

    Parameters
    ----------
    collective : str
        kind, as in :data:`clustersim.collective.bound.KINDS`
    num_ranks : int
    hosts : tuple[str, ...]
        in order of their first rank; empty where the log does not name them
    device : str
        name of the GPUs; empty where the log does not name them
    dtype : str
        as printed: ``float``, ``half``, ``bfloat16`` …
    redop : str
        as printed: ``sum``, ``none`` …; empty where there is no such column
    out_of_place, in_place : tuple[NcclRow, ...]
        by size; either may be empty
    version : str
        of the library, as ``NCCL 2.20.5``; empty where the log does not tell
    warmup, iters : int, optional
        iterations before and in the measurement
    line : int
        of the table's header in the file
    """

    collective: str
    num_ranks: int
    hosts: tuple[str, ...]
    device: str
    dtype: str
    redop: str
    out_of_place: tuple[NcclRow, ...]
    in_place: tuple[NcclRow, ...]
    version: str
    warmup: int | None
    iters: int | None
    line: int

    @property
    def num_nodes(self) -> int | None:
        """Number of hosts; None where the log does not name them."""
        return len(self.hosts) or None

    @property
    def rows(self) -> tuple[NcclRow, ...]:
        """The rows that stand for the run: those out of place, or the others where there are none."""
        return self.out_of_place or self.in_place

    @property
    def plateau(self) -> float:
        """Highest bus bandwidth of :attr:`rows` [GB/s]."""
        return max(row.busbw for row in self.rows)

    @property
    def growth(self) -> float | None:
        """What one more doubling of the size added to the bus bandwidth at the largest sizes, as a fraction of it.

        None where there is one size only. Near zero where the plateau was reached.
        """
        last = max(self.rows, key=lambda row: row.nbytes)
        before = [row for row in self.rows if 2 * row.nbytes <= last.nbytes]
        if not before or not last.busbw:
            return None
        row = max(before, key=lambda row: row.nbytes)
        return 1 - float((row.busbw / last.busbw) ** (1 / log2(last.nbytes / row.nbytes)))
