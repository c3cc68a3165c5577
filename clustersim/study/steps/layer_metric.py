"""Memory as papers on it count it: that of the transformer layers of the first stage."""

from __future__ import annotations

from dataclasses import replace

from clustersim.study.steps.layout import LAYER_METRICS
from clustersim.study.steps.step_job import MeasuredStep, StepJob
from clustersim.workload.case import Case
from clustersim.workload.layer_memory import layer_activations, layer_state

__all__ = ["layer_metric"]


def layer_metric(measured: MeasuredStep) -> float:
    """The prediction of a row whose metric is one of :data:`clustersim.study.steps.layout.LAYER_METRICS`.

    A percentage is that of two runs: the row's own, and the same without recomputation and sequence parallelism.
    """
    job, metric = measured.job, measured.row.metric
    if metric == LAYER_METRICS[0]:
        return layer_activations(_case(job)) / 2**30
    if metric == LAYER_METRICS[1]:
        return layer_state(_case(job)) / 2**30
    plain = replace(job, plan=replace(job.plan, recompute="none", sequence_parallel=False))
    return 100 * layer_activations(_case(job)) / layer_activations(_case(plain))


def _case(job: StepJob) -> Case:
    """With twice as many micro-batches as stages: more are never in flight on the first."""
    return Case(
        model=job.model,
        plan=job.plan,
        global_batch=2 * job.plan.pp * job.micro_batch * (job.plan.dp or 1),
        micro_batch=job.micro_batch,
        seq_len=job.seq_len,
        dtype=job.dtype,
        num_devices=job.num_ranks,
    )
