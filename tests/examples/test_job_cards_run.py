"""Every job card runs from the command line, with the batch of a filled pipeline in place of its own.

From as many micro-batches on as a schedule needs to fill its stages, memory no longer grows and each further one takes
the same time; whole batches of a thousand micro-batches are not for a test.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from clustersim.cli import main
from clustersim.library.card import list_cards
from clustersim.library.job import load_job

JOBS = [name for name, _ in list_cards()["job"]]
WAITING = {
    "datastates-llm-7b": 0.01,
    "deep-optimizer-states-7b": 0.01,
    "twinflow-opt-30b": 0.01,
    "zero-3-offload-7b": 0.01,
}
WAITING |= {"gpt2-medium-two-sites": 0.01, "zero-infinity-10b-v100": 0.01}
WAITING |= {f"{policy}-{size}": 0.001 for policy in ("zero-infinity", "mlp-offload") for size in ("40b", "70b", "120b")}
"""Jobs made to show how long a GPU waits for something slow, with the least MFU of each."""


def small_batch(name: str) -> list[str]:
    """A setting that gives each replica as many micro-batches as there are stages, in both directions of DualPipe.

    Nothing for a data-flow graph, which has no stages.
    """
    setup = load_job(name)
    if setup.value("model") is None:
        return []
    pp = setup.value("plan.pp")
    ranks = setup.value("plan.tp") * pp * setup.value("plan.cp")
    dp = setup.value("plan.dp") or 8 * setup.value("nodes") // ranks
    each = dp * setup.value("micro_batch")
    count = 2 * pp if setup.value("plan.schedule") == "dualpipe" else pp
    return ["--set", f"global_batch={min(setup.value('global_batch'), count * each)}"]


@pytest.mark.parametrize("name", JOBS)
def test_card_runs_and_fits(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", name, *small_batch(name), "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (code, answer["status"]) == (0, "ok")
    assert WAITING.get(name, 0.05) < answer["mfu"] <= answer["hfu"] < 0.8
    parts = answer["breakdown_s"]
    exposed = sum(parts["exposed_comm"].values())
    total = exposed + sum(value for value in parts.values() if not isinstance(value, dict))
    assert total == pytest.approx(answer["step_time_s"], rel=1e-6)


def test_a_sweep_keeps_what_does_not_fit(one_process: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Formats and recomputation of CharLLM-PPT over Llama 3 70B: rows out of memory stay, after those that fit."""
    vary = ["--vary", "dtype=bf16,fp8", "--vary", "plan.recompute=none,full"]
    plan = ["--set", "plan.tp=1", "--set", "plan.pp=32", "--set", "global_batch=64"]
    assert main(["run", "llama-3-70b-h100-64", *plan, *vary, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = {(row["point"]["dtype"], row["point"]["plan.recompute"]): row for row in rows}
    assert len(found) == 4
    assert [row["status"] for row in rows] == ["ok", "ok", "out_of_memory", "out_of_memory"]
    for dtype in ("bf16", "fp8"):
        kept, again = found[dtype, "none"], found[dtype, "full"]
        assert kept["status"] == "out_of_memory"
        assert again["status"] == "ok"
        assert kept["peak_memory_bytes"]["gpu"] > 80 * 2**30 > again["peak_memory_bytes"]["gpu"]
        assert kept["step_time_s"] < again["step_time_s"]
    assert found["fp8", "full"]["step_time_s"] < found["bf16", "full"]["step_time_s"]
