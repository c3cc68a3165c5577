"""Time to accuracy: which width of model parallelism trains soonest, and from how many devices on it is not one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from clustersim.analysis.summary import summary
from clustersim.engine.simulate import simulate
from clustersim.faults import BadInput, Fault
from clustersim.topology.topology import Topology
from clustersim.workload.convergence import Convergence
from clustersim.workload.job import Job

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Row", "StepOf", "TimeToAccuracy", "time_to_accuracy"]

StepOf = Callable[[int, int], Job]
"""(width M, workers) -> one step of that many workers of M devices; its ledger's samples are the global batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One width of model parallelism on one number of devices.

    Parameters
    ----------
    num_devices, width, replicas : int
        N, M, and N/M workers
    global_batch : int
        [samples]
    step_time_s : float
        T, of the second step [s]
    scaling_efficiency : float
        SE: step time of one worker of this width over that of all
    model_parallel_speedup : float
        SU_M: step time of one device over that of one worker of this width, for the batch that ``step_of`` gives each
    steps_per_epoch : float
    epochs, hours : float
        NaN where the table of epochs does not reach
    speedup : float
        hours of width 1 on as many devices over these hours
    needed_speedup : float
        the SU_M from which on this width beats width 1: (B_N / B) · (SE_N / SE_{N/M}) · (E_{N/M} / E_N), where the
        ratio of the global batches is M if each worker has the same batch
    needed_epochs_ratio : float
        the E_N / E_{N/M} from which on it does; no table of epochs is behind it
    note : str
        why a number is missing
    """

    num_devices: int
    width: int
    replicas: int
    global_batch: int
    step_time_s: float
    scaling_efficiency: float
    model_parallel_speedup: float
    steps_per_epoch: float
    epochs: float
    hours: float
    speedup: float = 1.0
    needed_speedup: float = 1.0
    needed_epochs_ratio: float = 1.0
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeToAccuracy:
    """What every width takes on every number of devices.

    Parameters
    ----------
    rows : tuple[Row, ...]
        by number of devices, then width
    """

    rows: tuple[Row, ...]

    @property
    def table(self) -> pd.DataFrame:
        """A row for each of ``rows``, with its fields as columns."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def best(self, num_devices: int) -> Row:
        """The width that trains soonest on so many devices.

        Raises
        ------
        BadInput
            when no width has a time there
        """
        timed = [row for row in self.rows if not math.isnan(row.hours)]
        here = [row for row in timed if row.num_devices == num_devices]
        if not here:
            nearest = min((row.num_devices for row in timed), key=lambda n: abs(n - num_devices), default=None)
            rule = "must be a number of devices that some width has a time for"
            raise BadInput([Fault(key="num_devices", value=num_devices, rule=rule, nearest=nearest)])
        return min(here, key=lambda row: row.hours)

    def crossover(self, width: int) -> int | None:
        """The number of devices from which on a width beats width 1, there and at all larger ones; None: nowhere.

        Numbers of devices at which one of the two has no time say nothing.
        """
        found = None
        for row in self.rows:
            if row.width != width or math.isnan(row.speedup):
                continue
            if row.speedup <= 1:
                found = None
            elif found is None:
                found = row.num_devices
        return found

    def __str__(self) -> str:
        """Sentences: the best width at each number of devices, and where each width begins to win."""
        lines = []
        for n in dict.fromkeys(row.num_devices for row in self.rows):
            if all(math.isnan(row.hours) for row in self.rows if row.num_devices == n):
                lines.append(f"{n} devices: " + next(row.note for row in self.rows if row.num_devices == n))
                continue
            winner = self.best(n)
            ahead = f", {winner.speedup - 1:.1%} ahead of width 1" if winner.speedup > 1 else ""
            lines.append(f"{n} devices: width {winner.width} in {winner.hours:.2f} h{ahead}")
        for width in sorted({row.width for row in self.rows} - {1}):
            crossover = self.crossover(width)
            where = "nowhere" if crossover is None else f"from {crossover} devices on"
            lines.append(f"width {width} beats width 1 {where}")
        return "\n".join(lines)


