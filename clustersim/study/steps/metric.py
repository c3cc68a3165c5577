"""A simulated step in the metric that a row publishes, FLOP counted as its source counts them."""

from __future__ import annotations

from dataclasses import replace

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.layer_metric import layer_metric
from clustersim.study.steps.layout import LAYER_METRICS, LAYER_TIME, MEMORY_METRICS
from clustersim.study.steps.refusal import RefusedError
from clustersim.study.steps.reserved import cached_nbytes
from clustersim.study.steps.share import NARROW, SHARE
from clustersim.study.steps.step_job import MeasuredStep
from clustersim.study.steps.timing import StepTime, step_time

__all__ = ["in_metric", "metric_faults"]

_SCALE = {"s": 1.0, "ms": 1e3, "min": 1 / 60, "h": 1 / 3600}
_RATIO = "step_time_ratio_vs_no_offload"
_METRICS = (
    _RATIO,
    "iteration_time",
    "forward_backward_time",
    LAYER_TIME,
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "samples_per_s",
    "samples_per_s_per_gpu",
    "tflops_per_gpu",
    "mfu",
    "hfu",
    *MEMORY_METRICS,
)
_SAMPLES = ("sequences/s", "samples/s")
_RATES = {
    "tokens_per_s": ("tokens/s",),
    "tokens_per_s_per_gpu": ("tokens/s",),
    "samples_per_s": _SAMPLES,
    "samples_per_s_per_gpu": _SAMPLES,
    "tflops_per_gpu": ("TFLOP/s",),
}
"""How the unit of a rate begins."""


def metric_faults(row: StepRow) -> None:
    """Refuse a metric, a unit or a quantity that no step tells.

    Raises
    ------
    RefusedError
    """
    told = f"metric {row.metric!r} in {row.unit!r}"
    if row.metric not in _METRICS:
        raise RefusedError("metric", f"{told}, none of {', '.join(_METRICS)}")
    if "whole run" in row.unit:
        raise RefusedError("metric", f"{told}: not that of a step")
    if row.metric.endswith("time") and row.unit not in _SCALE:
        raise RefusedError("metric", told)
    if row.metric in _RATES and not row.unit.startswith(_RATES[row.metric]):
        raise RefusedError("metric", told)
    if row.metric in MEMORY_METRICS and not row.unit.startswith("percent" if "relative" in row.metric else "GiB"):
        raise RefusedError("metric", told)
    if row.metric == _RATIO and row.unit != "x":
        raise RefusedError("metric", told)
    share = SHARE.match(row.unit)
    if row.metric in ("mfu", "hfu") and (share is None or (share["peak"] is None and NARROW.search(row.precision))):
        raise RefusedError("metric", f"{told}: of which peak is not told")


def in_metric(measured: MeasuredStep, step: StepTime) -> float:
    """The prediction of a row in its own metric and unit.

    Notes
    -----
    ``peak memory`` is what an allocator reserves, ``max_memory_allocated`` what tensors take of it.
    ``forward_backward_time`` is the step without its optimizer, on one GPU, where nothing runs beside it.
    ``step_time_ratio_vs_no_offload`` is over a second step, the same with all optimizer state on the GPUs. A share of
    a peak that is not told is of the dense 16-bit peak of the first GPU's card.
    """
    row, job, seconds = measured.row, measured.job, step.seconds
    if row.metric in LAYER_METRICS:
        return layer_metric(measured)
    if row.metric in MEMORY_METRICS:
        reserved = cached_nbytes(job) if row.metric == "peak memory" else 0
        return (step.peak_bytes + reserved) / 2**30
    if row.metric == _RATIO:
        return seconds / step_time(replace(job, plan=replace(job.plan, offload=None))).seconds
    if row.metric in ("iteration_time", LAYER_TIME):
        return seconds * _SCALE[row.unit]
    if row.metric == "forward_backward_time":
        return (seconds - (step.optimizer_s if job.num_ranks == 1 else 0.0)) * _SCALE[row.unit]
    over = job.num_ranks if row.metric.endswith("per_gpu") else 1
    if row.metric.startswith("tokens_per_s"):
        return step.ledger.tokens / seconds / over
    if row.metric.startswith("samples_per_s"):
        return job.global_batch / seconds / over
    rate = _flops(measured, step) / seconds / job.num_ranks / 1e12
    share = SHARE.match(row.unit)
    if share is None:
        return rate
    peak = float(share["peak"] or job.machine.topology().gpus[0].flop_per_s("fp16") / 1e12)
    return rate / peak * (1 if share["of"] == "fraction" else 100)


def _flops(measured: MeasuredStep, step: StepTime) -> float:
    """FLOP of a step as the row's source counts them.

    With B sequences of s tokens, l layers of width h and a vocabulary of V (Narayanan et al., 2021, equation 3, with
    and without the second forward pass)::

        96·B·s·l·h²·(1 + s/6h + V/16lh)        72·B·s·l·h²·(1 + s/6h + V/12lh)

    Otherwise model FLOP with causal attention, or over the full square where the source's own count has it so; over the
    full square, and 4/3 of it under full recomputation, where the passes that run again count.
    """
    row, job = measured.row, measured.job
    text = f"{row.flops_convention} {row.unit}".lower().replace(" ", "")
    model = job.model
    b, s, v = job.global_batch, job.seq_len, model.vocab
    layers, h = model.num_layers, model.hidden
    if "96bslh" in text:
        return 96 * b * s * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h))
    if "72bslh" in text:
        return 72 * b * s * layers * h**2 * (1 + s / (6 * h) + v / (12 * layers * h))
    model_only = "modelflops" in text or (row.metric == "mfu")
    hardware = "hardware" in text or row.metric == "hfu" or (measured.profile.counts_recompute and not model_only)
    if not hardware:
        full = measured.profile.counts_full_attention and row.metric == "tflops_per_gpu"
        return step.ledger.model_flops_full_attention if full else step.ledger.model_flops
    again = 4 / 3 if job.plan.recompute == "full" else 1.0
    return step.ledger.model_flops_full_attention * again
