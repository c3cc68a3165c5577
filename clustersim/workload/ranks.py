"""The ranks of a training job: the axes that they lie along, and which of them hold the same weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.expert_mesh import expert_mesh
from clustersim.workload.mesh import Mesh
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.precision import Recipe
from clustersim.workload.sharding.replicas import Replicas
from clustersim.workload.sharding.sharding import Sharding
from clustersim.workload.sharding.strategy import strategy

__all__ = ["Ranks"]

_NAMES = {"dp": ("dp_inner", "dp_outer")}
"""Axes of the mesh that an axis of the plan is made of, the inner first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """All ranks of a job.

    Parameters
    ----------
    mesh : Mesh
        of ``tp``, ``cp``, ``dp_inner``, ``dp_outer`` and ``pp``, in the plan's order
    experts : Mesh, optional
        the same ranks as :func:`clustersim.workload.expert_mesh.expert_mesh` lays them, where the model has experts
    kinds : tuple[Replicas, ...]
        of dense weights and of those of experts
    """

    mesh: Mesh
    experts: Mesh | None
    kinds: tuple[Replicas, ...]

    @classmethod
    def of(cls, plan: ParallelPlan, *, dp: int, copies: int, recipe: Recipe, has_experts: bool) -> Ranks:
        """The ranks that a legal plan asks for.

        Parameters
        ----------
        plan : ParallelPlan
        dp : int
            replicas
        copies : int
            of the model that a replica's stages hold
        recipe : Recipe
        has_experts : bool
            some weights are those of experts
        """
        ranks = copies * dp * plan.cp
        dense = Replicas(axis="dp", ranks=ranks, sharding=_sharding(plan, recipe, ranks))
        inner = dense.sharding.inner // plan.cp or 1
        sizes = {"tp": (plan.tp,), "cp": (plan.cp,), "dp": (inner, dp // inner), "pp": (plan.pp,)}
        mesh = Mesh(
            names=tuple(name for axis in plan.axis_order for name in _NAMES.get(axis, (axis,))),
            sizes=tuple(size for axis in plan.axis_order for size in sizes[axis]),
        )
        if not has_experts:
            return cls(mesh=mesh, experts=None, kinds=(dense,))
        held = ranks * plan.tp // (plan.ep * (plan.etp or 1))
        own = Replicas(axis="edp", ranks=held, sharding=_sharding(plan, recipe, held))
        return cls(mesh=mesh, experts=expert_mesh(plan, dp=dp, inner=own.sharding.inner), kinds=(dense, own))

    @property
    def num_steps(self) -> int:
        """Optimizer steps from one exchange between workers to the next."""
        return self.kinds[0].sharding.sync_every

    def replica(self) -> NDArray[np.int64]:
        """Replica of each rank, shape (num_ranks,)."""
        return self.mesh.coordinate("dp_inner") + self.mesh.size("dp_inner") * self.mesh.coordinate("dp_outer")


def _sharding(plan: ParallelPlan, recipe: Recipe, ranks: int) -> Sharding:
    """What a plan asks for; gradients that leave the GPU with each micro-batch are reduced before they do."""
    sharding = strategy(plan, recipe)(ranks)
    leaves = plan.offload is not None and plan.offload.each_micro_batch
    return replace(sharding, each_micro_batch=True) if leaves else sharding
