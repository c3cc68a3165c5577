"""SuperOffload on superchips (Lian et al.): as in its paper, and as DeepSpeed released it.

The paper's times stand in figures and are only remembered, its models' shapes are not known. What DeepSpeed's blog and
examples say is read there. A step's FLOP are those of the model, without what is computed again, unless said otherwise.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from clustersim.analysis.summary import summary
from clustersim.engine.simulate import simulate
from clustersim.library.topologies import load_topology
from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System
from clustersim.workload.job import Job
from clustersim.workload.offload.cpu_update import Adam
from clustersim.workload.op import HostWork
from clustersim.workload.program import Program

__all__ = ["SUPEROFFLOAD", "adam_seconds"]

_5B, _BASELINE = "superoffload-5b", "superoffload-5b-baseline"
_25B, _1M = "superoffload-25b", "superoffload-13b-1m"
_RELEASE, _STAGE_3, _FOUR = "superoffload-qwen3-14b", "zero-offload-qwen3-14b", "superoffload-llama-70b-4"

_BASE = {
    "plan.offload.adam": "adam",
    "plan.offload.cast": "cpu",
    "plan.offload.speculates": False,
    "plan.offload.validates": False,
    "plan.offload.overlaps_forward": False,
    "plan.offload.subgroup_size": 128 * 2**20,
    "plan.offload.tail": 0,
}
_ABLATION = (
    ("ablation, base", 116.2, ()),
    ("ablation, with GraceAdam", 128.2, ("adam",)),
    ("ablation, with casts of the GPU", 144.5, ("adam", "cast")),
    ("ablation, with speculation", 209.4, ("adam", "cast", "speculates", "validates", "overlaps_forward")),
    ("ablation, with small buckets and a tail", 238.9, tuple(key.rpartition(".")[2] for key in _BASE)),
)
"""Name, TFLOP/s of the paper, and what of the base is as the job card has it by then."""

_ON_ITS_WAY = (
    "the example's numbers are of September 2025. That release hands each subgroup to the worker and scales its "
    "gradients, but does not bring the worker's weights to the GPU (_reassign_or_swap_out_partitioned_parameters "
    "returns for them); later ones, which are simulated, cast and copy them after the backward pass with a tenth of "
    "the cores, which takes as long as half of what speculation hides"
)
_BATCH = "batch, length and what a TFLOP/s counts are remembered or assumed"


def adam_seconds(runs: Runs, kind: Adam, billions: int) -> float:
    """One update of so many parameters by all cores of a GH200's CPU [s]."""
    return runs.once(_update, kind, billions * 10**9)


def _update(kind: Adam, parameters: int) -> float:
    program = Program("update")
    program.add(HostWork(name="adam", kind=kind, nbytes=28 * parameters), stream="cpu")
    job = Job(name="update", programs=(program,), program_of=np.zeros(1, dtype=np.int64))
    return float(summary(simulate(load_topology("gh200"), job))["step_time_s"])


def _tflops(runs: Runs, card_has: tuple[str, ...]) -> float:
    values = {key: value for key, value in _BASE.items() if key.rpartition(".")[2] not in card_has}
    return float(runs.step(_5B, {"steps": 3, **values})["model_flops_per_gpu_per_s"]) / 1e12


def _ablation(runs: Runs) -> float:
    return _tflops(runs, _ABLATION[-1][2]) / _tflops(runs, ())


def _busy(runs: Runs, job: str) -> float:
    """Part of the step in which the GPU computes [%]."""
    step = runs.step(job, {"steps": 3})
    busy = step["breakdown_s"]["compute"] + step["breakdown_s"]["optimizer"]
    return float(100 * busy / step["step_time_s"])


def _over_zero_offload(runs: Runs) -> float:
    """Of the paper's policy over the paper's ZeRO-Offload, on one superchip."""
    before, after = (runs.step(job, {"steps": 3})["step_time_s"] for job in (_BASELINE, _5B))
    return float(before / after)


def _released_over_stage_3(runs: Runs) -> float:
    before, after = (runs.step(job, {"steps": 3})["step_time_s"] for job in (_STAGE_3, _RELEASE))
    return float(before / after)


