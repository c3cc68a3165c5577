"""What a dense product takes: tiles dealt to SMs in waves, its main loop, its traffic, and a start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.checks import require_fractions, require_not_negative
from clustersim.units import Unit

__all__ = ["TILES", "GemmModel", "GemmTimes"]

TILES = ((256, 128), (128, 256), (128, 128), (256, 64), (64, 256), (128, 64), (64, 128), (64, 64))
"""Rows and columns of the result that one block of threads computes: those that cuBLAS and CUTLASS choose from for
matrix units, and for fp32 on vector units."""

SPLITS = (1, 2, 3, 4, 6, 8, 16)
"""Parts into which the sum over k is cut so that a small result fills the device (split-K)."""

_STEP = 32
"""Columns of the operands that one turn of the main loop takes."""

_LEAST = 2 * _STEP
"""Shortest main loop: of a shorter sum only the first turns are full, and the tile takes as long."""

_SUM_NBYTES = 8
"""Traffic of one partial sum of split-K: written and read in fp32."""

_ROWS, _COLUMNS, _PARTS = np.array([(*tile, parts) for tile in TILES for parts in SPLITS], dtype=np.float64).T
_INVERSE = 1 / _ROWS + 1 / _COLUMNS
_LARGEST = float(_INVERSE.min())


class GemmTimes(NamedTuple):
    """Parts of a product's time [s], of one product or of an array of them."""

    compute: NDArray[np.float64]
    memory: NDArray[np.float64]
    total: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class GemmModel:
    """Six numbers of a device and dtype.

    Parameters
    ----------
    peak : float
        fraction of the dense peak that the main loop of the largest tile reaches
    tile_half : float
        how much slower small tiles are: the main loop of a tile of r × c is slower by ``1 + tile_half · (1/r + 1/c)``
    tile_latency : float
        of a tile beside its main loop: first loads, epilogue [s]
    wave : float
        from 0, where a last wave of few tiles counts as the tiles that it has (persistent kernels, stream-K), to 1,
        where it counts as a full one
    memory_fraction : float
        of the memory bandwidth
    start_latency : float
        of a launch beside the device's own launch latency [s]

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    peak: float
    tile_half: float
    tile_latency: Annotated[float, Unit("s")]
    wave: float
    memory_fraction: float
    start_latency: Annotated[float, Unit("s")]

    def __post_init__(self) -> None:
        require_fractions(self, "peak", "memory_fraction")
        require_not_negative(self, "tile_half", "tile_latency", "wave", "start_latency")
        if self.wave > 1:
            raise ValueError(f"wave: {self.wave} must be a fraction in [0, 1]")

    def times(
        self,
        m: NDArray[np.float64],
        n: NDArray[np.float64],
        k: NDArray[np.float64],
        batch: NDArray[np.float64],
        nbytes: NDArray[np.float64],
        *,
        flop_per_s: float | NDArray[np.float64],
        num_sms: int,
        memory_bandwidth: float,
        element_load: float = 0.0,
        promotion: float = 0.0,
    ) -> GemmTimes:
        """Times of products, each with the tile and the split that is fastest for it.

        With a tile of r × c, s parts of the sum, N SMs, peak P and bandwidth W::

            tiles   = batch · s · ⌈m/r⌉ · ⌈n/c⌉
            waves   = wave · ⌈tiles/N⌉ + (1 - wave) · max(tiles/N, 1)
            loop    = 2·r·c·⌈k/s⌉ · N / (P · peak) · (1 + tile_half·(1/r + 1/c)) / (1 + tile_half·(1/256 + 1/128))
                      + (r + c)·⌈k/s⌉ · element_load + r·c·⌈k/s⌉ · promotion
            compute = waves · (loop + tile_latency)
            memory  = (nbytes + 8·s·batch·m·n where s > 1) / (W · memory_fraction)
            total   = start_latency + min over tiles and s of max(compute, memory)

        ⌈k/s⌉ is in whole turns of 32, at least 64. Every term rises with m, n, k and batch, and so does the least of
        them; padding and waves only add to the FLOP, so that no product beats the peak.

        Parameters
        ----------
        m, n, k, batch : NDArray[float64], shape (num_products,)
            ``batch`` products of (m × k)·(k × n) each; a grouped product is one whose groups are alike
        nbytes : NDArray[float64], shape (num_products,)
            operands read and results written [B]
        flop_per_s : float or NDArray[float64], shape (num_products,)
            dense peak [FLOP/s]
        num_sms : int
        memory_bandwidth : float
            [B/s]
        element_load : float
            what an SM takes to load an element of an operand where that is not hidden behind its matrix units; see
            :func:`clustersim.hardware.alignment.element_load` [s]
        promotion : float
            what it takes to promote an element of a tile, a column of the operands; see
            :func:`clustersim.hardware.promotion.promotion` [s]

        Returns
        -------
        GemmTimes
            shapes (num_products,); ``compute`` and ``memory`` of the choice, without the start

        References
        ----------
        NVIDIA, Matrix Multiplication Background User's Guide: tile and wave quantisation. Osama et al., Stream-K, PPoPP
        2023.
        """
        rows, columns, inner, many, traffic = (
            np.asarray(x, dtype=np.float64)[..., None] for x in (m, n, k, batch, nbytes)
        )
        tiles = many * _PARTS * np.ceil(rows / _ROWS) * np.ceil(columns / _COLUMNS)
        waves = self.wave * np.ceil(tiles / num_sms) + (1 - self.wave) * np.maximum(tiles / num_sms, 1)
        turns = np.maximum(np.ceil(inner / _PARTS / _STEP) * _STEP, _LEAST)
        slower = (1 + self.tile_half * _INVERSE) / (1 + self.tile_half * _LARGEST)
        loop = (2 * num_sms / (np.asarray(flop_per_s)[..., None] * self.peak)) * (_ROWS * _COLUMNS * slower) * turns
        loop = loop + (element_load * (_ROWS + _COLUMNS) + promotion * (_ROWS * _COLUMNS)) * turns
        compute = waves * (loop + self.tile_latency)
        sums = np.where(_PARTS > 1, _SUM_NBYTES * _PARTS, 0.0) * (many * rows * columns)
        memory = (traffic + sums) / (memory_bandwidth * self.memory_fraction)
        longer = np.maximum(compute, memory)
        best = longer.argmin(axis=-1)[..., None]
        chosen = (np.take_along_axis(part, best, axis=-1)[..., 0] for part in (compute, memory, longer))
        of_compute, of_memory, of_both = chosen
        return GemmTimes(of_compute, of_memory, self.start_latency + of_both)
