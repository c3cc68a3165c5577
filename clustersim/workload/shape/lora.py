"""Low-rank adapters on some matrices of a model whose other weights are frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from clustersim.workload.shape.counts import require_counts

__all__ = ["LoRA", "Target"]

Target = Literal["q", "k", "v", "o", "gate", "up", "down"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LoRA:
    """A product of two narrow matrices added to each target; only these are trained.

    Parameters
    ----------
    rank : int
        r; a target of shape (m, n) gets r·(m + n) parameters
    targets : tuple[Target, ...]
        matrices of attention (q, k, v, o) and of the MLP (gate, up, down; up and down where it is not gated)

    Raises
    ------
    ValueError
        naming field, value and rule

    References
    ----------
    Hu et al., LoRA, 2021 (arXiv 2106.09685), section 4.1.
    """

    rank: int
    targets: tuple[Target, ...] = ("q", "v")

    def __post_init__(self) -> None:
        require_counts(self, "rank")
        legal = get_args(Target)
        if not self.targets or len(set(self.targets)) != len(self.targets) or not set(self.targets) <= set(legal):
            raise ValueError(
                f"targets: {','.join(self.targets) or 'none'} must name some of {', '.join(legal)}, each once"
            )
