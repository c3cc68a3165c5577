"""The mesh of experts: the same ranks as the dense mesh, along other axes."""

from __future__ import annotations

from clustersim.workload.mesh import Mesh
from clustersim.workload.plan import ParallelPlan

__all__ = ["expert_mesh", "stages_agree"]


def expert_mesh(plan: ParallelPlan, *, dp: int, inner: int = 1) -> Mesh:
    """Axes ``etp``, ``ep``, ``edp_inner``, ``edp_outer`` and ``pp`` over all ranks.

    In the order of the dense axes etp takes the place of tp, and ep and edp that of dp, ep inside; cp has none: the
    ranks of dp, cp and tp are dealt out anew.

    Parameters
    ----------
    plan : ParallelPlan
        legal in ep and etp
    dp : int
        replicas
    inner : int
        ranks of an inner group among those that hold the same experts

    References
    ----------
    Megatron-Core, ``parallel_state.py``: the rank generator of the expert decoder, order ``tp-cp-ep-dp-pp`` with the
    expert sizes of tp and dp and a cp of 1.
    """
    etp = plan.etp or 1
    edp = dp * plan.cp * plan.tp // (plan.ep * etp)
    sizes = {
        "tp": {"etp": etp},
        "cp": {},
        "dp": {"ep": plan.ep, "edp_inner": inner, "edp_outer": edp // inner},
        "pp": {"pp": plan.pp},
    }
    axes = [pair for axis in plan.axis_order for pair in sizes[axis].items()]
    return Mesh(names=tuple(name for name, _ in axes), sizes=tuple(size for _, size in axes))


def stages_agree(plan: ParallelPlan, *, dp: int) -> bool:
    """Whether every rank is on the same stage in both meshes: what lies inside pp is as large in each."""
    inside = {"tp": plan.tp, "cp": plan.cp, "dp": dp}
    order = plan.axis_order[: plan.axis_order.index("pp")]
    dense = 1
    for axis in order:
        dense *= inside[axis]
    mesh = expert_mesh(plan, dp=dp)
    experts = 1
    for name, size in zip(mesh.names, mesh.sizes, strict=True):
        if name == "pp":
            break
        experts *= size
    return plan.pp == 1 or dense == experts
