"""A dense decoder: its shape, the matrices in it, and the exact count of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

__all__ = ["LARGEST", "Model", "Norm", "Positions"]

Norm = Literal["layernorm", "rmsnorm"]
Positions = Literal["rope", "learned", "alibi"]

LARGEST: Mapping[str, int] = {
    "num_layers": 10_000,
    "hidden": 2**20,
    "num_heads": 2**16,
    "num_kv_heads": 2**16,
    "head_dim": 2**20,
    "ffn_hidden": 2**24,
    "vocab": 2**24,
    "max_seq_len": 2**30,
    "embedding_dim": 2**20,
}
"""The largest value of each count: far beyond any published model, and near enough to catch a slip of the keyboard."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """The shape of a decoder-only transformer, as its config or paper states it.

    In the formulas below h = ``hidden``, f = ``ffn_hidden``, L = ``num_layers``, V = ``vocab``, s = ``max_seq_len``,
    a = ``num_heads``, k = ``num_kv_heads``, d = ``head_dim``.

    Parameters
    ----------
    name : str
        card name, ``llama-3-70b``
    num_layers, hidden : int
        transformer layers; width of the residual stream
    num_heads, num_kv_heads, head_dim : int
        query heads, key and value heads (fewer under grouped-query attention), width of one head; a·d may differ from h
    ffn_hidden : int
        width inside the MLP
    gated_mlp : bool
        SwiGLU or GeGLU: three matrices instead of two
    vocab : int
        rows of the embedding, padding included where the checkpoint stores it
    max_seq_len : int
        longest sequence [token]; rows of a learned position table
    norm : {"layernorm", "rmsnorm"}
        all norms of the model
    positions : {"rope", "learned", "alibi"}
        only ``learned`` has parameters
    tied_embeddings : bool
        the head is the embedding transposed: stored once, multiplied all the same
    qkv_bias, attention_output_bias, mlp_bias, norm_bias : bool
        which of these have a bias vector
    qk_norm : bool
        a norm of d weights on the queries and one on the keys of each layer (Qwen3)
    embedding_norm : bool
        a norm after the embedding (BLOOM)
    final_norm : bool
        a norm after the last layer; False where layers norm after the residual add (OPT-350m)
    parallel_residual : bool
        attention and MLP read the same input and are added once (GPT-NeoX); both keep their own norm
    extra_positions : int
        rows of the position table beyond s (OPT has 2)
    embedding_dim : int, optional
        width of embedding and head where it is not h: a matrix leads in and one leads out (OPT-350m)
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``; not part of a comparison

    Raises
    ------
    ValueError
        naming field, value and rule, if a count is not a whole number from 1 to its entry in :data:`LARGEST`, if k does
        not divide a, or if two fields contradict each other
    """

    name: str
    num_layers: int
    hidden: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn_hidden: int
    gated_mlp: bool
    vocab: int
    max_seq_len: int
    norm: Norm
    positions: Positions
    tied_embeddings: bool
    qkv_bias: bool = False
    attention_output_bias: bool = False
    mlp_bias: bool = False
    norm_bias: bool = False
    qk_norm: bool = False
    embedding_norm: bool = False
    final_norm: bool = True
    parallel_residual: bool = False
    extra_positions: int = 0
    embedding_dim: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, largest in LARGEST.items():
            value = getattr(self, name)
            if name == "embedding_dim" and value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= largest:
                raise ValueError(f"{name}: {value!r} must be a whole number from 1 to {largest}")
        for name, words in (("norm", get_args(Norm)), ("positions", get_args(Positions))):
            if getattr(self, name) not in words:
                raise ValueError(f"{name}: {getattr(self, name)!r} must be one of {', '.join(words)}")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_kv_heads: {self.num_kv_heads} must divide the {self.num_heads} query heads")
        if self.norm == "rmsnorm" and self.norm_bias:
            raise ValueError("norm_bias: True must be False for rmsnorm, which has no bias")
        if self.extra_positions < 0 or (self.extra_positions and self.positions != "learned"):
            raise ValueError(f"extra_positions: {self.extra_positions} must be 0, or positive with learned positions")

    @property
    def attention_features(self) -> int:
        """Columns of the queries of one token, a·d; rows of the output matrix."""
        return self.num_heads * self.head_dim

    @property
    def qkv_features(self) -> int:
        """Columns of queries, keys and values of one token, (a + 2k)·d."""
        return (self.num_heads + 2 * self.num_kv_heads) * self.head_dim

    @property
    def layer_matrices(self) -> dict[str, tuple[int, int]]:
        """Matrices of one layer as (features in, features out), the q, k and v and the gate and up matrices fused."""
        return {
            "qkv": (self.hidden, self.qkv_features),
            "attention_out": (self.attention_features, self.hidden),
            "mlp_in": (self.hidden, self.ffn_hidden * (2 if self.gated_mlp else 1)),
            "mlp_out": (self.ffn_hidden, self.hidden),
        }

    @property
    def outer_matrices(self) -> dict[str, tuple[int, int]]:
        """Matrices outside the layers that a token is multiplied by, as (features in, features out)."""
        if self.embedding_dim is None:
            return {"head": (self.hidden, self.vocab)}
        return {
            "project_in": (self.embedding_dim, self.hidden),
            "project_out": (self.hidden, self.embedding_dim),
            "head": (self.embedding_dim, self.vocab),
        }

    @property
    def parameters_per_layer(self) -> dict[str, int]:
        """Parameters of one layer by part.

        With every bias present ::

            attention  h·(a + 2k)·d + (a + 2k)·d  +  a·d·h + h
            mlp        2·h·f + f + h,  gated 3·h·f + 2·f + h
            norms      2 · 2h,  rmsnorm 2 · h;  + 2·d weights with qk_norm
        """
        matrices = self.layer_matrices

        def linear(name: str, *, bias: bool) -> int:
            rows, columns = matrices[name]
            return (rows + bias) * columns

        return {
            "attention": linear("qkv", bias=self.qkv_bias) + linear("attention_out", bias=self.attention_output_bias),
            "mlp": linear("mlp_in", bias=self.mlp_bias) + linear("mlp_out", bias=self.mlp_bias),
            "norms": 2 * self._norm_parameters(self.hidden) + self.qk_norm * 2 * self._norm_parameters(self.head_dim),
        }

    @property
    def parameters_by_part(self) -> dict[str, int]:
        """Parameters of the whole model by part; a tied head counts in the embedding alone."""
        width = self.hidden if self.embedding_dim is None else self.embedding_dim
        return {
            "embedding": self.vocab * width,
            "positions": (self.max_seq_len + self.extra_positions) * self.hidden if self.positions == "learned" else 0,
            "projections": 0 if self.embedding_dim is None else 2 * width * self.hidden,
            "embedding_norm": self.embedding_norm * self._norm_parameters(self.hidden),
            "layers": self.num_layers * sum(self.parameters_per_layer.values()),
            "final_norm": self.final_norm * self._norm_parameters(self.hidden),
            "head": 0 if self.tied_embeddings else self.vocab * width,
        }

    @property
    def num_parameters(self) -> int:
        """Distinct parameters of the model: the sum of :attr:`parameters_by_part`."""
        return sum(self.parameters_by_part.values())

    @property
    def num_active_parameters(self) -> int:
        """Parameters that one token meets: all of them in a dense model."""
        return self.num_parameters

    @property
    def matmul_parameters(self) -> int:
        """Parameters that cost 2 FLOP a token in the forward pass.

        The elements of :attr:`layer_matrices` and :attr:`outer_matrices`, the head also when it is tied; not the
        embedding, which is a look-up, nor biases and norms.
        """
        per_layer = sum(rows * columns for rows, columns in self.layer_matrices.values())
        return self.num_layers * per_layer + sum(rows * columns for rows, columns in self.outer_matrices.values())

    def _norm_parameters(self, width: int) -> int:
        return width * (2 if self.norm_bias else 1)
