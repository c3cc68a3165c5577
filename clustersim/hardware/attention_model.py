"""What a fused attention kernel takes: blocks of queries dealt to SMs, each a loop over keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.checks import require_fractions, require_not_negative
from clustersim.units import Unit

__all__ = ["BLOCK", "AttentionModel", "AttentionTimes"]

BLOCK = 128
"""Queries of a block of threads, and keys of one turn of its loop (FlashAttention 2 and 3, cuDNN)."""


class AttentionTimes(NamedTuple):
    """Parts of an attention kernel's time [s], of one kernel or of an array of them."""

    compute: NDArray[np.float64]
    memory: NDArray[np.float64]
    total: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionModel:
    """Seven numbers of a device and one kernel on it, FlashAttention-2 say.

    Parameters
    ----------
    peak : float
        fraction of the dense peak that the forward loop of very wide heads reaches
    head_half : float
        columns of a head at which half of that is reached: exponentials and the rescaling of a pair of tokens take as
        long whatever the width
    block_latency : float
        of a block of queries beside its loop [s]
    wave : float
        share of a block that the device waits for at the end, when the last blocks run on few of its SMs
    backward : float
        how much of the forward loop's rate the gradients' loop reaches
    memory_fraction : float
        of the memory bandwidth
    start_latency : float
        of a launch beside the device's own launch latency; backward there are two launches [s]

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    peak: float
    head_half: float
    block_latency: Annotated[float, Unit("s")]
    wave: float
    backward: float
    memory_fraction: float
    start_latency: Annotated[float, Unit("s")]

    def __post_init__(self) -> None:
        require_fractions(self, "peak", "backward", "memory_fraction")
        require_not_negative(self, "head_half", "block_latency", "wave", "start_latency")

    def times(
        self,
        queries: NDArray[np.float64],
        keys: NDArray[np.float64],
        head_dim: NDArray[np.float64],
        heads: NDArray[np.float64],
        flops: NDArray[np.float64],
        nbytes: NDArray[np.float64],
        backward: NDArray[np.bool_],
        *,
        flop_per_s: float,
        num_sms: int,
        memory_bandwidth: float,
    ) -> AttentionTimes:
        """Times of kernels.

        With N SMs, peak P, bandwidth W, F the FLOP, d the head's columns, and 128 rows and keys a block::

            blocks   = heads · ⌈queries/128⌉
            filled   = heads · max(queries/128, 1)
            pair     = 4·d forward, 10·d backward
            padded   = heads · queries · ⌈keys/128⌉ · 128 · pair
            F_full   = padded, or under a mask min(padded, F + heads · queries · 64 · pair): half a block on its edge
            a loop   = F_full / filled / (P/N · peak · d/(d + head_half) · (backward if backward)) + block_latency
            longest  = the loop of a block that meets every key
            compute  = max(blocks · loop / N, longest) + wave · loop
            memory   = nbytes / (W · memory_fraction)
            total    = max(compute, memory) + start_latency · (2 if backward)

        A loop is that of a block whose queries are all there: one more token never makes it shorter.
        There is a mask where F is below 0.99 · heads · queries · keys · pair.

        Parameters
        ----------
        queries, keys, head_dim, heads : NDArray[float64], shape (num_kernels,)
            of a sequence, most keys of a query, columns of a key head, heads of all sequences
        flops, nbytes : NDArray[float64], shape (num_kernels,)
            what the mask lets through [FLOP]; queries, keys, values and what is written, once each [B]
        backward : NDArray[bool], shape (num_kernels,)
        flop_per_s : float
            dense peak [FLOP/s]
        num_sms : int
        memory_bandwidth : float
            [B/s]

        Returns
        -------
        AttentionTimes
            shapes (num_kernels,); ``compute`` and ``memory`` without the start

        References
        ----------
        Dao, FlashAttention-2, 2023 (arXiv 2307.08691), section 3. Shah et al., FlashAttention-3, 2024 (arXiv
        2407.08608), section 3.1: exponentials against products by the width of heads.
        """
        a_pair = np.where(backward, 10.0, 4.0) * head_dim
        padded = np.maximum(heads * queries * np.ceil(keys / BLOCK) * BLOCK * a_pair, flops)
        masked = flops < _FULL * heads * queries * keys * a_pair
        edge = flops + heads * queries * (BLOCK / 2) * a_pair
        full = np.where(masked, np.minimum(edge, padded), padded)
        blocks = heads * np.ceil(queries / BLOCK)
        filled = heads * np.maximum(queries / BLOCK, 1)
        rate = flop_per_s / num_sms * self.peak * head_dim / (head_dim + self.head_half)
        rate = rate * np.where(backward, self.backward, 1.0)
        loop = full / filled / rate + self.block_latency
        longest = padded / filled / rate + self.block_latency
        compute = np.maximum(blocks * loop / num_sms, longest) + self.wave * loop
        memory = nbytes / (memory_bandwidth * self.memory_fraction)
        start = self.start_latency * np.where(backward, 2.0, 1.0)
        return AttentionTimes(compute, memory, start + np.maximum(compute, memory))


_FULL = 0.99
"""Share of all pairs from which on no mask is assumed."""
