"""Systems that are not simulated yet. One that is leaves this file for one of its own."""

from __future__ import annotations

from clustersim.study.reproduce.system import System

__all__ = ["NOT_YET_SIMULATED"]


def _system(number: str, name: str, year: int, arxiv: str, paper: str) -> System:
    return System(number=number, name=name, paper=paper, year=year, arxiv=arxiv)


NOT_YET_SIMULATED = (
    _system(
        "4",
        "throughput-lever",
        2026,
        "2603.26823",
        "Throughput Optimization as a Strategic Lever in Large-Scale AI Systems: Evidence from Dataloader and Memory "
        "Profiling Innovations",
    ),
    _system(
        "5",
        "multi-model-schedulers",
        2026,
        "2605.19593",
        "Towards Multi-Model LLM Schedulers: Empirical Insights into Offloading and Preemption",
    ),
    _system("7", "tensor-lifetimes", 0, "", "Memory-efficient training by tensor lifetimes; which paper is open"),
    _system("8", "pretraining-scaling", 2025, "2509.05258", "Scaling Performance of Large Language Model Pretraining"),
    _system(
        "9",
        "smart-infinity",
        2024,
        "2403.06664",
        "Smart-Infinity: Fast Large Language Model Training using Near-Storage Processing on a Real System",
    ),
    _system(
        "12",
        "memascend",
        2025,
        "2505.23254",
        "MemAscend: System Memory Optimization for SSD-Offloaded LLM Fine-Tuning",
    ),
    _system(
        "14",
        "subspec",
        2025,
        "2509.18344",
        "Speculate Deep and Accurate: Lossless and Training-Free Acceleration for Offloaded LLMs via Substitute "
        "Speculative Decoding",
    ),
    _system(
        "17",
        "pimba",
        2025,
        "2507.10178",
        "Pimba: A Processing-in-Memory Acceleration for Post-Transformer Large Language Model Serving",
    ),
    _system(
        "20",
        "luwu",
        2024,
        "2409.00918",
        "LuWu: An End-to-End In-Network Out-of-Core Optimizer for 100B-Scale Model-in-Network Data-Parallel Training "
        "on Distributed GPUs",
    ),
    _system(
        "B4",
        "zenflow",
        2025,
        "2505.12242",
        "ZenFlow: Enabling Stall-Free Offloading Training via Asynchronous Updates",
    ),
    _system(
        "B5",
        "lohan",
        2024,
        "2403.06504",
        "LoHan: Low-Cost High-Performance Framework to Fine-Tune 100B Model on a Consumer GPU",
    ),
)
