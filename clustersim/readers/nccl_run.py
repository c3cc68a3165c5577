"""What was read of one run of nccl-tests, before anything is concluded from it; the text and the JSON form fill it."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["NcclCell", "NcclLine", "NcclRun"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NcclCell:
    """One half of a line: out of place or in place.

    Parameters
    ----------
    time_us, algbw, busbw : float
        [us], [GB/s], [GB/s]
    algbw_half_unit, busbw_half_unit : float
        half of the last digit that was printed: how far the number may be from what was measured [GB/s]
    wrong : int, optional
    """

    time_us: float
    algbw: float
    busbw: float
    algbw_half_unit: float
    busbw_half_unit: float
    wrong: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NcclLine:
    """One line of the table."""

    number: int
    nbytes: int
    dtype: str
    redop: str
    root: int | None
    out_of_place: NcclCell | None
    in_place: NcclCell | None


@dataclass(kw_only=True, slots=True)
class NcclRun:
    """One run as far as it was printed.

    Attributes
    ----------
    program : str
        ``all_reduce_perf``; empty where nothing names it
    start, header : int, optional
        line of the arguments and of the table's header
    hosts : list[str]
        of each rank listed
    groups : set[str]
        communicators among which the ranks were split
    ranks : set[int]
        numbers of the ranks listed
    num_listed : int, optional
        ranks that the list stands for; None where it stands for those in it
    num_rows : int
        lines of the table, whole or not
    counts_wrong : bool
        whether the table counts wrong elements (``#wrong``), as recent versions do
    footer : bool
        whether the closing lines are there
    out_of_bounds : int, optional
        number of wrong values that they give
    """

    program: str = ""
    start: int | None = None
    header: int | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    step: int | None = None
    step_is_factor: bool = True
    warmup: int | None = None
    iters: int | None = None
    hosts: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    num_listed: int | None = None
    version: str = ""
    num_rows: int = 0
    lines: list[NcclLine] = field(default_factory=list)
    counts_wrong: bool = True
    footer: bool = False
    out_of_bounds: int | None = None

    @property
    def is_run(self) -> bool:
        """Whether there is more than a name or a version."""
        return self.start is not None or self.header is not None

    @property
    def place(self) -> int:
        """Line to name for the run as a whole."""
        return self.header or self.start or 1

    @property
    def cut_short(self) -> bool:
        """Whether sizes that were asked for are missing at the end."""
        if self.footer or not self.lines or self.max_bytes is None or not self.step:
            return False
        last = max(line.nbytes for line in self.lines)
        return (last * self.step if self.step_is_factor else last + self.step) <= self.max_bytes
