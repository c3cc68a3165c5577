"""One rank's share of the model and of a micro-batch: the shapes that every kernel of the step is cut to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from clustersim.workload.context import Context
from clustersim.workload.expert_kernels import ExpertKernels
from clustersim.workload.expert_shard import ExpertShard
from clustersim.workload.fusion import FUSED, Loss
from clustersim.workload.mask import Mask
from clustersim.workload.model import Model
from clustersim.workload.module_dtypes import dtype_of_module
from clustersim.workload.precision import WIDTH, Dtype, Recipe, find_recipe
from clustersim.workload.unaligned import UnalignedUnits

__all__ = ["FP8_ATTENTION", "FP8_KERNELS", "WIDTH", "Attention", "Dtype", "Shard", "padded_vocab"]

Attention = Literal["flash", "flash-1", "triton", "flash-2", "flash-3", "cudnn", "cudnn-fp8", "trtllm", "unfused"]

FP8_ATTENTION = "cudnn-fp8"
"""cuDNN's fused attention whose products are in fp8 (Transformer Engine, ``fp8_dpa``): 16-bit in, 16-bit out."""

FP8_KERNELS = {"fp8": FP8_ATTENTION, "mxfp8": "cudnn-mxfp8"}
"""Units -> the kernel: MXFP8 has one of its own, with a scale every 32 elements."""


