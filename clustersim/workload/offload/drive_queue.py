"""How states pass between the host and drives."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DriveQueue"]


@dataclass(frozen=True, kw_only=True)
class DriveQueue:
    """The traffic with drives.

    Parameters
    ----------
    buffers : int
        subgroups that are on their way from or to one kind of drive, or wait for it, at a time
    read_ahead : bool
        reads run ahead of the updates as far as there are buffers; else each follows the update before it
    write_behind : bool
        updates go on while their states are written; else each waits for the write before it
    lock : bool
        one rank of a node reads, and one writes, a drive or file system at a time
    """

    buffers: int = 2
    read_ahead: bool = True
    write_behind: bool = True
    lock: bool = False
