"""What a pass over memory takes: bytes at the bandwidth that its kind of kernel reaches, less what a cache holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.checks import require_fractions, require_not_negative
from clustersim.units import Unit

__all__ = ["FORMS", "MemoryModel"]

FORMS = ("elementwise", "norm", "softmax", "activation", "rope", "scan")
"""Kinds of passes that are told apart: :attr:`~clustersim.hardware.kernel.Kernel.form`, empty for the first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryModel:
    """A device's passes over memory.

    With B the bytes, W the memory bandwidth, f the fraction of the pass's form and C the cache::

        saved = cached · min(B, C²/B)
        time  = start_latency + max(B / W, (B - saved) / (W · f))

    What the kernel before has just written is still in the cache, all of it where it fits and ever less where it does
    not. No pass is faster than the bandwidth of the memory.

    Parameters
    ----------
    start_latency : float
        of a launch beside the device's own launch latency: the ramp of small passes [s]
    cache_nbytes : float
        last-level cache of the device [B]
    cached : float
        share of a small pass's time that the cache saves
    elementwise : float
        fraction of the memory bandwidth that additions, products and copies reach
    norm, softmax : float
        that passes with a sum over each row reach
    activation : float
        that activation functions reach, gated ones among them
    rope : float
        that rotary embedding reaches
    scan : float
        that the kernels of a recurrence over chunks of tokens reach, its small products among them

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    start_latency: Annotated[float, Unit("s")]
    cache_nbytes: Annotated[float, Unit("B")]
    cached: float
    elementwise: float
    norm: float
    softmax: float
    activation: float
    rope: float
    scan: float

    def __post_init__(self) -> None:
        require_not_negative(self, "start_latency", "cache_nbytes", "cached")
        if self.cached > 1:
            raise ValueError(f"cached: {self.cached} must be a fraction in [0, 1]")
        require_fractions(self, *FORMS)

    def fraction(self, form: str) -> float:
        """Fraction of the bandwidth that passes of ``form`` reach.

        Raises
        ------
        KeyError
            when there is no such form
        """
        if form and form not in FORMS:
            raise KeyError(f"there is no pass over memory of form {form}, only {', '.join(FORMS)}")
        return float(getattr(self, form or FORMS[0]))

    def seconds(
        self, nbytes: NDArray[np.float64], fraction: NDArray[np.float64], bandwidth: float
    ) -> NDArray[np.float64]:
        """Times of passes without their start [s], by bytes [B], fraction and memory bandwidth [B/s]."""
        cache = np.minimum(nbytes, self.cache_nbytes * (self.cache_nbytes / np.maximum(nbytes, 1)))
        return np.maximum(nbytes, (nbytes - self.cached * cache) / fraction) / bandwidth
