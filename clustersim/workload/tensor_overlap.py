"""Overlap of tensor-parallel collectives with the products beside them: both are cut along the tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["TensorOverlap", "TpOverlap"]

TpOverlap = Literal["none", "ring", "pipeline", "userbuffers"]

Way = Literal["whole", "ring", "pipeline"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorOverlap:
    """How a product takes the tokens that it gathers, and gives those that it reduces.

    ``whole``: the collective, then the product, or the other way round. ``ring``: one part for each rank, which go from
    rank to rank; ``pipeline``: ``num_chunks`` parts of the tokens, each with a collective of its own.

    Parameters
    ----------
    gather, reduce : {"whole", "ring", "pipeline"}
    num_chunks : int
        of ``pipeline``
    """

    gather: Way = "whole"
    reduce: Way = "whole"
    num_chunks: int = 4

    @classmethod
    def of(cls, setting: TpOverlap, *, num_chunks: int = 4) -> TensorOverlap:
        """What a plan's words stand for.

        Parameters
        ----------
        setting : {"none", "ring", "pipeline", "userbuffers"}
            ``userbuffers`` gathers by ``ring`` and reduces by ``pipeline``
        num_chunks : int

        References
        ----------
        NVIDIA Transformer Engine, ``initialize_ub`` in ``transformer_engine/pytorch/module/base.py``: its defaults are
        ``ring_exchange`` for what is gathered before a product, ``pipeline`` for what is reduced after one in the
        forward pass, and in the backward pass ``bulk``, whole collectives beside products that need none of them.
        """
        gather: dict[TpOverlap, Way] = {"ring": "ring", "pipeline": "pipeline", "userbuffers": "ring"}
        reduce: dict[TpOverlap, Way] = {"ring": "ring", "pipeline": "pipeline", "userbuffers": "pipeline"}
        return cls(gather=gather.get(setting, "whole"), reduce=reduce.get(setting, "whole"), num_chunks=num_chunks)
