"""Who converts between formats when gradients leave and weights come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Cast", "Casts"]

Cast = Literal["gpu", "cpu", "late", "update"]


@dataclass(frozen=True, kw_only=True)
class Casts:
    """Who casts, and with how many threads.

    Parameters
    ----------
    cast : {"gpu", "cpu", "late", "update"}
        who turns gradients into fp32 and new weights into 16 bits: the GPU, so that 4 bytes a parameter cross the
        link; the CPU in passes of its own, of gradients when they come or, ``late``, right before their update; or its
        update in passing
    cast_weights : {"gpu", "cpu", "update"}, optional
        the same of new weights alone; None: as ``cast``
    cast_threads : int, optional
        of the CPU's casts; None: the rank's share of the cores, which is even over the GPUs of the socket, used or not
    """

    cast: Cast = "update"
    cast_weights: Cast | None = None
    cast_threads: int | None = None
