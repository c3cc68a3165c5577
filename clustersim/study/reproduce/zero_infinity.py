"""ZeRO-Infinity's way of weights from drives, in the case whose drives were measured: text generation (ZeRO-Inference).

Llama 3 70B with all weights on NVMe, 96 sequences of 512 tokens and 32 more, on one GPU behind four PCIe 4.0, four
PCIe 5.0 and eight PCIe 5.0 drives. The drives' rates are measured by themselves. What the paper has of training on 512
V100 is recalled from a figure and states no batch.
"""

from __future__ import annotations

from functools import partial

from clustersim.analysis.summary import summary
from clustersim.engine.simulate import simulate
from clustersim.library.model import load_model
from clustersim.library.topologies import load_topology
from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System
from clustersim.workload.streamed_generation import streamed_generation

__all__ = ["ZERO_INFINITY", "tokens_per_s"]


def tokens_per_s(topology: str, num_drives: int) -> float:
    """Of generation on one GPU of a node with so many drives [1/s]."""
    cluster = load_topology(topology, **{"host.num_drives": num_drives})
    job = streamed_generation(load_model("llama-3-70b"), batch=96, prompt=512, tokens=32, direct=True)
    return float(summary(simulate(cluster, job, steps=1))["tokens_per_s"])


def _generation(runs: Runs, topology: str, num_drives: int) -> float:
    return runs.once(tokens_per_s, topology, num_drives)


def _on(num_drives: int, kind: str, topology: str, published: float) -> Quantity:
    return Quantity(
        name=f"generation, Llama 3 70B, {num_drives} x {kind}",
        published=published,
        unit="tokens/s",
        grade="S",
        tolerance=0.20,
        simulated=partial(_generation, topology=topology, num_drives=num_drives),
    )


ZERO_INFINITY = System(
    number="B2",
    name="zero-infinity",
    paper="ZeRO-Infinity: Breaking the GPU Memory Wall for Extreme Scale Deep Learning",
    year=2021,
    arxiv="2104.07857",
    quantities=(
        _on(4, "PCIe 4.0", "azure-nc96ads-a100-v4", 7),
        _on(4, "PCIe 5.0", "azure-nd-h200-v5", 17),
        _on(8, "PCIe 5.0", "azure-nd-h200-v5", 26),
        Quantity(
            name="1T parameters on 512 V100",
            published=49,
            unit="TFLOP/s",
            grade="M-med",
            reason="the batch and the shape of the model are not stated",
        ),
    ),
)
