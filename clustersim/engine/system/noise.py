"""Random factors on what ranks compute, keyed by (seed, job, rank, step, op) and never by the order of drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.mix import mix

__all__ = ["Noise"]

_U64 = np.uint64


@dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """Log-normal factors of mean 1.

    Parameters
    ----------
    seed : int
    jitter : float
        standard deviation of the factor's natural logarithm
    """

    seed: int
    jitter: float

    def factors(self, job: int, rank: int, step: NDArray[np.int64], op: NDArray[np.int64]) -> NDArray[np.float64]:
        """Factor on each op of a rank.

        Parameters
        ----------
        job, rank : int
            the rank by its number in its job
        step, op : NDArray[int64], shape (n,)
            of each op: the optimizer step, and its number in this step

        Returns
        -------
        NDArray[float64], shape (n,)
            exp(σ·z - σ²/2), z standard normal (Box and Muller, 1958)
        """
        key = np.array([self.seed], dtype=_U64)
        for part in (job, rank):
            key = mix(key ^ mix(np.array([part], dtype=_U64) + _U64(1)))
        cell = mix(mix((step + 1).astype(_U64) ^ key) ^ mix((op + 1).astype(_U64)))
        u, v = ((mix(cell + _U64(salt)) >> _U64(11)).astype(np.float64) * 2.0**-53 for salt in (1, 2))
        z = np.sqrt(-2.0 * np.log(1.0 - u)) * np.cos(2.0 * np.pi * v)
        return np.asarray(np.exp(self.jitter * z - 0.5 * self.jitter**2))
