"""Two GPUs a worker against one on DGX-1 nodes (Pal et al.).

The paper measured how many epochs each global batch needs; the tables of the cards here are assumed, so what it gains
at scale is reported and not held against the paper's.
"""

from __future__ import annotations

from functools import partial

from clustersim.library.graph import load_convergence, load_graph
from clustersim.library.topologies import load_topology
from clustersim.study.messages import estimate_of
from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System
from clustersim.study.time_to_accuracy import TimeToAccuracy, time_to_accuracy
from clustersim.workload.graph import graph_step
from clustersim.workload.job import Job

__all__ = ["BATCH", "HYBRID_PARALLELISM", "studied"]

BATCH = {"inception-v3": 64, "gnmt": 128, "big-lstm": 128}
"""Samples of one worker, as on the job cards."""

_PAIRS = [0, 3, 1, 2, 4, 7, 5, 6]
"""GPUs of a node so that those of a worker share two NVLinks."""

_WAVEFRONT = (
    "time steps of recurrent layers on two devices overlap as a wavefront in the tables here; how the paper's "
    "frameworks ran them was not found"
)
_ASSUMED_EPOCHS = "the epochs that each global batch needs decide, and those of the paper were not found"


def studied(name: str) -> TimeToAccuracy:
    """Time to accuracy of a graph on 8 and on 256 V100, with one and with two GPUs a worker."""
    cluster = load_topology("dgx1-v100", nodes=32)
    graph = load_graph(name)
    estimate = estimate_of(cluster, devices=_PAIRS[:2])

    def step_of(width: int, replicas: int) -> Job:
        return graph_step(
            graph,
            batch=BATCH[name],
            devices=width,
            replicas=replicas,
            placement="list" if width > 1 else "column",
            estimate=estimate,
            device_of_rank=[8 * (r // 8) + _PAIRS[r % 8] for r in range(width * replicas)],
        )

    return time_to_accuracy(cluster, step_of, widths=(2,), num_devices=(8, 256), convergence=load_convergence(name))


def _of_two_gpus(runs: Runs, name: str) -> float:
    return next(row for row in runs.once(studied, name).rows if row.width == 2).model_parallel_speedup


def _at_scale(runs: Runs, name: str) -> float:
    rows = runs.once(studied, name).rows
    return 100 * (next(row for row in rows if (row.width, row.num_devices) == (2, 256)).speedup - 1)


def _quantities(title: str, name: str, speedup: float, gain: float) -> tuple[Quantity, ...]:
    return (
        Quantity(
            name=f"{title}, two GPUs a worker against one",
            published=speedup,
            unit="x",
            grade="M-med",
            job=f"{name}-dgx1",
            simulated=partial(_of_two_gpus, name=name),
            reason="" if name == "inception-v3" else _WAVEFRONT,
        ),
        Quantity(
            name=f"{title}, hybrid ahead at scale by at least",
            published=gain,
            unit="%",
            grade="S",
            job=f"{name}-dgx1",
            simulated=partial(_at_scale, name=name),
            reason=_ASSUMED_EPOCHS,
        ),
    )


HYBRID_PARALLELISM = System(
    number="13",
    name="hybrid-parallelism",
    paper="Optimizing Multi-GPU Parallelization Strategies for Deep Learning Training",
    year=2019,
    arxiv="1907.13257",
    quantities=(
        *_quantities("Inception-V3", "inception-v3", 1.32, 26.5),
        *_quantities("GNMT", "gnmt", 1.15, 8),
        *_quantities("BigLSTM", "big-lstm", 1.22, 22),
    ),
)
