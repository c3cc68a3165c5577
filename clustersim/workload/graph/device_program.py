"""The programs of a worker's devices: tasks, transfers between them, gradients over the workers, the update."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from clustersim.hardware.kernel import Kernel
from clustersim.workload.graph.graph import WIDTH, GraphOp
from clustersim.workload.graph.holding import Holding
from clustersim.workload.graph.reduction import Reduction, completed_gradients
from clustersim.workload.graph.spread import Spread
from clustersim.workload.graph.transfers import Transfer, transfers
from clustersim.workload.op import Collective, Compute, Delay
from clustersim.workload.program import Program

__all__ = ["device_programs"]


def device_programs(
    spread: Spread, *, replicas: int, bucket_nbytes: int, update_nbytes: int
) -> tuple[tuple[Program, ...], list[Transfer]]:
    """One program a device.

    All are written together in one order of the tasks, in which each follows those that it waits for, and a transfer
    stands behind the task that it leaves after; so no two programs can wait for each other. Each pair of devices has a
    stream for each direction. Receives are posted in that order without waiting for computation.

    Parameters
    ----------
    spread : Spread
    replicas : int
        workers
    bucket_nbytes : int
        a bucket is closed by the gradient that fills it [B]
    update_nbytes : int
        HBM traffic of the update [B a parameter]; 0 leaves it out

    Returns
    -------
    programs : tuple[Program, ...]
        by device; one without ops waits for nothing and ends at once
    sent : list[Transfer]
    """
    tasks, device, order = spread.tasks, spread.device, spread.order
    sent = transfers(tasks, device, order)
    holding = Holding(tasks, device, order, sent)
    complete = completed_gradients(spread.graph, tasks, order)
    programs = tuple(Program(f"device {d}") for d in range(spread.num_devices))
    reductions = [Reduction(program, replicas, bucket_nbytes) for program in programs]
    leaving: dict[int, list[Transfer]] = defaultdict(list)
    for transfer in sent:
        leaving[transfer.after].append(transfer)
    waits: dict[int, list[int]] = defaultdict(list)
    for k in order:
        task, d = tasks.tasks[k], device[k]
        number = programs[d].add(
            task.op,
            stream="compute",
            after=waits[k],
            start_bytes=holding.at_start(k),
            end_bytes=holding.at_end(k),
            phase=task.phase,
            layer=task.row,
            stage=d,
        )
        for transfer in leaving[k]:
            received = _write(programs, transfer, number, task.phase, holding)
            for reader in transfer.readers:
                waits[reader].append(received)
        reductions[d].add(complete.get(k, 0), after=number)
    for d, (program, reduction) in enumerate(zip(programs, reductions, strict=True)):
        reduction.close()
        _update(program, reduction.ops, spread.ops_on(d), update_nbytes)
    return programs, sent


def _write(programs: Sequence[Program], transfer: Transfer, after: int, phase: str, holding: Holding) -> int:
    """The send on one device and the receive on the other; returns the number of the receive."""
    source, destination, nbytes = transfer.source, transfer.destination, transfer.nbytes
    what = "output" if phase == "forward" else "gradient"
    programs[source].add(
        Collective(name=f"send {what}", kind="send", slot=f"to {destination}", nbytes=nbytes, axis="pp"),
        stream=f"to {destination}",
        after=[after],
        end_bytes=holding.at_departure(transfer),
        phase=phase,
        stage=source,
    )
    return programs[destination].add(
        Collective(name=f"receive {what}", kind="recv", slot=f"from {source}", nbytes=nbytes, axis="pp"),
        stream=f"from {source}",
        start_bytes=holding.at_arrival(transfer),
        phase=phase,
        stage=destination,
    )


def _update(program: Program, reduced: Sequence[int], ops: Sequence[GraphOp], update_nbytes: int) -> None:
    """The update of a device's weights, and what it holds of them throughout."""
    if not len(program):
        program.add(Delay(name="no ops", kind="marker", measured_ns=0), stream="compute")
    weights = sum(WIDTH[op.dtype] * op.parameters for op in ops)
    gradients = sum(op.gradient for op in ops)
    if weights or gradients:
        program.resident.update({"gpu/weights": weights, "gpu/gradients": gradients, "gpu/optimizer": weights})
    touched = sum(op.gradient // WIDTH[op.dtype] for op in ops)
    if touched and update_nbytes:
        kernel = Kernel(kind="memory", dtype="fp32", flops=0, nbytes=touched * update_nbytes)
        update = Compute(name="update", kind="optimizer", kernels=(kernel,), category="optimizer")
        program.add(update, stream="compute", after=reduced, phase="optimizer")
