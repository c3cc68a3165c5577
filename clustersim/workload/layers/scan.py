"""The recurrence of a Mamba mixer as kernels: a scan over tokens, or products over chunks of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import gemm, memory_pass
from clustersim.workload.shape.mamba import Mamba
from clustersim.workload.shard import Shard

__all__ = ["Scan"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """The recurrence over a micro-batch for this rank's channels.

    Parameters
    ----------
    shard : Shard
    mamba : Mamba
        of the model
    """

    shard: Shard
    mamba: Mamba

    @property
    def inner(self) -> int:
        """Channels of this rank, e/t."""
        return self.mamba.inner // self.shard.tp

    @property
    def conv_channels(self) -> int:
        """Channels of this rank that the convolution runs over."""
        return self.mamba.conv_channels // self.shard.tp

    def forward(self) -> tuple[Kernel, ...]:
        """Version 1: 7·e·n FLOP a token on the vector units; version 2: products over chunks."""
        if self.mamba.version == 2:
            return (*self._inputs(), *self._outputs())
        elements = self.shard.width * self.shard.tokens * (4 * self.inner + 2 * self.mamba.state)
        return (self._elementwise(elements, times=1),)

    def backward(self) -> tuple[Kernel, ...]:
        """Two products for each one forward, and once more what the forward pass did not keep.

        Version 1 runs the scan again and then backwards for the state and for its inputs, 21·e·n FLOP a token. Version
        2 computes scores and states of the chunks again.

        References
        ----------
        ``state-spaces/mamba``: ``csrc/selective_scan``, and ``ops/triton/ssd_combined.py``, whose backward pass calls
        the forward kernels of scores and states.
        """
        if self.mamba.version == 2:
            once = self.forward()
            return (*self._inputs(), *once, *once)
        elements = self.shard.width * self.shard.tokens * (8 * self.inner + 4 * self.mamba.state)
        return (self._elementwise(elements, times=3),)

    def convolution(self, *, passes: int) -> Kernel:
        """The convolution over a few tokens: bound by memory."""
        nbytes = passes * self.shard.width * self.shard.tokens * self.conv_channels
        return memory_pass(nbytes, dtype=self.shard.recipe.activations)

    def _elementwise(self, nbytes: int, *, times: int) -> Kernel:
        """A kernel that keeps the state on chip; its exponentials are not counted."""
        flops = times * 7 * self.inner * self.mamba.state * self.shard.tokens
        return Kernel(kind="memory", dtype="fp32", flops=flops, nbytes=nbytes)

    def _inputs(self) -> tuple[Kernel, ...]:
        """Scores C·Bᵀ inside a chunk, a group; the state that a chunk adds, a head; states passed on in fp32.

        References
        ----------
        Dao and Gu, Transformers are SSMs, 2024, section 6 (arXiv 2405.21060).
        """
        q, n, p = self._chunk, self.mamba.state, self.mamba.head_dim
        heads = self._chunks * self.mamba.num_heads // self.shard.tp
        return (
            self._product(q, q, n, batch=self._chunks * self.mamba.groups // self.shard.tp),
            self._product(n, p, q, batch=heads),
            memory_pass(2 * 4 * heads * p * n, dtype="fp32", form="scan"),
        )

    def _outputs(self) -> tuple[Kernel, ...]:
        """What tokens take from those before them in the chunk, and from the state before it."""
        q, n, p = self._chunk, self.mamba.state, self.mamba.head_dim
        heads = self._chunks * self.mamba.num_heads // self.shard.tp
        return self._product(q, p, q, batch=heads), self._product(q, p, n, batch=heads)

    def _product(self, m: int, n: int, k: int, *, batch: int) -> Kernel:
        return replace(gemm(m, n, k, batch=batch, dtype=self.shard.recipe.products), form="scan")

    @property
    def _chunk(self) -> int:
        return min(self.mamba.chunk, self.shard.seq_len)

    @property
    def _chunks(self) -> int:
        """Of all sequences; the last of each may be cut short and costs as much."""
        return self.shard.micro_batch * -(-self.shard.seq_len // self._chunk)
