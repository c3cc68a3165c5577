"""GPT-2 on GPUs in two cities, 103 ms apart (Rao).

Utah and Amsterdam: 1,375 minutes of data parallelism for 20 epochs against 100 of Alpa's pipeshard. The GPUs, the batch
and the network of these two runs were not found, so the job card assumes them: what is held is which of the two wins.
"""

from __future__ import annotations

from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System

__all__ = ["TWO_SITES", "slowdown"]

_JOB = "gpt2-medium-two-sites"

_NOT_FOUND = (
    "batch, GPUs and bandwidth of these runs were not found; 32 sequences a step are assumed. A step of data "
    "parallelism sends all gradients across; the pipeline sends those of the embedding, which its first and last stage "
    "share, and activations of every sequence, so that smaller batches have larger ratios: 16 sequences 2.7"
)


def slowdown(runs: Runs, global_batch: int) -> float:
    """Step time of data parallelism over that of the card's pipeline, both with four micro-batches a replica.

    Parameters
    ----------
    runs : Runs
    global_batch : int
        a multiple of 16 [sequence]
    """
    batch = {"global_batch": global_batch, "steps": 2}
    pipeline = runs.step(_JOB, batch | {"micro_batch": global_batch // 8})
    whole = {"plan.pp": 1, "plan.dp": 4, "micro_batch": global_batch // 16}
    return float(runs.step(_JOB, batch | whole)["step_time_s"] / pipeline["step_time_s"])


def _slowdown(runs: Runs) -> float:
    return slowdown(runs, 32)


TWO_SITES = System(
    number="19",
    name="two-sites",
    paper="Performance of Small Language Model Pretraining on FABRIC: An Empirical Study",
    year=2026,
    arxiv="2602.02632",
    quantities=(
        Quantity(
            name="data parallel against pipeline, which is faster",
            published=1,
            unit="x",
            relation=">",
            grade="S",
            job=_JOB,
            simulated=_slowdown,
        ),
        Quantity(
            name="data parallel against pipeline, 1,375 over 100 min",
            published=13.75,
            unit="x",
            grade="D",
            job=_JOB,
            simulated=_slowdown,
            reason=_NOT_FOUND,
        ),
    ),
)
