"""Attention by random features (Performer): its work grows with the sequence, not with its square."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.shape.counts import require_counts

__all__ = ["LinearAttention"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearAttention:
    """Softmax attention estimated by M positive random features a head (FAVOR+).

    Parameters
    ----------
    features : int
        M; the d × M matrix of a head is drawn, not trained

    Raises
    ------
    ValueError
        naming field, value and rule

    References
    ----------
    Choromanski et al., Rethinking Attention with Performers, 2020 (arXiv 2009.14794).
    """

    features: int

    def __post_init__(self) -> None:
        require_counts(self, "features")

    def flops(self, num_heads: int, head_dim: int) -> int:
        """FLOP a token of all heads, forward: 8·a·M·d.

        2·M·d each to map the query, to map the key, to add the key's product with the value, and to read it with the
        query. The sums that normalise, M a head, are left out.
        """
        return 8 * num_heads * self.features * head_dim
