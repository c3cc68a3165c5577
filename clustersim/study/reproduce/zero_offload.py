"""ZeRO-Offload on V100 (Ren et al.), as DeepSpeed's code of 2020 ran it."""

from __future__ import annotations

from functools import partial

from clustersim.library.model import load_model
from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System

__all__ = ["ZERO_OFFLOAD"]

_10B, _70B, _PLAIN = "zero-offload-10b-v100", "zero-offload-70b-dgx2", "gpt-1.4b-v100"


def _tflops(runs: Runs, job: str, model: str, micro_batch: int) -> float:
    """8 FLOP a parameter and token, as DeepSpeed's calculator counts with activations computed again [TFLOP/s]."""
    step = runs.step(job, {"model": model, "global_batch": micro_batch, "micro_batch": micro_batch})
    return float(8 * load_model(model).num_parameters * step["tokens_per_s"]) / 1e12


def _plain(runs: Runs) -> float:
    """The larger of 1.4 and 2.1 billion parameters that fits without offloading."""
    sizes = {"zero-offload-1.4b": 1.4, "zero-offload-2b": 2.1}
    return max(size for model, size in sizes.items() if runs.step(_PLAIN, {"model": model})["fits"])


def _fits(runs: Runs, job: str, model: str, billions: float, micro_batch: int, replicas: int = 1) -> float:
    """The size of a model that fits, else 0 [10^9]."""
    values = {"model": model, "global_batch": replicas * micro_batch, "micro_batch": micro_batch}
    return billions * bool(runs.step(job, values)["fits"])


ZERO_OFFLOAD = System(
    number="B1",
    name="zero-offload",
    paper="ZeRO-Offload: Democratizing Billion-Scale Model Training",
    year=2021,
    arxiv="2101.06840",
    quantities=(
        Quantity(
            name="10B on one V100",
            published=40,
            unit="TFLOP/s",
            grade="S",
            tolerance=0.15,
            job=_10B,
            simulated=partial(_tflops, job=_10B, model="zero-offload-10b", micro_batch=10),
        ),
        Quantity(
            name="1.4B on one V100 without offloading",
            published=30,
            unit="TFLOP/s",
            grade="S",
            job=_PLAIN,
            simulated=partial(_tflops, job=_PLAIN, model="zero-offload-1.4b", micro_batch=1),
            reason="its batch is not known; 1 is simulated, and 8 would be 56",
        ),
        Quantity(
            name="the larger of 1.4B and 2.1B that fits without offloading",
            published=1.4,
            grade="S",
            tolerance=0.0,
            job=_PLAIN,
            simulated=_plain,
        ),
        Quantity(
            name="13B fits one V100 at 4 sequences",
            published=13,
            grade="S",
            tolerance=0.0,
            job=_10B,
            simulated=partial(_fits, job=_10B, model="zero-offload-13b", billions=13, micro_batch=4),
        ),
        Quantity(
            name="70B fits one DGX-2",
            published=70,
            grade="S",
            tolerance=0.0,
            job=_70B,
            simulated=partial(_fits, job=_70B, model="zero-offload-70b", billions=70, micro_batch=8, replicas=2),
        ),
    ),
)
