"""A second stack beside the first, as the image tower of CLIP: both end in one space where they are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clustersim.workload.shape.counts import require_counts
from clustersim.workload.shape.patches import Patches

if TYPE_CHECKING:
    from clustersim.workload.model import Model

__all__ = ["Tower"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tower:
    """An image tower with layers of the same kind as the text tower's; a norm follows its embedding.

    Parameters
    ----------
    num_layers, hidden, num_heads, head_dim, ffn_hidden : int
        as those of :class:`clustersim.workload.model.Model`; as many key and value heads as query heads
    projection : int
        width of the space that one token of each tower is projected to
    patches : Patches

    Raises
    ------
    ValueError
        naming field, value and rule

    References
    ----------
    Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021 (arXiv 2103.00020).
    """

    num_layers: int
    hidden: int
    num_heads: int
    head_dim: int
    ffn_hidden: int
    projection: int
    patches: Patches

    def __post_init__(self) -> None:
        require_counts(self, "num_layers", most=10_000)
        require_counts(self, "hidden", "num_heads", "head_dim", "ffn_hidden", "projection")

    def projection_parameters(self, hidden: int) -> int:
        """Parameters of the two projections, from ``hidden`` of the first stack and from this one, and of the scale."""
        return (hidden + self.hidden) * self.projection + 1

    def stack(self, model: Model) -> Model:
        """This tower as a model of its own, like the first one ``model`` in all else, without its projection."""
        return replace(
            model,
            name=f"{model.name} image tower",
            num_layers=self.num_layers,
            hidden=self.hidden,
            num_heads=self.num_heads,
            num_kv_heads=self.num_heads,
            head_dim=self.head_dim,
            ffn_hidden=self.ffn_hidden,
            vocab=0,
            max_seq_len=self.patches.num_tokens,
            positions="learned",
            embedding_norm=True,
            causal=False,
            head=False,
            patches=self.patches,
            tower=None,
            adapters=None,
        )
