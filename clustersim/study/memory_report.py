"""What a job holds in every store, on its GPUs by stage and category, and the largest micro-batch that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from clustersim.analysis.device_memory import DeviceMemory, device_memory
from clustersim.analysis.fits import worst_lack
from clustersim.analysis.stage_memory import StageMemory, stage_memory, worst_stage
from clustersim.analysis.stores import StorePeak, fullest, store_peaks
from clustersim.analysis.summary import summary
from clustersim.hardware.gpu import GPU
from clustersim.library.job import JobSetup
from clustersim.study.memory_trials import Trial, point_result, trials
from clustersim.study.point import Point, prepare
from clustersim.trace.result import Result
from clustersim.workload.job import TIERS

__all__ = ["MemoryReport", "memory_report"]


@dataclass(frozen=True, kw_only=True)
class MemoryReport:
    """The answer of ``clustersim memory``.

    Attributes
    ----------
    result : Result
        of the job as it was asked for
    stages : Sequence[StageMemory]
    trials : Sequence[Trial] or None
        micro-batches in the order in which they were tried; None where there are none to try
    """

    result: Result
    stages: Sequence[StageMemory]
    trials: Sequence[Trial] | None

    @property
    def worst(self) -> StageMemory:
        """The stage with the least room left."""
        return worst_stage(self.stages)

    @cached_property
    def stores(self) -> Mapping[str, StorePeak]:
        """Of each kind of store that is used, the place with the least room left."""
        return fullest(store_peaks(self.result.record, self.result.topology))

    @property
    def device(self) -> DeviceMemory:
        """What the GPU of :attr:`worst` holds beside the ledger."""
        result, worst = self.result, self.worst
        return device_memory(worst, result.record.lane(worst.job, worst.rank), _gpu(result, worst), result.chosen())

    @property
    def resident(self) -> Mapping[str, int]:
        """What the rank of :attr:`worst` holds throughout, by ``tier/category`` [B]."""
        return self.result.record.lane(self.worst.job, self.worst.rank).arrays.resident

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the run, and whether it fits by less than what no program accounts for."""
        device, capacity = self.device.device_bytes, self.worst.capacity_bytes
        if not self.fits or device <= capacity:
            return tuple(self.result.warnings)
        over = (device - capacity) / 2**20
        return (
            *self.result.warnings,
            f"memory: it fits, but with the CUDA context, cuBLAS and communicators, an estimate, by {over:.0f} MiB not",
        )

    @property
    def fits(self) -> bool | None:
        """Whether every store has room; None where the run did not end and nothing was over by then."""
        if worst_lack(self.stores.values()) is not None:
            return False
        return True if self.result.record.status == "ok" else None

    @property
    def largest_micro_batch(self) -> int | None:
        """The largest that fits, 0 when none does; None where none was tried, or a run did not end."""
        if self.trials is None or any(trial.fits is None and trial.peak_bytes is not None for trial in self.trials):
            return None
        return max((trial.micro_batch for trial in self.trials if trial.fits), default=0)

    def answer(self) -> dict[str, Any]:
        """The fields of ``memory --json``."""
        said, worst, device = summary(self.result), self.worst, self.device
        return {
            "job": said["job"],
            "status": said["status"],
            "fits": self.fits,
            "worst_rank": worst.rank,
            "peak_bytes": worst.peak_bytes,
            "capacity_bytes": worst.capacity_bytes,
            "peak_op": worst.peak_op,
            "by_category": dict(worst.by_category),
            "resident": dict(self.resident),
            "device": {
                "allocated_bytes": device.allocated_bytes,
                "reserved_bytes": device.reserved_bytes,
                "context_bytes": device.context_bytes,
                "communicator_bytes": device.communicator_bytes,
                "device_bytes": device.device_bytes,
            },
            "by_tier": {tier: said["peak_memory_bytes"][tier] for tier in TIERS},
            "stores": [_store(store) for store in self.stores.values()],
            "stages": [_stage(stage) for stage in self.stages],
            "largest_micro_batch": self.largest_micro_batch,
            "micro_batches_tried": None if self.trials is None else [asdict(trial) for trial in self.trials],
            "out_of_memory": said["out_of_memory"],
            "plan": said["plan"],
            "warnings": list(dict.fromkeys([*said["warnings"], *self.warnings])),
        }


def memory_report(
    setup: JobSetup | Point,
    *,
    fold: bool = True,
    search: bool = True,
    progress: Callable[[float], None] | None = None,
) -> MemoryReport:
    """Simulate a job and say what it holds; then find the largest micro-batch that fits.

    The micro-batches tried are the divisors of global_batch / dp, from the largest down to the first that fits, each
    simulated with all else as it is. That a smaller one needs less is not assumed, so the answer is the largest. Where
    the bytes that are held throughout leave no room, none is tried.

    Parameters
    ----------
    setup : JobSetup or Point
        settings, or a point that is prepared already
    fold : bool
        see :func:`clustersim.engine.simulate.simulate`
    search : bool
        for the largest micro-batch
    progress : callable, optional
        called with the fraction of the micro-batches that are done with

    Raises
    ------
    BadInput
        with every fault of the settings
    Deadlock
        when the job ends in one before anything ran
    """
    point = setup if isinstance(setup, Point) else prepare(setup)
    result = point_result(point, fold=fold)
    stages = stage_memory(result.record, result.topology)
    found: list[Trial] | None = None
    if search and point.setup.workload == "model":
        found = list(trials(point, result, fold=fold, progress=progress))
    return MemoryReport(result=result, stages=stages, trials=found)


def _gpu(result: Result, stage: StageMemory) -> GPU:
    devices = result.record.jobs[stage.job].devices
    place = stage.rank if devices is None else int(devices[stage.rank])
    return result.topology.gpus[int(result.topology.gpu_of[place])]


def _store(store: StorePeak) -> dict[str, Any]:
    told = asdict(store)
    del told["job"]
    told["peak_bytes"] = told.pop("nbytes")
    return told


def _stage(stage: StageMemory) -> dict[str, Any]:
    told = asdict(stage)
    del told["job"]
    return told | {"by_category": dict(stage.by_category)}
