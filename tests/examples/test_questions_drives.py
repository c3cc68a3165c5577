"""What people ask of drives, answered by the commands of docs/questions.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Asked = Callable[[str], list[dict[str, Any]]]

TERMS = ("forward", "backward", "swap_in", "update", "swap_out", "wait")


def test_ten_billion_weights_on_slow_drives(asked: Asked) -> None:
    """1.5 to 4 TFLOP/s without overlap, above 15 with it and with bandwidth; the gap is exposed copies."""
    slow, ahead, fast = asked("DeepSpeed #1130")
    rates = [found["model_flops_per_gpu_per_s"] / 1e12 for found in (slow, ahead, fast)]
    assert 1.5 < rates[0] < rates[1] < 4
    assert rates[2] > 15
    gap = slow["step_time_s"] - fast["step_time_s"]
    copies = slow["breakdown_s"]["exposed_copy"] - fast["breakdown_s"]["exposed_copy"]
    assert copies > 0.95 * gap


def test_the_terms_of_a_step_add_up(asked: Asked) -> None:
    """Within 1 %, for 10 and about 50 billion weights, with the part of reads and writes that is hidden."""
    for found in asked("DeepSpeed #2034"):
        terms = found["phases_s"]
        assert sum(terms[name] for name in TERMS) == pytest.approx(found["step_time_s"], rel=0.01)
        assert terms["swap_in"] > terms["forward"] + terms["update"]
        for way in ("swap_in", "swap_out"):
            assert 0 <= terms[f"{way}_overlapped"] <= 1
