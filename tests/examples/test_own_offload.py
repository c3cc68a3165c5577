"""The worked example of an offload policy: short, from outside, and it moves what was worked out by hand."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

import clustersim as cs

EXAMPLE = Path(__file__).with_name("own_offload.py")
OWN = SimpleNamespace(**runpy.run_path(str(EXAMPLE)))
SHARE = -(-cs.load_model("llama-2-7b").num_parameters // 8)


@pytest.fixture(scope="module")
def run() -> cs.Result:
    result: cs.Result = OWN.step(OWN.ThreeTiers())
    return result


def test_it_prints_three_lines(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["none", "own", "three tiers"]
    assert "nvme" in lines[2]
    assert "nvme" not in lines[1]
    assert "host_pinned" not in lines[0]
    seconds = [float(re.findall(r"[\d.]+(?= s)", line)[0]) for line in lines]
    assert seconds[0] < min(seconds[1:])


def test_the_policy_has_at_most_forty_lines() -> None:
    text = EXAMPLE.read_text()
    policy = text[text.index("@dataclass") : text.index("def step")]
    assert len([line for line in policy.splitlines() if line.strip()]) <= 40


def test_states_are_counted_once_wherever_they_are(run: cs.Result) -> None:
    """12 bytes of state a parameter over all tiers but for what the GPU keeps: there also 12 under bf16 and Adam."""
    resident = run.record.lanes[0].arrays.resident
    states = sum(resident.get(f"{tier}/optimizer", 0) for tier in ("gpu", "host_pinned", "nvme"))
    assert states == pytest.approx(12 * SHARE, rel=1e-6)
    assert all(resident[f"{tier}/optimizer"] for tier in ("gpu", "host_pinned", "nvme"))


def test_what_is_on_drives_is_read_and_written_once_a_step(run: cs.Result) -> None:
    on_drives = run.record.lanes[0].arrays.resident["nvme/optimizer"]
    trace = run.trace
    for stream in ("nvme_read", "nvme_write"):
        moved = trace[(trace["stream"] == stream) & (trace["step"] == 1)]["nbytes"].sum()
        assert moved == on_drives
