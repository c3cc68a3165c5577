"""MLP-Offload and ZeRO-3 with its optimizer on NVMe, from 40 to 120 billion parameters on four H100 (Maurya et al.).

Times are those of the artefact's logs and of its README; what they call 40B to 120B has 48.2, 68.6 and 106.7 billion
parameters. The baseline's gradients of two further sizes follow from the rate at which they were flushed. What an
iteration of MLP-Offload takes beside its forward pass and update is the backward pass, and half a second that the
baseline's logs also have in no timer. Rates of the drive and of the file system are recalled from the paper.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System

__all__ = ["MLP_OFFLOAD", "phase"]

_LABELS = {"zero-infinity": "ZeRO-3 + NVMe", "mlp-offload": "MLP-Offload"}

Phase = Literal["iteration", "forward", "backward", "update", "swap_in", "swap_out"]

_FLUSH = (
    "gradients went to the drive at 6.7 GB/s in this run, beyond its 5.3 GB/s; in those of other sizes at 4.9 to 6.3. "
    "The backward pass lasts until two of its three sets of buffers are written"
)
_WAITS = (
    "not held: a rank's waits by its own clock. In the logs the baseline waits for reads at 70B and for writes at 40B, "
    "of the same program; here each rank waits for reads at any size, and writes end behind the next reads"
)
_TOLERANCES: dict[Phase, float] = {"iteration": 0.12, "forward": 0.15, "backward": 0.25, "update": 0.12}


def phase(runs: Runs, job: str, what: Phase, **values: object) -> float:
    """A phase of a job's step in the steady state, the update with all that it waits for [s]."""
    found = runs.step(job, {key.replace("__", "."): value for key, value in values.items()})
    seconds = found["phases_s"]
    if what == "iteration":
        return float(found["step_time_s"])
    if what == "update":
        return float(sum(seconds[name] for name in ("swap_in", "update", "swap_out", "wait")))
    return float(seconds[what])


def _speed_up(runs: Runs, size: str) -> float:
    before, after = (phase(runs, f"{policy}-{size}", "iteration") for policy in ("zero-infinity", "mlp-offload"))
    return before / after


def _one(policy: str, size: str, what: Phase, published: float, reason: str = "") -> Quantity:
    job = f"{policy}-{size}"
    return Quantity(
        name=f"{what}, {_LABELS[policy]}, {size.upper()}",
        published=published,
        unit="s",
        grade="S",
        tolerance=_TOLERANCES[what],
        job=job,
        simulated=partial(phase, job=job, what=what),
        reason=reason,
    )


def _beside(runs: Runs, job: str) -> float:
    """What is neither forward pass nor update [s]."""
    return phase(runs, job, "iteration") - phase(runs, job, "forward") - phase(runs, job, "update")


def _rest(size: str, published: float) -> Quantity:
    return Quantity(
        name=f"iteration without forward and update, MLP-Offload, {size.upper()}",
        published=published,
        unit="s",
        grade="D",
        tolerance=_TOLERANCES["backward"],
        job=f"mlp-offload-{size}",
        simulated=partial(_beside, job=f"mlp-offload-{size}"),
    )


def _wait(policy: str, size: str, what: Literal["swap_in", "swap_out"], published: float) -> Quantity:
    job = f"{policy}-{size}"
    return Quantity(
        name=f"wait for {'reads' if what == 'swap_in' else 'writes'}, {_LABELS[policy]}, {size.upper()}",
        published=published,
        unit="s",
        grade="S",
        job=job,
        simulated=partial(phase, job=job, what=what),
        reason=_WAITS,
    )


def _gain(size: str, published: float) -> Quantity:
    return Quantity(
        name=f"speed-up, {size.upper()}",
        published=published,
        unit="x",
        grade="S",
        tolerance=0.10,
        job=f"mlp-offload-{size}",
        simulated=partial(_speed_up, size=size),
    )


def _flush(size: str, published: float) -> Quantity:
    return Quantity(
        name=f"backward, ZeRO-3 + NVMe, {size.upper()}, from its flush rate",
        published=published,
        unit="s",
        grade="D",
        tolerance=_TOLERANCES["backward"],
        job="zero-infinity-70b",
        simulated=partial(phase, job="zero-infinity-70b", what="backward", model=f"mlp-offload-{size}"),
    )


MLP_OFFLOAD = System(
    number="2",
    name="mlp-offload",
    paper="MLP-Offload: Multi-Level, Multi-Path Offloading for LLM Pre-training to Break the GPU Memory Wall",
    year=2025,
    arxiv="2509.02480",
    quantities=(
        _one("zero-infinity", "40b", "iteration", 242.28),
        _one("zero-infinity", "40b", "forward", 0.654),
        _one("zero-infinity", "40b", "backward", 27.47),
        _one("zero-infinity", "40b", "update", 213.61),
        _one("mlp-offload", "40b", "iteration", 101.72),
        _one("mlp-offload", "40b", "forward", 0.640),
        _one("mlp-offload", "40b", "update", 98.51),
        _rest("40b", 2.57),
        _gain("40b", 2.38),
        _one("zero-infinity", "70b", "iteration", 370.56),
        _one("zero-infinity", "70b", "forward", 0.766),
        _one("zero-infinity", "70b", "backward", 32.91, _FLUSH),
        _one("zero-infinity", "70b", "update", 336.43),
        _one("mlp-offload", "70b", "iteration", 151.34),
        _one("mlp-offload", "70b", "forward", 0.771),
        _one("mlp-offload", "70b", "update", 147.18),
        _rest("70b", 3.39),
        _gain("70b", 2.45),
        Quantity(
            name="iteration, MLP-Offload without its locks, 70B",
            published=152.77,
            unit="s",
            grade="S",
            tolerance=0.12,
            job="mlp-offload-70b",
            simulated=partial(phase, job="mlp-offload-70b", what="iteration", plan__offload__lock=False),
        ),
        _wait("zero-infinity", "40b", "swap_in", 57.9),
        _wait("zero-infinity", "40b", "swap_out", 153.4),
        _wait("zero-infinity", "70b", "swap_in", 324.7),
        _wait("zero-infinity", "70b", "swap_out", 7.2),
        _wait("mlp-offload", "70b", "swap_in", 125.1),
        _wait("mlp-offload", "70b", "swap_out", 17.9),
        _one("zero-infinity", "120b", "iteration", 550.36),
        _one("zero-infinity", "120b", "forward", 1.166),
        _one("zero-infinity", "120b", "backward", 73.19),
        _one("zero-infinity", "120b", "update", 475.48),
        _one("mlp-offload", "120b", "iteration", 288.18),
        _one("mlp-offload", "120b", "forward", 1.161),
        _one("mlp-offload", "120b", "update", 282.33),
        _rest("120b", 4.69),
        _gain("120b", 1.91),
        _flush("52b", 28.1),
        _flush("100b", 68.3),
    ),
)
