"""What each field of a summary means, and its unit."""

from __future__ import annotations

__all__ = ["definitions"]


def definitions() -> dict[str, str]:
    """Each field of :func:`clustersim.analysis.summary.summary` -> one sentence with its unit."""
    return dict(_DEFINITIONS)


_DEFINITIONS = {
    "schema_version": "Version of these fields and of the trace's columns; it grows when one changes its meaning.",
    "status": "ok; out_of_memory: simulated to the end, but does not fit; deadlock, limit, interrupted: ended early.",
    "message": "Why a run ended early, such as the cycle of who waits for whom; null otherwise.",
    "fits": "Whether every rank stays within its GPU, host and drives; null when the run ended before that was known.",
    "job": "Name of the job.",
    "step_time_s": (
        "Duration of a step in the steady state: the median of those after the first, or the only one. Where the steps "
        "of a program differ (orders that alternate, a save every n-th step): the mean over its whole periods after "
        "the first, or over the first if there is no other [s]."
    ),
    "step_time_interval_s": (
        "10th and 90th percentile of what step_time_s may turn out to be, from the residuals of measured kernels, "
        "collectives and whole steps [s]."
    ),
    "step_times_s": "Duration of each complete step: from the end of the one before, or the launch, to its own [s].",
    "tokens_per_s": "Tokens of one step over step_time_s [1/s]; null for a job that counts no tokens.",
    "tokens_per_s_per_gpu": "tokens_per_s over the number of GPUs in use [1/s].",
    "samples_per_s": (
        "Samples of one step over step_time_s [1/s]: sequences, or what the table of a data-flow graph calls a sample; "
        "null for a job that counts none."
    ),
    "samples_per_s_per_gpu": "samples_per_s over the number of GPUs in use [1/s].",
    "model_flops_per_gpu_per_s": (
        "Model FLOP of one step (6 per matmul parameter and token plus causal attention, no recompute) over "
        "step_time_s and the number of GPUs [FLOP/s]."
    ),
    "mfu": "Model FLOP utilisation: model FLOP per second over the GPUs' dense peak in the dtype in use (fraction).",
    "mfu_full_attention": "mfu with attention counted over the full square of the sequence, as PaLM does (fraction).",
    "hfu": "Hardware FLOP utilisation: FLOP of all kernels, recompute and optimizer included, over the same peak.",
    "bubble_fraction": "Part of the step with nothing to do but wait for a pipeline neighbour; mean over ranks.",
    "exposed_comm_fraction": "Part of the step with communication and no computing; mean over ranks (fraction).",
    "breakdown_s": "The step split by what a rank does at each instant; mean over ranks; adds up to step_time_s [s].",
    "breakdown_s.compute": "Compute ops run [s].",
    "breakdown_s.optimizer": "The optimizer runs on the GPU and no compute op does [s].",
    "breakdown_s.exposed_comm": "Communication works and the GPU computes nothing, by mesh axis [s].",
    "breakdown_s.exposed_copy": "Copies or drives work, and none of the above [s].",
    "breakdown_s.host": "The host works, and none of the above [s].",
    "breakdown_s.bubble": "Nothing is there to do, or only a pipeline neighbour's data is waited for [s].",
    "breakdown_s.wait": "Other members of a group, or a pool, are waited for, and none of the above [s].",
    "pool_wait_s": (
        "Of breakdown_s.wait, by its name, what is waited for a pool that others hold, such as pinned buffers or the "
        "lock of a drive; pools that nobody waited for are left out [s]."
    ),
    "phases_s": (
        "With plan.offload, the step as forward, backward, swap_in (reads of drives that nothing hides), update, "
        "swap_out (writes that nothing hides) and wait for other ranks, which add up to it; mean over ranks [s]. "
        "swap_in_overlapped, swap_out_overlapped: part of the time of reads and of writes that other work hides."
    ),
    "host_bounds_s": (
        "With plan.offload, the time of the host's work (updates, casts) by what set it: cores (its threads), dram (a "
        "socket's memory), socket (the way to another socket); mean over ranks, work at the same time counts twice [s]."
    ),
    "peak_memory_bytes": "Most bytes held at one instant by the worst rank, by tier; a node's pools are no rank's [B].",
    "peak_store_bytes": (
        "Most bytes held at one instant in the fullest store of each kind by all ranks of all jobs that fill it: gpu; "
        "host and nvme of a node; file_system of the site [B]."
    ),
    "out_of_memory": (
        "What does not fit by the most bytes: rank, stage, op, category at the peak, tier, needed, capacity, over [B]; "
        "host and nvme count all ranks of a node, file_system all there are; null when all fits."
    ),
    "plan": "The parallel plan as resolved.",
    "fold": "exact: one rank simulated for each class of equal ranks; off: every rank simulated.",
    "num_ranks": "Ranks of the job.",
    "num_classes": "Ranks of the job that were simulated, each for all that are its equals.",
    "num_ops": "Ops simulated: rows of the trace, all steps.",
    "num_events": "Instants the engine handled.",
    "wall_s": "What the simulation took on this machine [s].",
    "warnings": "What was assumed, split, ignored or without effect, one sentence each.",
    "coverage": "Fraction of op time by origin: measured, interpolated, modelled, assumed; sums to 1.",
    "coverage_missing": (
        "Kernels, as rows of a table of one's own measurements, and collectives that are not measured, with their "
        "share of op time, the largest first; from 0.1 % on."
    ),
    "jobs": "For several jobs at once, each job's own fields; the fields above are the first one's.",
}
