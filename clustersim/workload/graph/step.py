"""One optimizer step of a data-flow graph: model parallelism inside a worker, data parallelism over the workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from clustersim.faults import BadInput, Fault
from clustersim.workload.graph.device_program import device_programs
from clustersim.workload.graph.estimate import Estimate
from clustersim.workload.graph.graph import Graph
from clustersim.workload.graph.placement import Placement
from clustersim.workload.graph.spread import Spread, spread
from clustersim.workload.graph.transfers import Transfer
from clustersim.workload.job import GroupFamily, Job, Ledger
from clustersim.workload.op import Compute

__all__ = ["graph_step"]


def graph_step(
    graph: Graph,
    *,
    batch: int,
    devices: int = 1,
    replicas: int = 1,
    placement: str | Placement = "column",
    estimate: Estimate | None = None,
    bucket_nbytes: int = 25 * 2**20,
    update_nbytes: int = 20,
    device_of_rank: Sequence[int] | None = None,
    name: str | None = None,
) -> Job:
    """One step: forward and backward of every worker, gradients reduced over the workers, weights updated.

    A worker's devices pass what their ops need to each other as sends and receives. Gradients are reduced device by
    device over the workers, in buckets, as the backward pass completes them. Left out: loading of data, batch
    normalisation over workers, the start of a step before the update of the one before has ended.

    Parameters
    ----------
    graph : Graph
        its backward ops are derived where it has none, see :func:`clustersim.workload.graph.tasks.resolve`
    batch : int
        samples of one worker in a step
    devices : int
        devices of a worker, M
    replicas : int
        workers
    placement : {"column", "list"} or callable
        ``column`` takes the devices that the graph gives; ``list`` is list scheduling with the times of ``estimate``;
        a callable gets the graph and M and returns a device for each op
    estimate : Estimate, optional
        times by which tasks are ordered and, with ``list``, placed
    bucket_nbytes : int
        a bucket is closed by the gradient that fills it [B]; 25 MiB is the default of PyTorch's
        ``DistributedDataParallel``
    update_nbytes : int
        HBM traffic of the update [B a parameter with a gradient]; 20 is SGD with momentum in fp32: weight, gradient
        and momentum read, weight and momentum written. One number of state a parameter is held
    device_of_rank : Sequence[int], optional
        for workers that sit on other than neighbouring devices; rank r sits on device r when None
    name : str, optional
        of the job; None: graph and degrees

    Returns
    -------
    Job
        rank r is device r mod M of worker r div M. Its ``plan`` says the device of each op (``placement``) and the
        step by the estimate (``estimate_s``)

    Raises
    ------
    BadInput
        with every fault of the call or of the placement
    """
    least = {"batch": batch, "devices": devices, "replicas": replicas, "bucket_nbytes": bucket_nbytes}
    faults = [
        Fault(key=key, value=value, rule="must be at least 1", nearest=1) for key, value in least.items() if value < 1
    ]
    if update_nbytes < 0:
        faults.append(Fault(key="update_nbytes", value=update_nbytes, rule="must not be negative", nearest=0))
    if device_of_rank is not None and len(device_of_rank) != devices * replicas:
        rule = f"numbers: there must be one for each of the {devices * replicas} ranks"
        given = len(device_of_rank)
        faults.append(Fault(key="device_of_rank", value=given, rule=rule, nearest=devices * replicas))
    if faults:
        raise BadInput(faults)
    placed = spread(graph, batch=batch, num_devices=devices, placement=placement, estimate=estimate)
    programs, sent = device_programs(
        placed, replicas=replicas, bucket_nbytes=bucket_nbytes, update_nbytes=update_nbytes
    )
    ranks = np.arange(devices * replicas, dtype=np.int64).reshape(replicas, devices)
    return Job(
        name=name or f"{graph.name}-mp{devices}-dp{replicas}",
        programs=programs,
        program_of=np.arange(ranks.size, dtype=np.int64) % devices,
        devices=None if device_of_rank is None else np.asarray(device_of_rank, dtype=np.int64),
        families=tuple(_families(ranks, sent)),
        ledger=_ledger(placed, batch=batch, replicas=replicas),
        plan=_plan(placed, batch=batch, replicas=replicas),
        notes=tuple(_notes(placed)),
    )


def _families(ranks: np.ndarray[Any, np.dtype[np.int64]], sent: list[Transfer]) -> Iterator[GroupFamily]:
    """Workers of each device, and (sender, receiver) of each direction that is used."""
    if len(ranks) > 1:
        yield GroupFamily(name="dp", members=ranks.T, slots=("dp",))
    for source, destination in sorted({(t.source, t.destination) for t in sent}):
        pair = ranks[:, [source, destination]]
        slots = (f"to {destination}", f"from {source}")
        yield GroupFamily(name=f"{source} to {destination}", members=pair, slots=slots)


def _ledger(placed: Spread, *, batch: int, replicas: int) -> Ledger:
    """Samples and FLOP of the step; its dtype is that of most of the FLOP."""
    by_dtype: dict[str, int] = {}
    for task in placed.tasks.tasks:
        if isinstance(task.op, Compute):
            dtype = placed.graph.ops[task.row].dtype
            by_dtype[dtype] = by_dtype.get(dtype, 0) + task.op.flops * replicas
    flops = sum(by_dtype.values())
    dtype = max(by_dtype, key=by_dtype.__getitem__, default="fp32")
    return Ledger(samples=batch * replicas, model_flops=flops, model_flops_full_attention=flops, dtype=dtype)


def _plan(placed: Spread, *, batch: int, replicas: int) -> dict[str, Any]:
    """What was asked for and decided: degrees, the device of each op by name, the estimate of the step [s]."""
    by_row = {task.row: d for task, d in zip(placed.tasks.tasks, placed.device, strict=True)}
    return {
        "mp": placed.num_devices,
        "dp": replicas,
        "batch": batch,
        "placement": {op.name: by_row[row] for row, op in enumerate(placed.graph.ops)},
        "estimate_s": placed.estimate_s,
    }


def _notes(placed: Spread) -> Iterator[str]:
    """What a user should know of the placement."""
    used = set(placed.device)
    for d in range(placed.num_devices):
        if d not in used:
            yield f"{placed.graph.name}: device {d} of each worker has no ops"
    if not placed.graph.has_backward:
        yield f"{placed.graph.name}: the backward pass is derived: twice the forward work of each op"
