"""The worked example of a sharding: it runs, holds and moves what was worked out by hand."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

import clustersim as cs

EXAMPLE = Path(__file__).with_name("own_sharding.py")
OWN = SimpleNamespace(**runpy.run_path(str(EXAMPLE)))
PARAMETERS = cs.load_model("llama-2-7b").num_parameters


@pytest.fixture(scope="module")
def run() -> cs.Result:
    result: cs.Result = OWN.step(4, sharding=OWN.state_over_all)
    return result


def test_it_prints_three_lines(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    seconds, memory = zip(*(map(float, re.findall(r"[\d.]+(?= s| GiB)", line)) for line in lines), strict=True)
    assert [line.partition(":")[0] for line in lines] == ["FSDP", "HSDP", "own"]
    assert memory[0] < memory[2] < memory[1]
    assert all(second > 0 for second in seconds)


def test_memory(run: cs.Result) -> None:
    """2 bytes of weight and 4 of gradient over the node, 12 of state over all 32."""
    resident = run.record.lanes[0].arrays.resident
    assert resident["gpu/weights"] == pytest.approx(2 * PARAMETERS / 8, rel=1e-6)
    assert resident["gpu/gradients"] == pytest.approx(4 * PARAMETERS / 8, rel=1e-6)
    assert resident["gpu/optimizer"] == pytest.approx(12 * PARAMETERS / 32, rel=1e-6)


def test_volume(run: cs.Result) -> None:
    trace = run.trace_of([0])
    moved = trace[trace["category"] == "communication"].groupby(["stream", "kind"], observed=True)["nbytes"].sum() / 2
    assert moved["dp_inner", "all_gather"] == pytest.approx(2 * 2 * PARAMETERS, rel=1e-5)
    assert moved["dp_inner", "reduce_scatter"] == pytest.approx(4 * PARAMETERS, rel=1e-5)
    assert moved["dp_outer", "reduce_scatter"] == pytest.approx(4 * PARAMETERS / 8, rel=1e-5)
    assert moved["dp_outer", "all_gather"] == pytest.approx(2 * PARAMETERS / 8, rel=1e-5)


def test_its_name_is_in_the_result(run: cs.Result) -> None:
    assert cs.summary(run)["plan"]["sharding"] == "state_over_all"


def test_a_strategy_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(cs.BadInput, match=r"plan.sharding.*inner: 8 must divide the 12 ranks"):
        cs.training_step(
            cs.load_model("llama-2-7b"),
            cs.ParallelPlan(dp=12, sharding=OWN.state_over_all),
            global_batch=12,
            micro_batch=1,
            seq_len=4096,
        )
