"""A memory report as text, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.analysis.report import bytes_text, table, wrapped
from clustersim.study.memory_report import MemoryReport
from clustersim.study.memory_trials import Trial

__all__ = ["memory_text"]

_HEADS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer",
    "activations": "activations",
    "communication": "comm",
    "workspace": "work",
    "context": "context",
}
"""Category -> its column, in this order; others follow under their own names."""


_PLACES = {
    "host": "on a node, by its {} ranks",
    "nvme": "on the drives of a node, by its {} ranks",
    "file_system": "of the site, by {} ranks",
}
"""Where the stores are that several ranks fill."""


def memory_text(report: MemoryReport) -> str:
    """Text of a report."""
    answer, topology = report.answer(), report.result.topology
    blocks = [
        wrapped(f"{answer['job']} on {topology.name}: GiB held at the peak of each stage's fullest GPU"),
        _table(report),
        "\n".join(wrapped(line) for line in _lines(report)),
    ]
    warnings = [wrapped(f"warning: {warning}") for warning in answer["warnings"]]
    return "\n\n".join([*blocks, "\n".join(warnings)] if warnings else blocks)


def _table(report: MemoryReport) -> str:
    held = {category for stage in report.stages for category, nbytes in stage.by_category.items() if nbytes}
    columns = [c for c in _HEADS if c in held] + sorted(held - set(_HEADS))
    rows = [["stage", *(_HEADS.get(column, column) for column in columns), "peak"]]
    for stage in report.stages:
        cells = [f"{stage.by_category.get(column, 0) / 2**30:.2f}" for column in columns]
        rows.append(["-" if stage.stage is None else str(stage.stage), *cells, f"{stage.peak_bytes / 2**30:.2f}"])
    return table(rows, right=range(len(columns) + 2))


def _beyond_gpus(report: MemoryReport) -> Iterator[str]:
    """What is held elsewhere, and who fills each store to its peak."""
    for store in report.stores.values():
        if store.store == "gpu" or not store.nbytes:
            continue
        of = "" if store.capacity_bytes is None else f" of {bytes_text(store.capacity_bytes)}"
        held = sorted(store.by_category.items(), key=lambda part: -part[1])[:3]
        parts = ", ".join(f"{name} {bytes_text(nbytes)}" for name, nbytes in held if nbytes)
        if len(store.by_tier) > 1:
            parts += "; " + ", ".join(f"{tier} {bytes_text(nbytes)}" for tier, nbytes in store.by_tier.items())
        at = "from the start" if store.op is None else f"in '{store.op}'"
        place = _PLACES[store.store].format(store.num_ranks)
        yield f"{store.store}: {bytes_text(store.nbytes)}{of} {place}, on rank {store.rank} {at}: {parts}"


def _lines(report: MemoryReport) -> Iterator[str]:
    worst = report.worst
    part = worst.peak_bytes / worst.capacity_bytes
    most = max(worst.by_category, key=worst.by_category.__getitem__, default="nothing")
    at = "from the start" if worst.peak_op is None else f"in '{worst.peak_op}'"
    place = [
        f"{name} {number}"
        for name, number in (("layer", worst.layer), ("micro-batch", worst.micro_batch))
        if number is not None
    ]
    stage = "" if worst.stage is None else f" (stage {worst.stage})"
    yield (
        f"peak: {bytes_text(worst.peak_bytes)} of {bytes_text(worst.capacity_bytes)} ({100 * part:.0f} %) on rank "
        f"{worst.rank}{stage}, {at}{', ' if place else ''}{', '.join(place)}; most of it {most}"
    )
    held = ", ".join(
        f"{key.removeprefix('gpu/').replace('/', ' ')} {nbytes / 2**30:.2f}" for key, nbytes in report.resident.items()
    )
    yield f"held throughout [GiB]: {held or 'nothing'}"
    device = report.device
    beside = device.context_bytes + device.communicator_bytes
    yield (
        f"on that GPU, an estimate: {bytes_text(device.device_bytes)}; its allocator's segments "
        f"{bytes_text(device.reserved_bytes)} or more, CUDA context and NCCL {bytes_text(beside)}"
    )
    yield from _beyond_gpus(report)
    lack = report.answer()["out_of_memory"]
    if lack is not None:
        yield f"does not fit: {bytes_text(lack['over_bytes'])} over in {lack['tier']} memory on rank {lack['rank']}"
    elif report.fits is None:
        yield f"{report.result.record.status}: {report.result.record.message or 'the run did not end'}"
    else:
        yield "fits"
    if report.trials is not None:
        yield _largest(report)


def _largest(report: MemoryReport) -> str:
    trials = report.trials or ()
    if not trials:
        return "largest micro-batch that fits: none; what is held throughout leaves no room for any"
    tried = ", ".join(_tried(trial) for trial in trials)
    largest = {None: "not known", 0: "none"}.get(report.largest_micro_batch, report.largest_micro_batch)
    return f"largest micro-batch that fits: {largest} (tried {tried})"


def _tried(trial: Trial) -> str:
    if trial.peak_bytes is None:
        return f"{trial.micro_batch}: {trial.reason}"
    return f"{trial.micro_batch}: {bytes_text(trial.peak_bytes)}{f', {trial.reason}' if trial.reason else ''}"
