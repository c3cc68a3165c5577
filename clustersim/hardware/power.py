"""What a power limit does to the clock of a device that multiplies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from clustersim.hardware.checks import require_positive
from clustersim.units import Unit

__all__ = ["Power"]

_LEAST = 32
"""Lowest clock that is looked for, in parts of :data:`_STEPS`."""

_STEPS = 64
"""Clocks are whole parts of this many, so that kernels that do nearly the same run at one clock."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Power:
    """Power of a device at its full clock.

    Parameters
    ----------
    limit : float
        that the board keeps [W]
    idle : float
        of a device that waits, its clocks up [W]
    matrix : float
        that its matrix units would draw beside that, on random data, at their dense peak [W]
    memory : float
        that its memory draws beside that at its peak bandwidth [W]
    products : Mapping[str, float]
        dtype -> what dense products of it draw in place of ``matrix``, where that was measured for itself: fused
        attention draws less, as the numbers that it multiplies lie between 0 and 1 [W]
    attention : Mapping[str, float]
        form of fused attention -> what it draws in place of ``matrix``, where that was measured for itself: its softmax
        is work for vector units, and kernels of an older generation feed the matrix units through registers [W]

    Raises
    ------
    ValueError
        when one is not positive, or the limit is not above what it draws idle

    Notes
    -----
    What a transistor's switch costs grows with the square of the voltage, and the voltage with the clock. At a part f
    of the full clock work W of the matrix units, in seconds at their peak, costs ``matrix · W · f²`` [J], and what
    they do takes 1/f as long. Memory keeps its own clock.
    """

    limit: Annotated[float, Unit("W")]
    idle: Annotated[float, Unit("W")]
    matrix: Annotated[float, Unit("W")]
    memory: Annotated[float, Unit("W")]
    products: Mapping[str, Annotated[float, Unit("W")]] = field(default_factory=dict)
    attention: Mapping[str, Annotated[float, Unit("W")]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_positive(self, "limit", "idle", "matrix", "memory")
        if self.idle >= self.limit:
            raise ValueError(f"idle: {self.idle} must be below the limit, {self.limit}")
        for name, draws in (("products", self.products), ("attention", self.attention)):
            for key, watts in draws.items():
                if not watts > 0:
                    raise ValueError(f"{name}.{key}: {watts} must be positive")

    def matrix_j(self, kind: str, dtype: str, seconds: float, form: str = "") -> float:
        """What a kernel of ``kind`` costs on the matrix units at full clock [J].

        Parameters
        ----------
        kind : {"gemm", "attention", "memory"}
            the last has no work for them
        dtype : str
            of its operands
        seconds : float
            its FLOP over the dense peak [s]
        form : str
            of attention: which kernel
        """
        if kind == "memory":
            return 0.0
        own = self.products.get(dtype) if kind == "gemm" else self.attention.get(form)
        return seconds * (self.matrix if own is None else own)

    def clock(self, *, matrix_j: float, memory_s: float, scaled_s: float, fixed_s: float) -> float:
        """The largest part of the full clock at which kernels stay within the limit.

        Parameters
        ----------
        matrix_j : float
            of its matrix units at full clock, see :meth:`matrix_j` [J]
        memory_s : float
            bytes over the peak bandwidth [s]
        scaled_s, fixed_s : float
            its time at full clock: of what goes with the clock, and of the rest [s]

        Returns
        -------
        float
            1, or a multiple of 1/64 from 1/2 on; 1/2 too where even that is above the limit
        """
        for step in range(_STEPS, _LEAST, -1):
            clock = step / _STEPS
            joules = matrix_j * clock**2 + self.memory * memory_s
            if joules <= (self.limit - self.idle) * (scaled_s / clock + fixed_s):
                return clock
        return _LEAST / _STEPS

    def clock_when(self, *, matrix_j: float, memory_s: float, seconds: float) -> float:
        """Part of the full clock at which work that took ``seconds`` [s] was within the limit, from 1/2 to 1.

        Parameters
        ----------
        matrix_j, memory_s : float
            the work, as in :meth:`clock` [J, s]
        seconds : float
            measured [s]
        """
        if not matrix_j:
            return 1.0
        joules = (self.limit - self.idle) * seconds - self.memory * memory_s
        return math.sqrt(min(1.0, max(0.25, joules / matrix_j)))
