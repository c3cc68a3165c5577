"""32 H200 or 64 H100 (CharLLM-PPT).

It publishes which wins where and no numbers: twice the GPUs where a job computes, fewer GPUs with more memory where it
waits for the network. Its network is not known, so the crossing is looked for over rails of 400 Gb/s a GPU, which the
cards assume, and over one port a node.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from clustersim.library.job import load_job
from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System

__all__ = ["CHARLLM_PPT", "split_step"]

_NO_HEAT = "temperature is not modelled, and of power only that each GPU keeps its limit"


def split_step(runs: Runs, card: str, micro_batch: int, share: float) -> float:
    """Of fully sharded data parallelism over one port a node that has a share of 400 Gb/s [s]."""
    nodes = load_job(card).value("nodes")
    values: dict[str, Any] = {"plan.tp": 1, "plan.pp": 1, "plan.dp": 8 * nodes, "plan.zero": 0, "plan.fsdp": True}
    values |= {"plan.overlap_dp": True, "micro_batch": micro_batch, "nics_per_node": 1}
    if share < 1:
        ports = (f"node{node}/nic0.{way}" for node in range(nodes) for way in ("tx", "rx"))
        values["perturb.slow_links"] = dict.fromkeys(ports, share)
    found = runs.step(card, values)
    if not found["fits"]:
        raise ValueError(f"micro_batch {micro_batch} of {card} does not fit")
    return float(found["step_time_s"])


def _computing(runs: Runs, model: str) -> float:
    """Step of 32 H200 over that of 64 H100, with the plans of the cards."""
    return float(runs.step(f"{model}-h200-32")["step_time_s"] / runs.step(f"{model}-h100-64")["step_time_s"])


def _waiting(runs: Runs, share: float) -> float:
    """Step of 32 H200 over that of 64 H100; the larger memory takes twice the micro-batch."""
    few, many = split_step(runs, "llama-3-70b-h200-32", 4, share), split_step(runs, "llama-3-70b-h100-64", 2, share)
    return few / many


CHARLLM_PPT = System(
    number="18",
    name="charllm-ppt",
    paper="Characterizing the Efficiency of Distributed Training: A Power, Performance, and Thermal Perspective",
    year=2025,
    arxiv="2509.10371",
    slow=True,
    quantities=(
        Quantity(
            name="step of 32 H200 against 64 H100, GPT-3 175B, computing",
            published=1,
            unit="x",
            relation=">",
            grade="S",
            job="gpt3-175b-h200-32",
            simulated=partial(_computing, model="gpt3-175b"),
        ),
        Quantity(
            name="step of 32 H200 against 64 H100, Llama 3 70B, computing",
            published=1,
            unit="x",
            relation=">",
            grade="S",
            job="llama-3-70b-h200-32",
            simulated=partial(_computing, model="llama-3-70b"),
        ),
        Quantity(
            name="step of 32 H200 against 64 H100, FSDP at 100 Gb/s a node",
            published=1,
            unit="x",
            relation="<",
            grade="S",
            job="llama-3-70b-h200-32",
            simulated=partial(_waiting, share=0.25),
        ),
        Quantity(
            name="gain of placement by temperature, at least",
            published=4,
            unit="%",
            grade="S",
            reason=_NO_HEAT,
        ),
    ),
)
