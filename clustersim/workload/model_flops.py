"""Model FLOP: the work that a model's definition asks for, whatever a system does to get it done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustersim.workload.sublayer import Sublayer, matmul_parameters, matrices

if TYPE_CHECKING:
    from clustersim.workload.model import Model

__all__ = ["ModelFlops", "forward_flops", "layer_flops", "mtp_flops", "training_flops"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFlops:
    """FLOP of one sequence.

    Parameters
    ----------
    matmul : int
        of tokens with weights
    attention : int
        of tokens with tokens, only where the mask lets one see the other; a causal mask counts half the square
    attention_full : int
        the same over the whole square of every layer
    scan : int
        of recurrences
    """

    matmul: int = 0
    attention: int = 0
    attention_full: int = 0
    scan: int = 0

    @property
    def total(self) -> int:
        """All of it, attention under its mask."""
        return self.matmul + self.attention + self.scan

    @property
    def total_full_attention(self) -> int:
        """All of it, attention over the whole square."""
        return self.matmul + self.attention_full + self.scan

    def __add__(self, other: ModelFlops) -> ModelFlops:
        return ModelFlops(
            matmul=self.matmul + other.matmul,
            attention=self.attention + other.attention,
            attention_full=self.attention_full + other.attention_full,
            scan=self.scan + other.scan,
        )

    def __mul__(self, times: int) -> ModelFlops:
        return ModelFlops(
            matmul=self.matmul * times,
            attention=self.attention * times,
            attention_full=self.attention_full * times,
            scan=self.scan * times,
        )


def training_flops(model: Model, seq_len: int, *, encoder_seq_len: int | None = None) -> ModelFlops:
    """FLOP of one sequence forward and backward, without any that is computed again.

    The backward pass costs twice the forward pass: a gradient of the input and one of the weight. Frozen weights under
    adapters have none of the second. Multi-token-prediction modules are trained, and counted.

    Parameters
    ----------
    model : Model
    seq_len : int
        tokens of a sequence; of an image, those of its patches
    encoder_seq_len : int, optional
        tokens that the encoder reads; as many as the decoder's when None

    Raises
    ------
    ValueError
        if ``seq_len`` is not an image's number of tokens
    """
    forward = forward_flops(model, seq_len, encoder_seq_len=encoder_seq_len)
    if model.adapters is None:
        return forward * 3
    adapters = 2 * seq_len * model.adapter_parameters
    frozen = ModelFlops(matmul=2 * (forward.matmul - adapters))
    rest = ModelFlops(attention=forward.attention, attention_full=forward.attention_full, scan=forward.scan)
    return frozen + ModelFlops(matmul=3 * adapters) + rest * 3


def forward_flops(model: Model, seq_len: int, *, encoder_seq_len: int | None = None) -> ModelFlops:
    """FLOP of one sequence forward; parameters as in :func:`training_flops`.

    A matrix of m × n costs 2·m·n a token. Attention costs 2 FLOP for each pair of tokens and feature of the queries,
    and as many for the values: with a heads of width d and s tokens 4·a·d·s² over the square. Under the causal mask
    there are s²/2 pairs, and s·w − w²/2 with a window of w < s tokens.

    References
    ----------
    Chowdhery et al., PaLM, 2022, appendix B (12·L·H·Q·T a token, forward and backward); the causal half is that of
    FlashAttention's FLOP counts.
    """
    if model.patches is not None and seq_len != model.patches.num_tokens:
        raise ValueError(f"seq_len: {seq_len} must be the {model.patches.num_tokens} tokens of an image")
    encoded = seq_len if encoder_seq_len is None else encoder_seq_len
    found = ModelFlops(matmul=2 * seq_len * (model.adapter_parameters + _outer(model)))
    for run in model.layer_runs():
        found += _layer(model, run.sublayers, run.window, seq_len, encoded) * run.count
    if model.mtp:
        found += mtp_flops(model, seq_len) * model.mtp
    found += ModelFlops(matmul=2 * sum(rows * columns * n for rows, columns, n in model.sequence_matrices.values()))
    if model.encoder_stack is not None:
        found += forward_flops(model.encoder_stack, encoded)
    if model.tower_stack is not None:
        found += forward_flops(model.tower_stack, model.tower_stack.max_seq_len)
    return found


def layer_flops(model: Model, index: int, seq_len: int) -> ModelFlops:
    """FLOP of one sequence forward through layer ``index``, adapters not counted."""
    return _layer(model, model.layer(index), model.window_at(index), seq_len, seq_len)


def mtp_flops(model: Model, seq_len: int) -> ModelFlops:
    """FLOP of one sequence forward through one multi-token-prediction module, its head included."""
    module = ModelFlops(matmul=2 * seq_len * (2 * model.hidden**2 + _outer(model)))
    window = None if model.mtp_layout else model.window_at(model.num_layers - 1)
    for sublayers in model.mtp_layers():
        module += _layer(model, sublayers, window, seq_len, seq_len)
    return module


def _outer(model: Model) -> int:
    return sum(rows * columns for rows, columns in model.outer_matrices.values())


def _layer(model: Model, sublayers: tuple[Sublayer, ...], window: int | None, seq_len: int, encoded: int) -> ModelFlops:
    found = ModelFlops()
    square = 2 * seq_len**2
    w = seq_len if window is None else min(window, seq_len)
    pairs = 2 * seq_len * w - w**2 if model.causal else square  # twice their number
    for name in sublayers:
        weights = matmul_parameters(model, name)
        match name:
            case "attention":
                features = 2 * model.attention_features
                found += ModelFlops(attention=pairs * features, attention_full=square * features)
            case "latent_attention" if model.latent:
                features = model.num_heads * (model.latent.query_dim + model.latent.value_dim)
                found += ModelFlops(attention=pairs * features, attention_full=square * features)
            case "linear_attention" if model.linear:
                mapped = seq_len * model.linear.flops(model.num_heads, model.head_dim)
                found += ModelFlops(attention=mapped, attention_full=mapped)
            case "cross_attention":
                rows, columns = matrices(model, name)["encoder_kv"]
                crossed = 4 * seq_len * encoded * model.attention_features
                matmul = 2 * (encoded - seq_len) * rows * columns
                found += ModelFlops(matmul=matmul, attention=crossed, attention_full=crossed)
            case "mamba" if model.mamba:
                found += ModelFlops(scan=seq_len * model.mamba.scan_flops)
        found += ModelFlops(matmul=2 * seq_len * weights)
    return found
