"""The attention core of one rank: the shapes of queries, keys and values, what it keeps, and its fused kernel."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from clustersim.hardware.kernel import Kernel
from clustersim.workload.kept import Kept
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.layers.piece import Piece
from clustersim.workload.mask import Mask
from clustersim.workload.op import Compute
from clustersim.workload.shard import FP8_KERNELS, Shard

__all__ = ["Core"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Core:
    """Heads of one rank over its tokens.

    Parameters
    ----------
    shard : Shard
        whose tokens they are
    heads, kv_heads : int
        query heads; key and value heads
    key_dim, value_dim : int
        columns of a query and of a key head; of a value head
    masks : tuple[Mask, ...]
        of each sequence of the micro-batch
    bias_nbytes : int
        added to the scores: read by every kernel, its gradient written backward [B]
    """

    shard: Shard
    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    masks: tuple[Mask, ...]
    bias_nbytes: int = 0

    @classmethod
    def of(cls, shard: Shard, masks: tuple[Mask, ...], *, bias_nbytes: int = 0) -> Core:
        """That of the model's own heads, whose values are as wide as its keys."""
        width = shard.model.head_dim
        return cls(
            shard=shard,
            heads=shard.heads,
            kv_heads=shard.read_heads,
            key_dim=width,
            value_dim=width,
            masks=masks,
            bias_nbytes=bias_nbytes,
        )

    @property
    def query_features(self) -> int:
        """Columns of the queries."""
        return self.heads * self.key_dim

    @property
    def kv_features(self) -> int:
        """Columns of keys and values."""
        return self.kv_heads * (self.key_dim + self.value_dim)

    @property
    def output_features(self) -> int:
        """Columns of the output."""
        return self.heads * self.value_dim

    @property
    def queries_nbytes(self) -> int:
        """Queries of the rank's tokens [B]."""
        return self.shard.width * self.shard.tokens * self.query_features

    @property
    def kv_nbytes(self) -> int:
        """Keys and values of the rank's tokens [B]; their gradients are as large."""
        return self.shard.width * self.shard.tokens * self.kv_features

    @property
    def scores(self) -> int:
        """Elements of the score matrices of all heads and sequences, the whole square."""
        return self.shard.micro_batch * self.heads * self.shard.seq_len**2

    @property
    def scores_nbytes(self) -> int:
        """Matrices of scores that are written [B]: none in a fused kernel."""
        return self.shard.width * self.scores if self.shard.attention == "unfused" else 0

    @property
    def in_fp8(self) -> bool:
        """Whether its products are in fp8."""
        return self.shard.attention_form in FP8_KERNELS.values()

    @property
    def units(self) -> str:
        """What multiplies in a fused kernel."""
        form = self.shard.attention_form
        return next((units for units, own in FP8_KERNELS.items() if own == form), self.shard.recipe.products)

    @property
    def operand_width(self) -> int:
        """Bytes of an element of queries, keys and values as the kernel reads them."""
        return 1 if self.in_fp8 else self.shard.width

    @property
    def backward_masks(self) -> tuple[Mask, ...]:
        """What the kernel of the gradients skips: in fp8 no keys before the window (measured: cuDNN 9.19 to 9.23)."""
        return tuple(replace(mask, window=None) for mask in self.masks) if self.in_fp8 else self.masks

    def cast(self, features: int) -> tuple[Kernel, ...]:
        """The pass that quantises a tensor of the rank's tokens before a kernel in fp8; else none.

        References
        ----------
        Transformer Engine 2.16, ``pytorch/attention/dot_product_attention/utils.py``: combine_and_quantize casts
        queries, keys and values as they lie, both copies of each; ``backends.py``: the gradient of the output alike.
        """
        quantisation = self.shard.recipe.quantisation
        if not self.in_fp8 or quantisation is None:
            return ()
        nbytes = quantisation.cast_nbytes(self.shard.tokens * features, width=self.shard.width)
        return (memory_pass(nbytes, dtype=self.shard.recipe.activations),)

    @property
    def pairs2(self) -> int:
        """Twice the pairs of tokens that see each other, over all ranks."""
        return _pairs2(self.masks)

    @property
    def backward_pairs2(self) -> int:
        """Twice the pairs that the kernel of the gradients computes."""
        return _pairs2(self.backward_masks)

    def exchanged(self) -> Core:
        """The core when heads have been exchanged for tokens."""
        context = self.shard.context
        return replace(
            self,
            shard=replace(self.shard, context=context.exchanged),
            heads=self.heads // context.ulysses,
            kv_heads=self.kv_heads // context.ulysses,
        )

    def piece(self, what: str, *kernels: Kernel, after: tuple[int, ...] | None) -> Piece:
        """Kernels as one op."""
        return Piece(op=Compute(name=f"attention core {what}", kind="attention", kernels=kernels), after=after)

    def kept(self, block: str) -> tuple[Kept, ...]:
        """What it adds to queries, keys and values, with its output, which the last matrix of ``block`` reads.

        A fused kernel adds the log-sum-exp of each row alone. Where a recipe quantises, the output is kept as the last
        matrix reads it and as the kernel gave it, which its own backward pass reads; so too where ranks exchange heads
        after it.

        References
        ----------
        Dao, FlashAttention-2, 2023, section 3.1.
        """
        shard, output = self.shard, self.shard.tokens * self.output_features
        mask = shard.rows * shard.model.hidden * shard.dropout
        if shard.attention != "unfused":
            inside: tuple[Kept, ...] = (Kept("log-sum-exp", block, 4 * shard.tokens * self.heads, part="core"),)
            if shard.recipe.quantisation or shard.context.keeps_twice:
                inside += (Kept("attention output of the kernel", block, shard.width * output),)
        else:
            inside = (
                Kept("probabilities", block, self.scores_nbytes, part="core"),
                Kept("probabilities after dropout", block, self.scores_nbytes * shard.dropout, part="core"),
                Kept("probability mask", block, self.scores * shard.dropout, part="core"),
            )
        return (
            *inside,
            Kept("attention output", block, shard.recipe.activation_operand.nbytes(output)),
            Kept("attention mask of dropout", block, mask),
        )

    def forward(self, *, pairs2: int, queries: int, keys: int) -> Kernel:
        """Scores, softmax and context in one kernel.

        Two products for each pair of tokens, 2·(d_k + d_v) FLOP a head; reads queries, keys and values, writes the
        output and 4 bytes a row and head.

        Parameters
        ----------
        pairs2 : int
            twice the pairs that it computes
        queries, keys : int
            rows that it reads
        """
        flops = pairs2 * self.heads * (self.key_dim + self.value_dim)
        w, read = self.shard.width, self.operand_width
        rows = queries * (read * self.query_features + w * self.output_features) + read * keys * self.kv_features
        return self._kernel(flops, rows + 4 * queries * self.heads + self.bias_nbytes, queries, keys, backward=False)

    def backward(self, *, pairs2: int, queries: int, keys: int) -> Kernel:
        """Gradients of queries, keys and values; parameters as in :meth:`forward`.

        Five products instead of two, since the scores are computed again: 2·(3·d_k + 2·d_v) FLOP a pair and head. Reads
        queries, keys, values, the output, its gradient and the statistics of the rows, writes three gradients.

        References
        ----------
        Dao, FlashAttention-2, 2023, section 4.1: backward counted as 2.5 times forward.
        """
        flops = pairs2 * self.heads * (3 * self.key_dim + 2 * self.value_dim)
        w, read = self.shard.width, self.operand_width
        rows = queries * (self.query_features + self.output_features) + keys * self.kv_features
        nbytes = (w + read) * rows + 4 * queries * self.heads + 2 * self.bias_nbytes
        return self._kernel(flops, nbytes, queries, keys, backward=True)

    def _kernel(self, flops: int, nbytes: int, queries: int, keys: int, *, backward: bool) -> Kernel:
        """m queries of a sequence, n keys that each sees at most, k the head's width, batch the heads of all."""
        sequences, masks = len(self.masks), self.backward_masks if backward else self.masks
        most = masks[0].window or keys
        return Kernel(
            kind="attention",
            dtype=self.units,
            flops=flops,
            nbytes=nbytes,
            m=queries // sequences,
            n=min(keys // sequences, most),
            k=self.key_dim,
            batch=sequences * self.heads,
            form=self.shard.attention_form,
            backward=backward,
            dropout=self.shard.dropout,
        )


def _pairs2(masks: tuple[Mask, ...]) -> int:
    return sum(count * mask.pairs2() for mask, count in Counter(masks).items())
