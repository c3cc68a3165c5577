"""The README's table of published systems says what comes out of this release, within 2 %."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import clustersim as cs
from clustersim.study.point import run_point

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SYSTEMS = README[README.index("holds published systems against") : README.index("## Kernels of one's own GPU")]
ROWS = {cells[0].strip(): cells[2] for line in SYSTEMS.splitlines() if len(cells := line.strip("|").split("|")) == 3}
GCD = 191.5e12


@cache
def summary(job: str, **changes: Any) -> Mapping[str, Any]:
    return cs.summary(run_point(cs.load_job(job).with_values(changes)))


def rate(job: str) -> float:
    """TFLOP/s a GPU, of the model."""
    return float(summary(job)["model_flops_per_gpu_per_s"]) / 1e12


def narayanan(name: str) -> float:
    """96·B·s·l·h²·(1 + s/(6h) + V/(16·l·h)), recomputation included (Narayanan et al., 2021, equation 3)."""
    job = cs.load_job(name)
    model, s, batch = cs.load_model(job.value("model")), job.value("seq_len"), job.value("global_batch")
    h, layers, vocab = model.hidden, model.num_layers, model.vocab
    return float(96 * batch * s * layers * h**2 * (1 + s / (6 * h) + vocab / (16 * layers * h)))


def percent_of_peak(name: str) -> float:
    """Of a GCD's peak; each micro-batch beyond those that fill the pipeline takes the same time."""
    job = cs.load_job(name)
    dp, few = job.value("plan.dp"), max(16, job.value("plan.pp"))
    first, second = (summary(name, global_batch=n * dp)["step_time_s"] for n in (few, few + 8))
    time = first + (job.value("global_batch") // dp - few) * (second - first) / 8
    return 100 * narayanan(name) / time / (8 * job.value("nodes")) / GCD


def loss_of_fsdp() -> float:
    few, many = (
        summary("llama-2-7b-fsdp-h100", **{"nodes": n // 8, "plan.dp": n, "global_batch": 2 * n, "steps": 2})
        for n in (128, 2048)
    )
    return 100 * (many["tokens_per_s_per_gpu"] / few["tokens_per_s_per_gpu"] - 1)


FOUND: Mapping[str, Callable[[], tuple[float, ...]]] = {
    "Llama 3 405B on 16,384 H100, 8,192 tokens": lambda: (rate("llama-3-405b-16k"),),
    "the same, 131,072 tokens, context parallelism 16": lambda: (rate("llama-3-405b-long-context"),),
    "DeepSeek-V3 on 2,048 H800, DualPipe, fp8": lambda: (summary("deepseek-v3-2048")["tokens_per_s_per_gpu"],),
    "Mixtral 8x7B on 64 H100": lambda: (rate("mixtral-8x7b-64"),),
    "BLOOM 176B on 384 A100, recomputation counted": lambda: (
        narayanan("bloom-176b-384") / summary("bloom-176b-384")["step_time_s"] / 384 / 1e12,
    ),
    "GPT 22B and 1T on Frontier, by the paper's count of FLOP, recomputation included": lambda: (
        percent_of_peak("gpt-frontier-22b-8"),
        percent_of_peak("gpt-frontier-1t-3072"),
    ),
    "Llama 2 7B under FSDP, from 128 to 2,048 H100": lambda: (loss_of_fsdp(),),
}


def test_every_row_is_computed() -> None:
    assert set(FOUND) == set(ROWS) - {"", "---"}


@pytest.mark.parametrize("row", FOUND)
def test_a_row_says_what_comes_out(row: str) -> None:
    told = [float(number.replace(",", "")) for number in re.findall(r"-?[\d,.]*\d", ROWS[row])]
    half = 0.5  # of the last digit that is printed
    assert told == [pytest.approx(value, rel=0.02, abs=half) for value in FOUND[row]()]
