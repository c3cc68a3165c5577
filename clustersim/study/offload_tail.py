"""How many subgroups SuperOffload should leave on the GPU, and how large they should be: from rates, and by search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clustersim.analysis.summary import summary
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.library.job import JobSetup
from clustersim.study.point import prepare, run_point
from clustersim.topology.topology import Topology
from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.updater import ADAM, gpu_update
from clustersim.workload.op import Compute, HostWork
from clustersim.workload.precision import find_recipe

__all__ = ["Tail", "TailRates", "best_tail", "search_tail", "smallest_tail", "tail_rates"]

_FULL = WIDTH["fp32"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TailRates:
    """What a rank does with its weights, as weights a second.

    Parameters
    ----------
    parameters, num_subgroups : int
        of the rank
    update_cpu, update_gpu : float
        updates of either
    leave, come : float
        fp32 gradients that leave the GPU, fp32 weights that come to it
    forward, backward : float
        passes over all tokens of a step, the backward pass with what it computes again
    """

    parameters: int
    num_subgroups: int
    update_cpu: float
    update_gpu: float
    leave: float
    come: float
    forward: float
    backward: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Tail:
    """One point of a search.

    Parameters
    ----------
    tail : int
        subgroups on the GPU
    subgroup_size : int
        weights of a subgroup, at least
    step_time_s : float
        [s]
    fits : bool
    gpu_nbytes : int
        at the peak [B]
    """

    tail: int
    subgroup_size: int
    step_time_s: float
    fits: bool
    gpu_nbytes: int


def tail_rates(setup: JobSetup) -> TailRates:
    """Of a job's first rank: its kernels, copies and updates by the cards of its cluster, each alone.

    The CPU's update shares its DRAM with the copies of gradients and weights, since all three go on at a time.

    Parameters
    ----------
    setup : JobSetup
        with the policy ``superoffload``

    Raises
    ------
    BadInput
        as :func:`clustersim.study.point.prepare` does
    """
    point = prepare(setup.with_values({"plan.offload.tail": 0, "plan.offload.rolls_back": False}))
    topology, arrays = point.topology, point.job.programs[0].arrays()
    gpu, cpu = topology.gpus[int(topology.gpu_of[0])], topology.cpus[int(topology.cpu_of[0])]
    ops = [(arrays.phases[phase], arrays.ops[op]) for phase, op in zip(arrays.phase, arrays.op, strict=True)]
    passes = {
        name: sum(_seconds(op.kernels, gpu) for phase, op in ops if phase == name and isinstance(op, Compute))
        for name in ("forward", "backward")
    }
    updates = [op for _, op in ops if isinstance(op, HostWork) and op.kind.startswith("adam")]
    parameters = sum(op.nbytes for op in updates) // ADAM
    recipe = find_recipe(setup.value("dtype"))
    update = gpu_update(OffloadPolicy(), parameters, recipe=recipe, width=WIDTH[recipe.weights])
    dram = topology.local["dram"].rows[:, 0]
    sharing = int((dram == dram[0]).sum())
    ceiling = cpu.rate(updates[0].kind).efficiency * cpu.memory_bandwidth
    demanded = ADAM * max(1.0, cpu.streaming_bandwidth / ceiling) + 2 * _FULL
    alone = min(cpu.num_cores * cpu.core_rate(updates[0].kind), ceiling) / ADAM
    return TailRates(
        parameters=parameters,
        num_subgroups=len(updates),
        update_cpu=min(alone, cpu.streaming_bandwidth / demanded) / sharing,
        update_gpu=parameters / _seconds(update.kernels, gpu),
        leave=_bandwidth(topology, "d2h") / _FULL,
        come=_bandwidth(topology, "h2d") / _FULL,
        forward=parameters / passes["forward"],
        backward=parameters / passes["backward"],
    )


def smallest_tail(rates: TailRates) -> int:
    """Subgroups on the GPU at which nothing waits for the CPU any more.

    The CPU's last subgroup of S weights is complete when the backward pass comes to the tail of n subgroups. Its way
    over the CPU and back must be over when the next forward pass is through the tail, which the GPU has updated before:

        n·S·(1/backward + 1/update_gpu + 1/forward) ≥ S·(1/leave + 1/update_cpu + 1/come)

    A CPU that is slower than the backward pass has a queue by then. It begins with the first subgroup's gradients, and
    of P weights has P - n·S to update:

        S·(1/backward + 1/leave + 1/come) + (P - n·S)/update_cpu ≤ P/backward + n·S·(1/update_gpu + 1/forward)

    Parameters
    ----------
    rates : TailRates

    Returns
    -------
    int
        the smallest number that fulfils both, at most all subgroups

    References
    ----------
    Lian et al., 2025, arXiv 2509.21271, section 4.3, has the first without the backward pass of the tail.
    """
    size, after = rates.parameters / rates.num_subgroups, 1 / rates.update_gpu + 1 / rates.forward
    way = 1 / rates.leave + 1 / rates.come
    last = (way + 1 / rates.update_cpu) / (1 / rates.backward + after)
    behind = size * (1 / rates.backward + way) + rates.parameters * (1 / rates.update_cpu - 1 / rates.backward)
    queue = behind / (size * (after + 1 / rates.update_cpu))
    return min(max(math.ceil(last), math.ceil(queue)), rates.num_subgroups)


def search_tail(setup: JobSetup, tails: Sequence[int], subgroup_sizes: Sequence[int] = ()) -> tuple[Tail, ...]:
    """Simulate a job with each number of subgroups on the GPU, and each size of them.

    Parameters
    ----------
    setup : JobSetup
        with the policy ``superoffload``
    tails : Sequence[int]
    subgroup_sizes : Sequence[int]
        none: the job's own

    Raises
    ------
    BadInput
        as :func:`clustersim.study.point.run_point` does
    """
    found = []
    for size in subgroup_sizes or (setup.values.get("plan.offload.subgroup_size"),):
        for tail in tails:
            values = {"plan.offload.tail": tail, "steps": 3}
            if size is not None:
                values["plan.offload.subgroup_size"] = size
            run = summary(run_point(setup.with_values(values)))
            found.append(
                Tail(
                    tail=tail,
                    subgroup_size=run["plan"]["offload"]["subgroup_size"],
                    step_time_s=run["step_time_s"],
                    fits=run["fits"],
                    gpu_nbytes=run["peak_memory_bytes"]["gpu"],
                )
            )
    return tuple(found)


def best_tail(points: Sequence[Tail], *, within: float = 0.005) -> Tail | None:
    """Of points that fit the one with least on the GPU that is slower than the fastest by at most a fraction."""
    fit = [point for point in points if point.fits]
    if not fit:
        return None
    limit = min(point.step_time_s for point in fit) * (1 + within)
    return min((point for point in fit if point.step_time_s <= limit), key=lambda point: point.gpu_nbytes)


def _seconds(kernels: Iterable[Kernel], gpu: GPU) -> float:
    """Of kernels that have the GPU to themselves, one after the other [s]."""
    return sum(kernel_cost(kernel, gpu).seconds for kernel in kernels)


def _bandwidth(topology: Topology, path: str) -> float:
    """Of the first rank's copies one way [B/s]."""
    local = topology.local[path]
    pairs = zip(local.rows[0], local.per_byte, strict=True)
    return min(float(topology.resources.capacity[row] / per_byte) for row, per_byte in pairs if row >= 0)
