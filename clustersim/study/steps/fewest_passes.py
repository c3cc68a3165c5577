"""Rows of sharded weights that tell no micro-batch: the largest that fits, as each pass gathers the weights again."""

from __future__ import annotations

from dataclasses import replace

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.fits import fits
from clustersim.study.steps.layout import MEMORY_METRICS, ONE_SEQUENCE
from clustersim.study.steps.step_job import MeasuredStep, place

__all__ = ["with_fewest_passes"]


def with_fewest_passes(row: StepRow, measured: MeasuredStep) -> MeasuredStep:
    """A step as its users would have run it.

    Where weights are gathered by each pass (FSDP, ZeRO-3) without a pipeline, and neither micro-batch nor accumulation
    is published, no more passes than memory asks for: assumed, since each pass moves all weights twice again (ZeRO,
    arXiv 1910.02054, section 7.2). Steps of which no larger micro-batch fits, and all others, stay as they are. So does
    a row that publishes memory: it would be asked for what it tells.
    """
    job = measured.job
    gathers = bool(job.plan.fsdp) or job.plan.zero == 3
    if not gathers or job.plan.pp > 1 or ONE_SEQUENCE not in measured.assumptions or row.metric in MEMORY_METRICS:
        return measured
    whole = job.num_micro_batches
    for passes in (number for number in range(1, whole) if whole % number == 0):
        larger = place(replace(row, micro_batch=whole // passes))
        if fits(larger):
            told = f"batch: micro-batch {whole // passes}, the largest that fits: each pass gathers the weights"
            kept = tuple(text for text in measured.assumptions if text != ONE_SEQUENCE)
            return replace(larger, row=measured.row, assumptions=(*kept, told), published=False)
    return measured
