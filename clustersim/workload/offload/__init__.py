"""What of a job is off its GPUs, and who updates it: policies, and the engine of subgroups that they all use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clustersim.workload.offload.deep_optimizer_states import DeepOptimizerStates
from clustersim.workload.offload.mlp_offload import MlpOffload
from clustersim.workload.offload.place import Place
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.superoffload import SuperOffload
from clustersim.workload.offload.superoffload_release import SuperOffloadRelease
from clustersim.workload.offload.twinflow import TwinFlow
from clustersim.workload.offload.zero_2_offload import Zero2Offload
from clustersim.workload.offload.zero_3_offload import Zero3Offload
from clustersim.workload.offload.zero_infinity import ZeroInfinity
from clustersim.workload.offload.zero_offload import ZeroOffload
from clustersim.workload.policy_settings import with_settings

__all__ = [
    "POLICIES",
    "DeepOptimizerStates",
    "MlpOffload",
    "OffloadPolicy",
    "Place",
    "Subgroup",
    "SuperOffload",
    "SuperOffloadRelease",
    "TwinFlow",
    "Zero2Offload",
    "Zero3Offload",
    "ZeroInfinity",
    "ZeroOffload",
    "make_policy",
]

POLICIES: Mapping[str, type[OffloadPolicy]] = {
    kind.name: kind
    for kind in (
        ZeroOffload,
        Zero2Offload,
        Zero3Offload,
        ZeroInfinity,
        TwinFlow,
        DeepOptimizerStates,
        MlpOffload,
        SuperOffload,
        SuperOffloadRelease,
    )
}
"""Policies by name."""


def make_policy(kind: type[OffloadPolicy], settings: Mapping[str, Any]) -> OffloadPolicy:
    """A policy with some of its fields set.

    Parameters
    ----------
    kind : type[OffloadPolicy]
    settings : Mapping[str, Any]
        by field

    Raises
    ------
    BadInput
        with each setting that the policy does not have
    """
    return with_settings(kind, settings, table="plan.offload")
