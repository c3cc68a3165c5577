"""Recomputation: what the backward pass computes again instead of keeping it from the forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["MODULES", "Recomputation", "Recompute", "RecomputeMethod"]

Recompute = Literal["none", "selective", "full"]
RecomputeMethod = Literal["uniform", "block"]

MODULES: Mapping[str, str] = {
    "core": "the attention core: scores, softmax and context",
    "norm": "the outputs of the norms inside the layers",
    "activation": "what the activation of an MLP or of experts writes",
    "residual": "the residual stream between the blocks of a layer",
    "second_products": "every second product of attention and MLP, and rotary embedding",
    "mla_up": "the up projections of latent attention, and the heads made of them",
    "experts": "the inside of the expert MLPs, dispatched tokens kept",
    "moe": "a mixture of experts whole, from its input: router, both exchanges, experts",
}
"""Parts of a layer that can be computed again by themselves."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recomputation:
    """A recompute setting with nothing left open.

    Parameters
    ----------
    modules : frozenset[str]
        parts that are computed again just before their block's backward pass, of :data:`MODULES`
    group_layers : int
        layers that are computed again together from the input of the first, which alone is kept; 0: none
    first_layers : int, optional
        of each chunk only so many layers are computed again whole, from its first on (Megatron-LM's ``block``);
        None: all (``uniform``)
    early_stop : bool
        layers are computed again only until all that their backward pass reads is there
    """

    modules: frozenset[str] = frozenset()
    group_layers: int = 0
    first_layers: int | None = None
    early_stop: bool = False

    @classmethod
    def of(
        cls,
        setting: Recompute,
        *,
        modules: tuple[str, ...] = ("core",),
        method: RecomputeMethod = "uniform",
        num_layers: int | None = None,
        early_stop: bool = False,
    ) -> Recomputation:
        """The setting of Megatron-LM's options of the same names.

        Parameters
        ----------
        setting : {"none", "selective", "full"}
        modules : tuple[str, ...]
            of ``selective``
        method : {"uniform", "block"}
            of ``full``: groups of ``num_layers`` layers, or the first ``num_layers`` layers of each chunk
        num_layers : int, optional
            None: 1 with ``uniform``, all with ``block``
        early_stop : bool
            of ``full``, as PyTorch's checkpoints do by themselves
        """
        if setting == "none":
            return cls()
        if setting == "selective":
            return cls(modules=frozenset(modules))
        if method == "uniform":
            return cls(group_layers=num_layers or 1, early_stop=early_stop)
        return cls(group_layers=1, first_layers=num_layers, early_stop=early_stop)

    def group(self, layer: int, *, first_layer: int) -> int:
        """First layer of the group that ``layer`` is computed again with, -1 when it is not.

        Parameters
        ----------
        layer : int
            of the model, -1 outside of layers
        first_layer : int
            of the chunk
        """
        place = layer - first_layer
        if layer < 0 or not self.group_layers or (self.first_layers is not None and place >= self.first_layers):
            return -1
        return layer - place % self.group_layers
