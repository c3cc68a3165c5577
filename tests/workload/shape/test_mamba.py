"""Mamba mixers against lists of tensors as checkpoints name them."""

from math import prod
from typing import Any

import pytest

from clustersim.workload.shape.mamba import Mamba

FIRST = Mamba(version=1, inner=8, state=3, conv=4, dt_rank=2)
SECOND = Mamba(version=2, inner=8, state=3, conv=4, head_dim=4, groups=2)

H = 5


def test_the_first() -> None:
    tensors = {
        "in_proj.weight": (16, H),
        "conv1d.weight": (8, 1, 4),
        "conv1d.bias": (8,),
        "x_proj.weight": (2 + 2 * 3, 8),
        "dt_proj.weight": (8, 2),
        "dt_proj.bias": (8,),
        "A_log": (8, 3),
        "D": (8,),
        "out_proj.weight": (H, 8),
    }
    assert FIRST.parameters(H) == sum(map(prod, tensors.values()))
    assert FIRST.num_heads == 0


def test_the_second() -> None:
    tensors = {
        "in_proj.weight": (2 * 8 + 2 * 2 * 3 + 2, H),
        "conv1d.weight": (8 + 2 * 2 * 3, 1, 4),
        "conv1d.bias": (8 + 2 * 2 * 3,),
        "dt_bias": (2,),
        "A_log": (2,),
        "D": (2,),
        "norm.weight": (8,),
        "out_proj.weight": (H, 8),
    }
    assert SECOND.parameters(H) == sum(map(prod, tensors.values()))
    assert SECOND.num_heads == 2


def test_biases() -> None:
    bare = Mamba(version=2, inner=8, state=3, conv=4, head_dim=4, groups=2, conv_bias=False, bias=True)
    assert bare.parameters(H) == SECOND.parameters(H) - 20 + 30 + H


def test_matrices_hold_all_but_small_vectors() -> None:
    assert FIRST.matrices(H)["mamba_select"] == (8, 8)
    assert SECOND.matrices(H) == {"mamba_in": (H, 30), "mamba_out": (8, H)}


def test_the_scan_costs_seven_flop_a_number_of_state() -> None:
    # Step by step, as the recurrence is written down: counted over a loop, not from the formula.
    flops = 0
    for _channel in range(FIRST.inner):
        for _state in range(FIRST.state):
            flops += 1  # Δ·A
            flops += 2  # Δ·B·x
            flops += 2  # decay and sum
            flops += 2  # C·state, summed
    assert FIRST.scan_flops == flops


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, "version: 3 must be 1 or 2"),
        ({"dt_rank": 0}, "dt_rank: 0 must be a whole number from 1"),
        ({"groups": 2}, "groups: 2 must be 0 in version 1"),
        ({"version": 2, "groups": 1, "head_dim": 3, "dt_rank": 0}, "head_dim: 3 must divide the 8 channels"),
        ({"version": 2, "groups": 1, "head_dim": 4}, "dt_rank: 2 must be 0 in version 2"),
    ],
)
def test_contradictions(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        Mamba(**({"version": 1, "inner": 8, "state": 3, "dt_rank": 2} | change))
