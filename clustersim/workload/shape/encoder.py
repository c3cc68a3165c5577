"""The encoder of an encoder-decoder model; each decoder layer then attends to its output."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clustersim.workload.shape.counts import require_counts

if TYPE_CHECKING:
    from clustersim.workload.model import Model

__all__ = ["Encoder"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoder:
    """Layers of an encoder that is as wide as the decoder and shares its embedding; the rest is the decoder's.

    Parameters
    ----------
    num_layers : int
    num_heads, head_dim : int
        query heads, and as many key and value heads; width of one
    ffn_hidden : int
        width inside the MLP

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    num_layers: int
    num_heads: int
    head_dim: int
    ffn_hidden: int

    def __post_init__(self) -> None:
        require_counts(self, "num_layers", most=10_000)
        require_counts(self, "num_heads", "head_dim", "ffn_hidden")

    def stack(self, model: Model) -> Model:
        """These layers as a model of their own, like the decoder ``model`` in all else, without embedding and head."""
        return replace(
            model,
            name=f"{model.name} encoder",
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            num_kv_heads=self.num_heads,
            head_dim=self.head_dim,
            ffn_hidden=self.ffn_hidden,
            vocab=0,
            causal=False,
            head=False,
            head_bias=False,
            head_transform=False,
            pooler=False,
            num_classes=0,
            encoder=None,
            adapters=None,
        )
