"""A table of measured kernels that stands before another cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Cost, CostModel, Kernel, Provenance
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.units import Unit

__all__ = ["KernelTable", "TimedKernel"]

_REPEAT = 0.02
"""How far a run's kernel may be from its measurement, as a standard deviation of the logarithm of time. Assumed: two
runs of one kernel differ by some hundredths."""

_BETWEEN = 0.5
"""Of the spread of the model beside the table, what is left between two measurements that correct it. Assumed."""

_ALONG = 1e-6
"""How far, of its length, a shape may lie beside the line between two measurements and still be on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimedKernel:
    """A measurement: one launch of a kernel on a device, and how long it took.

    Parameters
    ----------
    device : str
        name of the GPU's card
    kernel : Kernel
        with ``count`` 1
    seconds : float
        from its launch to that of the next [s]
    """

    device: str
    kernel: Kernel
    seconds: Annotated[float, Unit("s")]

    def __post_init__(self) -> None:
        if not 0 < self.seconds < float("inf"):
            raise ValueError(f"seconds: {self.seconds} must be positive and finite")
        if self.kernel.count != 1:
            raise ValueError(f"kernel.count: {self.kernel.count} must be 1")


@dataclass(frozen=True, slots=True)
class _Sweep:
    """Measurements that differ in shape only."""

    shapes: NDArray[np.float64]
    seconds: NDArray[np.float64]
    kernels: tuple[Kernel, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelTable:
    """A cost model that takes a kernel's time from measurements where it has them.

    A kernel with the shape of a measurement takes its time. One between two measurements, on the straight line between
    their shapes in logarithms, takes what ``beside`` says times the measured over the modelled time, interpolated along
    the line: m between m₁ and m₂ with the same n and k, or both sides of a square growing. Of several such pairs the
    nearest counts. Any other kernel, all beyond the measured ones among them, is for ``beside``.

    No kernel beats the device's dense peak or its memory's bandwidth: what measurements in a warm cache, or the line
    between two, would put above takes what the peak allows.

    Parameters
    ----------
    rows : Sequence[TimedKernel]
    beside : CostModel
        of what the table does not hold
    """

    rows: Sequence[TimedKernel]
    beside: CostModel = kernel_cost
    _sweeps: dict[tuple[object, ...], _Sweep] = field(init=False, repr=False, compare=False)
    _known: dict[tuple[Kernel, str], Cost | None] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        groups: dict[tuple[object, ...], list[TimedKernel]] = {}
        for row in self.rows:
            groups.setdefault(_alike(row.kernel, row.device), []).append(row)
        sweeps = {
            key: _Sweep(
                np.array([_shape(row.kernel) for row in rows]),
                np.array([row.seconds for row in rows]),
                tuple(row.kernel for row in rows),
            )
            for key, rows in groups.items()
        }
        object.__setattr__(self, "_sweeps", sweeps)

    def __call__(self, kernel: Kernel, gpu: GPU) -> Cost:
        """Seconds of a kernel that has the GPU to itself: ``measured``, ``interpolated``, or what ``beside`` says."""
        one = replace(kernel, count=1)
        if (one, gpu.name) not in self._known:
            self._known[one, gpu.name] = self._look_up(one, gpu)
        found = self._known[one, gpu.name]
        return self.beside(kernel, gpu) if found is None else replace(found, seconds=kernel.count * found.seconds)

    def beating_peak(self, gpu: GPU) -> dict[int, float]:
        """Rows of this device that no kernel can reach: their number in ``rows`` -> the least time [s].

        Such a row has a wrong unit, or counts a sparse product, or is of another device. A row of a dtype that the
        device has no units for can be reached at no time.
        """
        found = {}
        for number, row in enumerate(self.rows):
            if row.device == gpu.name:
                least = _seconds_at_peak(row.kernel, gpu)
                if row.seconds < least:
                    found[number] = least
        return found

    def _look_up(self, kernel: Kernel, gpu: GPU) -> Cost | None:
        sweep = self._sweeps.get(_alike(kernel, gpu.name))
        if sweep is None:
            return None
        away = sweep.shapes - np.array(_shape(kernel))
        far = np.sqrt((away**2).sum(axis=1))
        modelled = self.beside(kernel, gpu)
        if not far.min():
            return _at_most_peak(float(np.median(sweep.seconds[far == 0])), "measured", kernel, gpu, modelled)
        pair = _around(away, far)
        if pair is None:
            return None
        weight = far[pair[1]] / (far[pair[0]] + far[pair[1]])
        ratios = [sweep.seconds[i] / self.beside(sweep.kernels[i], gpu).seconds for i in pair]
        ratio = float(np.exp(weight * np.log(ratios[0]) + (1 - weight) * np.log(ratios[1])))
        return _at_most_peak(ratio * modelled.seconds, "interpolated", kernel, gpu, modelled)


def _at_most_peak(seconds: float, provenance: Provenance, kernel: Kernel, gpu: GPU, modelled: Cost) -> Cost:
    """``seconds``, or what the peaks allow where that is longer; ``modelled`` says what sets the time."""
    least = max(_seconds_at_peak(kernel, gpu), kernel.nbytes / gpu.memory_bandwidth)
    spread = _REPEAT if provenance == "measured" else max(_REPEAT, _BETWEEN * modelled.spread)
    return Cost(seconds=max(seconds, least), bound=modelled.bound, provenance=provenance, spread=spread)


def _seconds_at_peak(kernel: Kernel, gpu: GPU) -> float:
    """Time of a kernel's FLOP at the dense peak of the units that do them [s]."""
    if kernel.kind == "memory":
        return kernel.flops / gpu.vector_flop_per_s
    try:
        return kernel.flops / gpu.flop_per_s(kernel.dtype)
    except KeyError:
        return float("inf")


def _around(away: NDArray[np.float64], far: NDArray[np.float64]) -> tuple[int, int] | None:
    """The two nearest measurements with the origin on the line between them; None when there are none."""
    ways = away / far[:, None]
    opposite = ways @ ways.T < _ALONG**2 / 2 - 1
    if not opposite.any():
        return None
    lengths = np.where(opposite, far[:, None] + far[None, :], np.inf)
    first, second = np.unravel_index(int(lengths.argmin()), lengths.shape)
    return int(first), int(second)


def _alike(kernel: Kernel, device: str) -> tuple[object, ...]:
    """What two kernels must share for one to tell of the other: masks count by the share of pairs they leave."""
    pairs = kernel.m * kernel.n * kernel.batch * kernel.k
    share = round(kernel.flops / pairs, 2) if kernel.kind == "attention" and pairs else 0.0
    shaped = bool(kernel.m and kernel.n and kernel.k)
    return (device, kernel.kind, kernel.dtype, kernel.form, kernel.backward, kernel.dropout, shaped, share)


def _shape(kernel: Kernel) -> tuple[float, ...]:
    """Logarithms of the sizes that a kernel's time depends on."""
    if kernel.kind == "memory" or not (kernel.m and kernel.n and kernel.k):
        return tuple(np.log([max(kernel.nbytes, 1), max(kernel.flops, 1)]).tolist())
    return tuple(np.log([kernel.m, kernel.n, kernel.k, kernel.batch]).tolist())