def padded_vocab(vocab: int, tp: int) -> int:
    """Rows of the embedding so that each of ``tp`` ranks has the same number.

    A vocabulary that tp does not divide grows to the next multiple of 128·tp: Megatron-LM's default for
    ``--make-vocab-size-divisible-by``. Megatron-LM pads those that tp divides too, by a percent of the head at most.
    """
    return vocab if vocab % tp == 0 else -(-vocab // (128 * tp)) * 128 * tp


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """Shapes on one tensor-parallel rank, in the letters of :class:`clustersim.workload.model.Model`.

    Parameters
    ----------
    model : Model
    micro_batch : int
        sequences b
    seq_len : int
        tokens of a sequence s
    dtype : str or Recipe
        name in :data:`clustersim.workload.precision.RECIPES`, or an own recipe
    products_as : str
        recipe whose operands the products at hand have; empty: as ``dtype``
    module_dtypes : tuple[str, ...]
        of :data:`clustersim.workload.module_dtypes.MODULE_DTYPES`
    bf16_ends : tuple[int, int]
        layers at the start and at the end whose products are not quantised
    gradient_dtype : {"bf16", "fp16", "fp32"}
        in which weight gradients are summed over micro-batches and ranks
    tp : int
        ranks t that share every layer
    sequence_parallel : bool
        norms, residual stream and dropout are split over the t ranks along the sequence
    attention : {"flash", "flash-1", "triton", "flash-2", "flash-3", "cudnn", "cudnn-fp8", "trtllm", "unfused"}
        one kernel that never writes the score matrix, or one GEMM each for scores and context with the softmax between;
        ``triton`` is FlashAttention as Triton 2 of 2022 and 2023 compiled it, on Hopper with Ampere's instructions
    fusion : tuple[str, ...]
        of :data:`clustersim.workload.fusion.FUSIONS`: which element-wise operators share a kernel
    loss : {"parallel", "operators", "fused"}
        how cross-entropy is computed
    logged_losses : int
        times that cross-entropy is computed once more for a log
    unaligned : {"matrix", "vector"}
        which units compute products of 16-bit operands that do not stand at multiples of 16 bytes
    expert_kernels : {"grouped", "each"}
        how the products of the rank's experts are launched
    dropout : bool
        on attention probabilities and on the output of both blocks
    experts : ExpertShard, optional
        the rank's experts and their tokens, where the model has experts
    window : int, optional
        tokens that attention of the layer at hand looks back on; None: the whole sequence
    context : Context
        the rank's place among those that share its sequences
    documents : tuple[tuple[int, ...], ...], optional
        tokens of each document, by sequence of the micro-batch; None: each sequence is one
    replicas : int
        of the model, whose features a contrastive loss compares
    repeats_heads : bool
        keys and values are copied for each query head that reads them, in front of the attention kernel
    splits_projections : bool
        queries, keys and values, and gate and up, are products of their own
    casts_first : bool
        tokens that ranks gather are cast before, where a tensor has one scale
    batch_first : bool
        what ranks gather and reduce along the sequence is copied into and out of their order
    slices : int
        parts of a sequence that are computed one after the other; ``seq_len`` is then that of one
    """

    model: Model
    micro_batch: int
    seq_len: int
    dtype: str | Recipe = "bf16"
    products_as: str = ""
    module_dtypes: tuple[str, ...] = ()
    bf16_ends: tuple[int, int] = (0, 0)
    gradient_dtype: Dtype = "fp32"
    tp: int = 1
    sequence_parallel: bool = False
    attention: Attention = "flash"
    dropout: bool = False
    fusion: tuple[str, ...] = FUSED
    loss: Loss = "parallel"
    logged_losses: int = 0
    unaligned: UnalignedUnits = "matrix"
    expert_kernels: ExpertKernels = "grouped"
    experts: ExpertShard | None = None
    window: int | None = None
    context: Context = field(default_factory=Context)
    documents: tuple[tuple[int, ...], ...] | None = None
    replicas: int = 1
    repeats_heads: bool = False
    splits_projections: bool = False
    casts_first: bool = False
    batch_first: bool = False
    slices: int = 1

    @property
    def recipe(self) -> Recipe:
        """The number formats that ``dtype`` names, with the operands of ``products_as`` where that is given."""
        found = find_recipe(self.dtype)
        return (
            found if not self.products_as else replace(found, quantisation=find_recipe(self.products_as).quantisation)
        )

    def of_module(self, module: str) -> Shard:
        """The same shard for products of a module: a recipe of their own, where the job's are quantised."""
        return self if self.recipe.quantisation is None else self._as(dtype_of_module(self.module_dtypes, module))

    def at_layer(self, index: int) -> Shard:
        """The same shard in layer ``index``, counted from 0; one behind the last is at the end too."""
        start, end = self.bf16_ends
        kept = index < start or (end and index >= self.model.num_layers - end)
        return self._as("bf16" if kept and self.recipe.quantisation is not None else "")

    def _as(self, dtype: str) -> Shard:
        """With products of another recipe, all of them; itself where ``dtype`` is empty."""
        return replace(self, products_as=dtype, module_dtypes=(), bf16_ends=(0, 0)) if dtype else self

    @property
    def unquantised(self) -> Shard:
        """The same shard for products that the recipe leaves in its activations' dtype, such as the head's."""
        return replace(self, dtype=replace(self.recipe, quantisation=None), products_as="", module_dtypes=())

    @property
    def width(self) -> int:
        """Bytes of an activation that is not quantised."""
        return self.recipe.width

    @property
    def tokens(self) -> int:
        """Tokens of a micro-batch R = b·s, over cp where ranks share a sequence: rows of every GEMM."""
        return self.micro_batch * self.seq_len // self.context.ranks

    @property
    def attention_form(self) -> str:
        """The fused attention kernel by name, empty for the usual one of the device.

        Layers that are not quantised have cuDNN's 16-bit kernel, as outside an fp8 context of Transformer Engine.
        """
        if self.attention == FP8_ATTENTION:
            units = self.recipe.activation_operand.dtype
            return "cudnn" if self.recipe.quantisation is None else FP8_KERNELS["mxfp8" if units == "mxfp8" else "fp8"]
        return "" if self.attention == "flash" else self.attention

    @property
    def masks(self) -> tuple[Mask, ...]:
        """Of attention in the layer at hand, for each sequence of the micro-batch."""
        documents = self.documents or ((self.seq_len,),)
        found = tuple(Mask(documents=d, causal=self.model.causal, window=self.window) for d in documents)
        return found if self.documents else found * self.micro_batch

    @property
    def rows(self) -> int:
        """Tokens that this rank holds of the residual stream: R/t with sequence parallelism, else R."""
        return self.tokens // self.tp if self.sequence_parallel else self.tokens

    @property
    def full_nbytes(self) -> int:
        """A tensor of R × h [B]: the payload of every tensor-parallel collective of a layer."""
        return self.width * self.tokens * self.model.hidden

    @property
    def residual_nbytes(self) -> int:
        """The residual stream of a micro-batch on this rank [B]: what goes from stage to stage."""
        return self.width * self.rows * self.model.hidden

    @property
    def compiled(self) -> bool:
        """A compiler writes what is no product, as it alone fuses a norm with the sum before it."""
        return "residual_norm" in self.fusion

    @property
    def gathers_cast(self) -> bool:
        """Tokens of linear layers are gathered in the format of their products."""
        quantisation = self.recipe.quantisation
        wanted = self.casts_first and self.sequence_parallel and self.tp > 1
        return wanted and quantisation is not None and quantisation.one_scale

    @property
    def heads(self) -> int:
        """Query heads of this rank, a/t."""
        return self.model.num_heads // self.tp

    @property
    def kv_heads(self) -> int:
        """Key and value heads of this rank, k/t; one that several ranks repeat where t exceeds k."""
        return max(1, self.model.num_kv_heads // self.tp)

    @property
    def read_heads(self) -> int:
        """Key and value heads that the attention kernel reads."""
        return self.heads if self.repeats_heads else self.kv_heads

    @property
    def query_features(self) -> int:
        """Columns of this rank's queries."""
        return self.heads * self.model.head_dim

    @property
    def key_features(self) -> int:
        """Columns of this rank's keys, and of its values."""
        return self.kv_heads * self.model.head_dim

    @property
    def qkv_features(self) -> int:
        """Columns of this rank's queries, keys and values."""
        return self.query_features + 2 * self.key_features

    @property
    def ffn(self) -> int:
        """Width inside this rank's MLP, f/t."""
        return self.model.ffn_hidden // self.tp

    @property
    def mlp_in_features(self) -> int:
        """Columns of this rank's first MLP matrix: gate and up side by side when gated."""
        return self.ffn * (2 if self.model.gated_mlp else 1)

    @property
    def vocab(self) -> int:
        """Rows of this rank's embedding, padding included."""
        return padded_vocab(self.model.vocab, self.tp) // self.tp

    @property
    def embedding_dim(self) -> int:
        """Columns of embedding and head."""
        return self.model.hidden if self.model.embedding_dim is None else self.model.embedding_dim
