"""The core of an attention whose heads are not all alike: scores, softmax and context, and their gradients."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.hardware.kernel import Kernel
from clustersim.workload.activations import Kept
from clustersim.workload.layers.kernels import gemm, memory_pass
from clustersim.workload.shard import Shard

__all__ = ["Attend"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Attend:
    """Queries of a micro-batch that meet keys of another length or width than values.

    Parameters
    ----------
    shard : Shard
        whose tokens ask
    kv_heads : int
        key and value heads on this rank
    key_dim, value_dim : int
        columns of a query and of a key head; of a value head
    keys : int
        tokens of a sequence that are asked
    pairs2 : int
        twice the pairs of tokens that the masks let through, over all sequences
    """

    shard: Shard
    kv_heads: int
    key_dim: int
    value_dim: int
    keys: int
    pairs2: int

    @property
    def output_features(self) -> int:
        """Columns of the output."""
        return self.shard.heads * self.value_dim

    @property
    def queries_nbytes(self) -> int:
        """Queries [B]."""
        return self.shard.width * self.shard.tokens * self.shard.heads * self.key_dim

    @property
    def keys_nbytes(self) -> int:
        """Keys and values [B]."""
        tokens = self.shard.micro_batch * self.keys
        return self.shard.width * tokens * self.kv_heads * (self.key_dim + self.value_dim)

    @property
    def scores_nbytes(self) -> int:
        """Matrices of scores that are written [B]: none in a fused kernel."""
        return self.shard.width * self._scores if self.shard.attention == "unfused" else 0

    def forward(self) -> tuple[Kernel, ...]:
        """Two products, 2·(d_k + d_v) FLOP a pair and head; unfused over every pair, with a pass between them.

        The fused kernel reads queries, keys and values, writes the output and 4 bytes a row and head.
        """
        shard = self.shard
        if shard.attention == "flash":
            return (self._fused(self.key_dim + self.value_dim, times=1),)
        passes = 2 * shard.width + shard.dropout * (2 * shard.width + 1)
        return (
            self._product(self.keys, self.key_dim),
            memory_pass(passes * self._scores, dtype=shard.recipe.activations),
            self._product(self.value_dim, self.keys),
        )

    def backward(self) -> tuple[Kernel, ...]:
        """Four products, and in the fused kernel the scores again: 2·(3·d_k + 2·d_v) FLOP a pair and head.

        It reads queries, keys, values, the output, its gradient and the row statistics, and writes three gradients.

        References
        ----------
        Dao, FlashAttention-2, 2023, section 3.2.
        """
        shard = self.shard
        if shard.attention == "flash":
            return (self._fused(3 * self.key_dim + 2 * self.value_dim, times=2),)
        passes = 3 * shard.width + shard.dropout * (2 * shard.width + 1)
        return (
            self._product(self.keys, self.value_dim),
            self._product(self.value_dim, self.keys),
            memory_pass(passes * self._scores, dtype=shard.recipe.activations),
            self._product(self.key_dim, self.keys),
            self._product(self.key_dim, self.keys),
        )

    def kept(self, block: str) -> tuple[Kept, ...]:
        """What the core adds to queries, keys and values, and its output, which the last matrix reads."""
        shard, scores = self.shard, self.scores_nbytes
        output = shard.tokens * self.output_features
        if shard.attention == "flash":
            inside: tuple[Kept, ...] = (Kept("log-sum-exp", block, 4 * shard.tokens * shard.heads, part="core"),)
            if shard.recipe.quantisation or shard.context.keeps_twice:
                inside += (Kept("attention output of the kernel", block, shard.width * output),)
        else:
            inside = (
                Kept("probabilities", block, scores, part="core"),
                Kept("probabilities after dropout", block, scores * shard.dropout, part="core"),
                Kept("probability mask", block, self._scores * shard.dropout, part="core"),
            )
        mask = shard.rows * shard.model.hidden * shard.dropout
        return (
            *inside,
            Kept("attention output", block, shard.recipe.activation_operand.nbytes(output)),
            Kept("attention mask of dropout", block, mask),
        )

    def mask_backward(self) -> tuple[Kernel, ...]:
        """The output's gradient through the mask of dropout, over the tokens that this rank holds."""
        shard = self.shard
        nbytes = (2 * shard.width + 1) * shard.rows * shard.model.hidden
        return (memory_pass(nbytes, dtype=shard.recipe.activations),) if shard.dropout else ()

    @property
    def _scores(self) -> int:
        return self.shard.micro_batch * self.shard.heads * self.shard.seq_len * self.keys

    def _product(self, columns: int, inner: int) -> Kernel:
        batch = self.shard.micro_batch * self.shard.heads
        return gemm(self.shard.seq_len, columns, inner, batch=batch, dtype=self.shard.recipe.products)

    def _fused(self, features: int, *, times: int) -> Kernel:
        shard = self.shard
        output = shard.width * shard.tokens * self.output_features
        return Kernel(
            kind="attention",
            dtype=shard.recipe.products,
            flops=shard.heads * self.pairs2 * features,
            nbytes=times * (self.queries_nbytes + self.keys_nbytes + output) + 4 * shard.tokens * shard.heads,
            m=shard.seq_len,
            n=self.keys,
            k=self.key_dim,
            batch=shard.micro_batch * shard.heads,
        )