def time_to_accuracy(
    cluster: Topology,
    step_of: StepOf,
    *,
    widths: Sequence[int],
    num_devices: Sequence[int],
    convergence: Convergence,
) -> TimeToAccuracy:
    """Simulate every width on every number of devices and multiply with the steps that training needs.

    On N devices, width M makes N/M workers, whose global batch B needs E(B) epochs of S samples::

        C = T_step · (S / B) · E(B)

    Widths that do not divide a number of devices are left out there. Width 1 is always run: it is what the others
    are compared with. Two steps are run and the second counts.

    Parameters
    ----------
    cluster : Topology
        with at least as many devices as the largest of ``num_devices``
    step_of : callable
        (width, workers) -> job
    widths, num_devices : Sequence[int]
        M and N
    convergence : Convergence
        E(B) and S

    Raises
    ------
    BadInput
        with every number that is not legal or larger than the cluster

    References
    ----------
    Pal et al., Optimizing Multi-GPU Parallelization Strategies for Deep Learning Training, IEEE Micro 2019: time to
    accuracy as this product, and the condition SU_M > M · (SE_N / SE_{N/M}) · (E_{N/M} / E_N). There SE_{N/M} is that
    of workers of one device; here it is that of the hybrid's own workers, so that the condition says exactly who wins.
    """
    faults = [
        Fault(
            key=key,
            value=n,
            rule=f"must be from 1 to {cluster.num_devices}",
            nearest=min(max(n, 1), cluster.num_devices),
        )
        for key, numbers in (("widths", widths), ("num_devices", num_devices))
        for n in numbers
        if not 1 <= n <= cluster.num_devices
    ]
    faults += [
        Fault(key=key, value=None, rule="must not be empty", nearest=1)
        for key, numbers in (("widths", widths), ("num_devices", num_devices))
        if not len(numbers)
    ]
    if faults:
        raise BadInput(faults)
    measured: dict[tuple[int, int], tuple[float, int]] = {}

    def step(width: int, replicas: int) -> tuple[float, int]:
        """Seconds of a step, and its global batch."""
        if (width, replicas) not in measured:
            job = step_of(width, replicas)
            seconds = summary(simulate(cluster, job, steps=2))["step_time_s"]
            measured[width, replicas] = float(seconds), job.ledger.samples
        return measured[width, replicas]

    rows: list[Row] = []
    for n in sorted(set(num_devices)):
        base = _row(step, 1, n, convergence)
        divide = sorted(width for width in {*widths} - {1} if n % width == 0)
        rows += [base, *(_compared(_row(step, width, n // width, convergence), base) for width in divide)]
    return TimeToAccuracy(rows=tuple(rows))


def _row(step: Callable[[int, int], tuple[float, int]], width: int, replicas: int, of: Convergence) -> Row:
    seconds, batch = step(width, replicas)
    covered = of.covers(batch)
    epochs = of.epochs_at(batch) if covered else math.nan
    steps = of.samples / batch
    return Row(
        num_devices=width * replicas,
        width=width,
        replicas=replicas,
        global_batch=batch,
        step_time_s=seconds,
        scaling_efficiency=step(width, 1)[0] / seconds,
        model_parallel_speedup=step(1, 1)[0] / step(width, 1)[0],
        steps_per_epoch=steps,
        epochs=epochs,
        hours=seconds * steps * epochs / 3600,
        speedup=1.0 if covered else math.nan,
        note="" if covered else f"no epochs for a global batch of {batch}",
    )


def _compared(row: Row, base: Row) -> Row:
    """A row beside that of width 1 on as many devices."""
    needed = base.global_batch / row.global_batch * base.scaling_efficiency / row.scaling_efficiency
    return replace(
        row,
        speedup=base.hours / row.hours,
        needed_speedup=needed * row.epochs / base.epochs,
        needed_epochs_ratio=needed / row.model_parallel_speedup,
        note=row.note or base.note,
    )
