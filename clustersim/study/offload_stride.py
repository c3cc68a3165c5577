"""Which stride of Deep Optimizer States: in closed form from rates, and by search.

A window of k subgroups is n = k - 1 updates of the CPU and then one of the GPU. With c and g for one update each, s for
a cast of new weights, v for their copy, and l for a state that leaves the GPU and one that comes (12 bytes a weight
each), all of one subgroup, a window takes the longest of::

    l + g                                the GPU updates when its state is there
    n · c + g                            and after the CPU
    n · (c + max(s, v)) + min(s, v)      the CPU waits for the casts and copies of the window before

l is 12 / d2h + 12 / h2d a weight, since one state comes into the buffers of the other; where the policy is ``duplex``
they pass beside each other and the longer counts. With the smallest k of which the first is not the longest the CPU
never waits for the GPU's state; with a larger one the GPU updates less than it could.

References
----------
Maurya et al., Deep Optimizer States, Middleware 2024, which equates the CPU's and the GPU's side of a window; the terms
follow ``runtime/zero/stage3.py`` of DataStates/DeepSpeed: ``opt_transfers``, ``step``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from clustersim.analysis.summary import summary
from clustersim.engine.cost.alone import local_cost
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.library.job import JobSetup
from clustersim.study.point import prepare, run_point
from clustersim.topology.topology import Topology
from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.traffic import cast_pass, copy, host_pass
from clustersim.workload.offload.updater import cpu_update, gpu_update
from clustersim.workload.op import Op
from clustersim.workload.optimizers.separate import UpdateKernels
from clustersim.workload.precision import Recipe, find_recipe

__all__ = ["UpdateRates", "balanced_stride", "search_stride", "update_rates"]

_STATE = 12
_MANY = 100_000_000
"""Weights that rates are taken over: so many that fixed costs of ops hardly count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateRates:
    """What one rank updates and moves while all ranks of its node do the same.

    Parameters
    ----------
    cpu, gpu : float
        weights that are updated a second, with the scaling of their gradients [1/s]
    cast : float
        new weights that the CPU casts a second, behind its updates [1/s]; infinite where it casts in passing
    d2h, h2d : float
        between the GPU and pinned memory [B/s]
    """

    cpu: float
    gpu: float
    d2h: float
    h2d: float
    cast: float = math.inf


def balanced_stride(rates: UpdateRates, *, duplex: bool = False, width: int = 2) -> int:
    """The smallest stride with which the CPU never waits for states on their way to the GPU.

    Parameters
    ----------
    rates : UpdateRates
    duplex : bool
        states that come and states that leave pass beside each other
    width : int
        bytes of a new weight on its way to the GPU [B]

    Examples
    --------
    >>> [balanced_stride(UpdateRates(cpu=1.5e9, gpu=25e9, d2h=rate, h2d=rate)) for rate in (55e9, 25e9)]
    [2, 3]
    """
    ways = _STATE / rates.d2h, _STATE / rates.h2d
    states = max(ways) if duplex else sum(ways)
    shorter, longer = sorted((1 / rates.cast, width / rates.h2d))
    before_the_gpu = states * rates.cpu
    before_the_cpu = (states + 1 / rates.gpu - shorter) / (1 / rates.cpu + longer)
    return 1 + max(1, math.ceil(min(before_the_gpu, before_the_cpu)))


def update_rates(
    topology: Topology,
    policy: OffloadPolicy,
    *,
    recipe: str | Recipe = "bf16",
    kernels_of: UpdateKernels = "foreach",
    width: int = 2,
) -> UpdateRates:
    """Rates of a policy's work on the hardware of a topology's cards.

    Parameters
    ----------
    topology : Topology
    policy : OffloadPolicy
    recipe : str or Recipe
    kernels_of : {"fused", "copied", "foreach", "loop"}
        of an update of the GPU
    width : int
        bytes of a gradient on the GPU [B]
    """
    formats, full = find_recipe(recipe), WIDTH["fp32"]
    on_cpu: list[Op] = [cpu_update(policy, _MANY)]
    if policy.scales:
        on_cpu.append(host_pass(policy, "scale gradients", "cast", 2 * full * _MANY))
    casts = (policy.cast_weights or policy.cast) in ("cpu", "late")
    cast = cast_pass(policy, "cast weights", (full + WIDTH[formats.weights]) * _MANY)
    update = gpu_update(policy, _MANY, recipe=formats, kernels_of=kernels_of, width=width)
    return UpdateRates(
        cpu=_MANY / sum(_seconds(op, topology) for op in on_cpu),
        gpu=_MANY / _seconds(update, topology),
        cast=_MANY / _seconds(cast, topology) if casts else math.inf,
        d2h=_MANY / _seconds(copy(policy, "leave", "d2h", _MANY), topology),
        h2d=_MANY / _seconds(copy(policy, "come", "h2d", _MANY), topology),
    )


def _seconds(op: Op, topology: Topology) -> float:
    """What an op takes on the first device while every device does the same."""
    cost = local_cost(op, topology.gpus[0], topology.cpus[0], 0, topology, kernel_cost, 1.0)
    longest = cost.ns / 1e9
    for name, load in cost.loads:
        path = topology.local[name]
        for row, per_byte in zip(path.rows[0], path.per_byte, strict=True):
            if row >= 0:
                users = int(np.count_nonzero((path.rows == row).any(axis=1)))
                longest = max(longest, users * load * per_byte / topology.resources.capacity[row])
    return longest


def search_stride(
    setup: JobSetup, strides: Iterable[int] = range(2, 9), *, topology: Topology | None = None
) -> dict[int, float]:
    """Simulate a job with each stride.

    Parameters
    ----------
    setup : JobSetup
        whose policy has a stride
    strides : Iterable[int]
    topology : Topology, optional
        in place of that of the job

    Returns
    -------
    dict[int, float]
        stride -> from the end of the passes to the end of the step [s]; infinite where the job does not fit

    Raises
    ------
    BadInput
        as :func:`clustersim.study.point.prepare` does
    """
    found: dict[int, float] = {}
    for stride in strides:
        point = prepare(setup.with_values({"plan.offload.stride": stride}))
        told = summary(run_point(point if topology is None else replace(point, topology=topology)))
        found[stride] = told["phases_s"]["update"] if told["fits"] else math.inf
    return found
