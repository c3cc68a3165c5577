"""What the time of a run is made of, read off programs and groups: nothing is kept while the clock runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from clustersim.engine.cost.local_cost import LocalCost
from clustersim.engine.loop.lane import Lane
from clustersim.engine.scene.scene import Scene
from clustersim.hardware.kernel import Provenance
from clustersim.hardware.residual import SIBLINGS, Residual
from clustersim.topology.topology import Topology
from clustersim.trace.timed_work import TimedWork
from clustersim.workload.op import Compute, Delay, HostWork, Op

__all__ = ["fractions", "timed_work"]

_HOST_SPREAD = 0.4
"""Of the CPU's work: assumed, its efficiency is."""

_COPY_SPREAD = 0.15
"""Of copies and drives: assumed. Links' payload bandwidths are known, what else crosses them is not."""


def timed_work(scene: Scene, lanes: Sequence[Lane]) -> tuple[TimedWork, ...]:
    """All ops of a run by what they do, those of all ranks and steps together."""
    found: dict[TimedWork, float] = {}
    for work in (*_local(scene, lanes), *_joint(scene, lanes)):
        key = replace(work, seconds=0.0)
        found[key] = found.get(key, 0.0) + work.seconds
    return tuple(replace(work, seconds=seconds) for work, seconds in found.items())


def fractions(timed: Sequence[TimedWork]) -> dict[str, float]:
    """Fractions of op time by provenance; of a run without any time all is modelled."""
    seconds = dict.fromkeys(("measured", "interpolated", "modelled", "assumed"), 0.0)
    for work in timed:
        seconds[work.provenance] += work.seconds
    total = sum(seconds.values())
    return {name: value / total for name, value in seconds.items()} if total else {**seconds, "modelled": 1.0}


def _local(scene: Scene, lanes: Sequence[Lane]) -> Iterator[TimedWork]:
    """Ranks' own ops; lanes with the same program on the same kind of device count together."""
    system = scene.system
    alike: dict[tuple[int, int, int], tuple[Lane, int]] = {}
    for lane in lanes:
        key = lane.spec.job, lane.spec.program, lane.spec.kind
        first, times = alike.get(key, (lane, 0))
        alike[key] = first, times + lane.flat.rounds * lane.spec.multiplicity
    for (job, program, kind), (lane, times) in alike.items():
        arrays = lane.flat.arrays
        counts = np.bincount(arrays.op, minlength=len(arrays.ops)) * times
        device = system.topology.gpus[int(system.topology.gpu_of[system.device[lane.spec.rank]])].name
        slowdown = float(system.slowdown[lane.spec.rank])
        for op, cost, count in zip(arrays.ops, system.local[program, kind], counts.tolist(), strict=True):
            if cost is not None and count:
                yield from _of_op(op, cost, job, device, count, slowdown)


def _of_op(op: Op, cost: LocalCost, job: int, device: str, count: int, slowdown: float) -> Iterator[TimedWork]:
    if isinstance(op, Compute):
        for kernel, of in zip(op.kernels, cost.kernels, strict=True):
            yield TimedWork(
                job=job,
                category=op.category,
                kind=kernel.kind,
                device=device,
                kernel=kernel if kernel.count == 1 else replace(kernel, count=1),
                seconds=of.seconds * slowdown * count,
                provenance=of.provenance,
                spread=of.spread,
            )
        return
    kind, spread = op.kind, _COPY_SPREAD
    if isinstance(op, Delay):
        kind, spread = "delay", 0.0
    elif isinstance(op, HostWork):
        kind, spread = "host", _HOST_SPREAD
    for provenance, seconds in cost.provenance.items():
        yield TimedWork(
            job=job,
            category=op.category,
            kind=kind,
            device=device,
            seconds=seconds * count,
            provenance=provenance,
            spread=spread,
        )


def _joint(scene: Scene, lanes: Sequence[Lane]) -> Iterator[TimedWork]:
    """Collectives, once for each of their members; whole nanoseconds add up to the same, however ranks are folded."""
    times: dict[tuple[int, int], int] = {}
    for lane in lanes:
        for slot, r in lane.spec.rendezvous.items():
            if slot in lane.flat.slots:
                times[lane.spec.job, r] = times.get((lane.spec.job, r), 0) + lane.flat.rounds * lane.spec.multiplicity
    found: dict[TimedWork, int] = {}
    for (job, r), count in times.items():
        spec = scene.rendezvous[r]
        block = scene.system.blocks[spec.block]
        num_nodes = len(np.unique(scene.system.topology.node_of[scene.system.device[block.members[0]]]))
        provenance, residual = _known(scene.system.topology, num_nodes)
        for s, number in enumerate(np.bincount(block.script, minlength=len(block.signatures)).tolist()):
            kind, nbytes, _ = block.signatures[s]
            work = TimedWork(
                job=job,
                category="communication",
                kind=kind,
                axis=block.name.partition("/")[0],
                nbytes=nbytes,
                num_members=block.members.shape[1],
                num_nodes=num_nodes,
                seconds=0.0,
                provenance=provenance,
                spread=residual.of(nbytes),
            )
            found[work] = found.get(work, 0) + int(spec.signatures[s].ns) * number * count
    for work, ns in found.items():
        yield replace(work, seconds=ns / 1e9)


def _known(topology: Topology, num_nodes: int) -> tuple[Provenance, Residual]:
    """How well the time of collectives inside a node or between several is known.

    Without a communication library there are the links alone, whose numbers are known, what a library adds is not.
    """
    residual = topology.residuals.get("inside" if num_nodes == 1 else "between")
    if residual is not None:
        return "modelled", residual
    return ("assumed" if topology.protocols else "modelled"), SIBLINGS