def _hardware_tflops(runs: Runs) -> float:
    """With what is computed again, as DeepSpeed's examples count [TFLOP/s]."""
    step = runs.step(_RELEASE, {"steps": 3})
    return float(step["hfu"] * step["model_flops_per_gpu_per_s"] / step["mfu"]) / 1e12


def _largest(runs: Runs) -> float:
    """Of models of 5, 25 and 30 billion parameters on one superchip."""
    fits = [n for n in (5, 25, 30) if runs.step(_25B, {"model": f"superoffload-{n}b"})["fits"]]
    return float(max(fits))


def _superchips(runs: Runs, model: str) -> float:
    """The fewest of 1, 2 and 4 that a model takes as released, each of them with one sequence."""
    for n in (1, 2, 4):
        values = {"model": model, "nodes": n, "plan.dp": n, "global_batch": n}
        if runs.step(_FOUR, values)["fits"]:
            return float(n)
    return float("inf")


def _full_attention(runs: Runs) -> float:
    return float(100 * runs.step(_1M)["mfu_full_attention"])


def _adam(label: str, kind: Adam, published: float) -> Quantity:
    return Quantity(
        name=f"update of 8 billion parameters, {label}",
        published=published,
        unit="s",
        grade="S",
        tolerance=0.1,
        simulated=partial(adam_seconds, kind=kind, billions=8),
    )


def _fewest(label: str, model: str, published: int) -> Quantity:
    return Quantity(
        name=f"GH200 that {label} takes, of 1, 2 and 4",
        published=published,
        grade="S",
        tolerance=0.0,
        job=_FOUR,
        simulated=partial(_superchips, model=model),
    )


SUPEROFFLOAD = System(
    number="10",
    name="superoffload",
    paper="SuperOffload: Unleashing the Power of Large-Scale LLM Training on Superchips",
    year=2025,
    arxiv="2509.21271",
    slow=True,
    quantities=(
        _adam("PyTorch", "adam_torch", 1.834),
        _adam("DeepSpeed", "adam", 0.769),
        _adam("GraceAdam", "adam_tuned", 0.608),
        Quantity(
            name="largest of 5, 25 and 30 billion parameters on one GH200",
            published=25,
            grade="S",
            tolerance=0.0,
            job=_25B,
            simulated=_largest,
        ),
        Quantity(
            name="throughput over ZeRO-Offload, 5B, at most",
            published=2.5,
            unit="x",
            relation="<",
            grade="S",
            job=_5B,
            simulated=_over_zero_offload,
        ),
        *(
            Quantity(
                name=name,
                published=published,
                unit="TFLOP/s",
                grade="M-med",
                job=_5B,
                simulated=partial(_tflops, card_has=card_has),
                reason=_BATCH,
            )
            for name, published, card_has in _ABLATION
        ),
        Quantity(
            name="ablation, all over base",
            published=2.06,
            unit="x",
            grade="M-med",
            job=_5B,
            simulated=_ablation,
        ),
        Quantity(
            name="GPU busy, 5B, ZeRO-Offload",
            published=50,
            unit="%",
            grade="S",
            job=_BASELINE,
            simulated=partial(_busy, job=_BASELINE),
            reason="about 50 %, of other models",
        ),
        Quantity(
            name="GPU busy, 5B, SuperOffload",
            published=80,
            unit="%",
            relation=">",
            grade="S",
            job=_5B,
            simulated=partial(_busy, job=_5B),
        ),
        Quantity(
            name="Qwen3-14B as released, at most",
            published=600,
            unit="TFLOP/s",
            relation="<",
            grade="S",
            job=_RELEASE,
            simulated=_hardware_tflops,
        ),
        Quantity(
            name="Qwen3-14B as released, over stage 3",
            published=1.5,
            unit="x",
            grade="S",
            tolerance=0.15,
            job=_RELEASE,
            simulated=_released_over_stage_3,
            reason=_ON_ITS_WAY,
        ),
        _fewest("Qwen3-30B-A3B", "qwen3-30b-a3b", 2),
        _fewest("Seed-OSS-36B", "seed-oss-36b", 2),
        _fewest("Llama 70B", "llama-3-70b", 4),
        Quantity(
            name="MFU, 13B, a million tokens on 8 GH200",
            published=55,
            unit="%",
            grade="S",
            job=_1M,
            simulated=_full_attention,
            reason="whether FLOP of masked attention count is not known: with them 66 %, without 34 %",
        ),
    ),
)
