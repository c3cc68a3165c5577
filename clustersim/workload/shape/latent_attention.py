"""Multi-head latent attention: keys and values of all heads come from one narrow vector a token."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.shape.counts import require_counts

__all__ = ["LatentAttention"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LatentAttention:
    """Widths of latent attention.

    Parameters
    ----------
    kv_rank : int
        of the vector that keys and values are made of
    nope_dim, rope_dim : int
        of a query and key head: the part without positions, and the part that is rotated, whose key all heads share
    value_dim : int
        of a value head
    q_rank : int, optional
        of the vector that queries are made of; None: from the residual stream at once (DeepSeek-V2-Lite)

    Raises
    ------
    ValueError
        naming field, value and rule

    References
    ----------
    DeepSeek-AI, DeepSeek-V2, 2024, section 2.1 (arXiv 2405.04434).
    """

    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    q_rank: int | None = None

    def __post_init__(self) -> None:
        require_counts(self, "kv_rank", "nope_dim", "rope_dim", "value_dim")
        if self.q_rank is not None:
            require_counts(self, "q_rank")

    @property
    def query_dim(self) -> int:
        """Width of a query head and of a key head."""
        return self.nope_dim + self.rope_dim

    def matrices(self, hidden: int, num_heads: int) -> dict[str, tuple[int, int]]:
        """Matrices as (features in, features out)."""
        queries = num_heads * self.query_dim
        if self.q_rank is None:
            found = {"q": (hidden, queries)}
        else:
            found = {"q_down": (hidden, self.q_rank), "q_up": (self.q_rank, queries)}
        return found | {
            "kv_down": (hidden, self.kv_rank + self.rope_dim),
            "kv_up": (self.kv_rank, num_heads * (self.nope_dim + self.value_dim)),
            "attention_out": (num_heads * self.value_dim, hidden),
        }

    @property
    def norm_parameters(self) -> int:
        """Weights of the RMS norms on the two narrow vectors."""
        return self.kv_rank + (self.q_rank or 0)
