"""FSDP from 128 to 2,048 H100 under weak scaling, two sequences of 4,096 tokens a GPU (Fernandez et al.)."""

from __future__ import annotations

from functools import partial

from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System

__all__ = ["HARDWARE_SCALING", "tokens_per_s"]

_JOB = "llama-2-7b-fsdp-h100"

_SHORT_STEPS = (
    "an all-gather of 405 MB over 2,048 ranks takes 4.3 ms here and hides behind 6 ms of forward pass, which it makes "
    "longer; the loss that was measured needs more than twice that. A step of a ring takes 1.1 us here in the mean, "
    "fitted to a few nodes: nothing measured says what it is over 256 of them. Kernels of H100 take an eighth less "
    "time here than those that llm-foundry measured under FSDP in 2023"
)
_FAST_KERNELS = (
    "kernels are fitted to libraries later than the runs, H100's most, and the host that issues them costs nothing in "
    "this job; 128 GPUs are assumed"
)
_NO_POWER = "of power, only that each GPU keeps its limit is modelled, not what communication draws"


def tokens_per_s(runs: Runs, num_gpus: int, tp: int = 1) -> float:
    """Of each GPU, in a steady state."""
    values = {"nodes": num_gpus // 8, "global_batch": 2 * num_gpus, "micro_batch": 2 * tp, "steps": 2}
    values |= {"plan.tp": tp, "plan.dp": num_gpus // tp}
    return 4096 * 2 / float(runs.step(_JOB, values)["step_time_s"])


def _loss(runs: Runs) -> float:
    return 100 * (tokens_per_s(runs, 2048) / tokens_per_s(runs, 128) - 1)


def _tensor_parallel(runs: Runs, num_gpus: int) -> float:
    return max(tokens_per_s(runs, num_gpus, tp) for tp in (2, 4)) / tokens_per_s(runs, num_gpus)


def _gain(runs: Runs) -> float:
    return 100 * (_tensor_parallel(runs, 2048) - 1)


def _mfu(runs: Runs, topology: str) -> float:
    values = {"topology": topology, "nodes": 16, "global_batch": 256, "steps": 2}
    return 100 * float(runs.step(_JOB, values)["mfu"])


HARDWARE_SCALING = System(
    number="6",
    name="hardware-scaling",
    paper="Hardware Scaling Trends and Diminishing Returns in Large-Scale Distributed Training",
    year=2024,
    arxiv="2411.13055",
    quantities=(
        Quantity(
            name="throughput of a GPU, 128 to 2,048 H100",
            published=-37.22,
            unit="%",
            grade="S",
            tolerance=0.05,
            job=_JOB,
            simulated=_loss,
            reason=_SHORT_STEPS,
        ),
        Quantity(
            name="tensor 2 or 4 over FSDP alone, 256 H100",
            published=1,
            unit="x",
            relation=">",
            grade="S",
            job=_JOB,
            simulated=partial(_tensor_parallel, num_gpus=256),
            reason=_SHORT_STEPS,
        ),
        Quantity(
            name="tensor 2 or 4 over FSDP alone, 2,048 H100",
            published=1,
            unit="x",
            relation=">",
            grade="S",
            job=_JOB,
            simulated=partial(_tensor_parallel, num_gpus=2048),
        ),
        Quantity(
            name="gain of tensor 2 to 4, 2,048 H100",
            published=52,
            unit="%",
            grade="M-low",
            job=_JOB,
            simulated=_gain,
            reason=_SHORT_STEPS,
        ),
        Quantity(
            name="MFU, A100",
            published=59.67,
            unit="%",
            grade="S",
            tolerance=0.05,
            job=_JOB,
            simulated=partial(_mfu, topology="dgx-a100"),
        ),
        Quantity(
            name="MFU, H100",
            published=40.77,
            unit="%",
            grade="S",
            tolerance=0.05,
            job=_JOB,
            simulated=partial(_mfu, topology="dgx-h100"),
            reason=_FAST_KERNELS,
        ),
        Quantity(
            name="power of a GPU, 128 to 2,048 H100",
            published=-5.87,
            unit="%",
            grade="S",
            job=_JOB,
            reason=_NO_POWER,
        ),
        Quantity(name="power of a GPU, 128 H100", published=658, unit="W", grade="M-med", job=_JOB, reason=_NO_POWER),
    ),
)
