"""A selective state-space mixer, Mamba or Mamba-2, in place of attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clustersim.workload.shape.counts import require_counts

__all__ = ["Mamba"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mamba:
    """Widths of a Mamba mixer.

    Parameters
    ----------
    version : {1, 2}
        the first has a decay a channel and state, the second one a head
    inner : int
        channels inside the mixer, e (the paper's expansion times h)
    state : int
        numbers of state a channel, n
    conv : int
        width of the convolution over time
    dt_rank : int
        of the matrix that gives the step sizes; version 1 only
    head_dim, groups : int
        channels of a head; groups of heads with equal input and output vectors; version 2 only
    chunk : int
        tokens that version 2's kernels work on as matrices
    conv_bias, bias : bool
        bias of the convolution; of the projections in and out

    Raises
    ------
    ValueError
        naming field, value and rule

    References
    ----------
    Gu and Dao, Mamba, 2023 (arXiv 2312.00752). Dao and Gu, Transformers are SSMs, 2024 (arXiv 2405.21060).
    """

    version: Literal[1, 2]
    inner: int
    state: int
    conv: int = 4
    dt_rank: int = 0
    head_dim: int = 0
    groups: int = 0
    chunk: int = 256
    conv_bias: bool = True
    bias: bool = False

    def __post_init__(self) -> None:
        if self.version not in (1, 2):
            raise ValueError(f"version: {self.version!r} must be 1 or 2")
        require_counts(self, "inner", "state", "conv", "chunk")
        own, other = (("dt_rank",), ("head_dim", "groups"))[:: 1 if self.version == 1 else -1]
        require_counts(self, *own)
        for name in other:
            if getattr(self, name):
                raise ValueError(f"{name}: {getattr(self, name)} must be 0 in version {self.version}")
        if self.version == 2 and self.inner % self.head_dim:
            raise ValueError(f"head_dim: {self.head_dim} must divide the {self.inner} channels")

    @property
    def num_heads(self) -> int:
        """Heads of version 2; 0 in version 1."""
        return self.inner // self.head_dim if self.version == 2 else 0

    @property
    def conv_channels(self) -> int:
        """Channels that the convolution runs over."""
        return self.inner + 2 * self.groups * self.state

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        """Matrices as (features in, features out)."""
        if self.version == 1:
            return {
                "mamba_in": (hidden, 2 * self.inner),
                "mamba_select": (self.inner, self.dt_rank + 2 * self.state),
                "mamba_step": (self.dt_rank, self.inner),
                "mamba_out": (self.inner, hidden),
            }
        return {
            "mamba_in": (hidden, self.inner + self.conv_channels + self.num_heads),
            "mamba_out": (self.inner, hidden),
        }

    def parameters(self, hidden: int) -> int:
        """Parameters of a mixer: matrices, convolution, step sizes, decays, skips and, in version 2, the norm."""
        matrices = self.matrices(hidden)
        found = sum(rows * columns for rows, columns in matrices.values())
        found += (self.conv + self.conv_bias) * self.conv_channels
        found += self.bias * (matrices["mamba_in"][1] + hidden)
        if self.version == 1:
            return found + self.inner + self.inner * self.state + self.inner
        return found + 3 * self.num_heads + self.inner

    @property
    def scan_flops(self) -> int:
        """FLOP a token of the recurrence, forward: 7·e·n.

        An element of the state costs the products Δ·A and Δ·B·x (3), decay and sum (2), product with C and sum (2);
        exponentials, the convolution and the skip are left out. Kernels that work on chunks as matrices do more.

        References
        ----------
        Megatron-LM, ``num_floating_point_operations``: 7 · inner · state a token.
        """
        return 7 * self.inner * self.state
