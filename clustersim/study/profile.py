"""A software profile: what a training framework of some year fuses, overlaps and splits where a job does not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clustersim.library.build import build
from clustersim.library.card import read_card
from clustersim.workload.context import Method
from clustersim.workload.exchange import Dispatch
from clustersim.workload.placeholders import Placeholders
from clustersim.workload.shard import Attention
from clustersim.workload.tensor_overlap import TpOverlap

__all__ = ["Profile", "load_profile"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Switches of a framework, never efficiencies. Fields without a comment mean what they mean in a plan.

    Parameters
    ----------
    name, description : str
    attention, dropout, overlap_dp, overlap_tp, scatter_gather, tp_overlap, dispatch, context, per_parameter,
    placeholders, recompute_modules
        as in :class:`clustersim.workload.plan.ParallelPlan`
    sequence_parallel : bool
        with tp above 1
    zero : int
        where nothing is said about sharding
    fp8 : str
        the recipe that a bare ``fp8`` means, of :data:`clustersim.workload.precision.RECIPES`
    counts_recompute : bool
        whether its TFLOP/s count the passes that run again, where their unit does not say
    sources : Mapping[str, str]
        where each switch is from, or ``assumed``
    """

    name: str
    description: str = ""
    attention: Attention
    dropout: bool
    sequence_parallel: bool
    overlap_dp: bool
    overlap_tp: bool
    zero: int
    counts_recompute: bool
    scatter_gather: bool = False
    tp_overlap: TpOverlap = "none"
    dispatch: Dispatch = "all_to_all"
    context: Method = "zigzag"
    per_parameter: bool = False
    placeholders: Placeholders = "none"
    recompute_modules: tuple[str, ...] = ("core",)
    fp8: str = "fp8"
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)


def load_profile(name: str) -> Profile:
    """Load a profile by its card's name, or a card of the user's own by its path.

    Raises
    ------
    BadInput
        when there is no such card, or with every fault of it
    """
    return build(read_card("profile", name), Profile)
