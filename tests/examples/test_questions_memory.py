"""What people ask of memory, answered by the commands of docs/questions.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clustersim.library.model import load_model

Asked = Callable[[str], list[dict[str, Any]]]


def test_weights_that_are_not_partitioned(asked: Asked) -> None:
    """The estimator's 171.13 and 0.49 GiB from the bytes of the ledger; 13 to 15 GiB with whole weights."""
    split, whole = asked("DeepSpeed #4527")
    each = 4 * sum(split["resident"].values()) / load_model("llama-2-7b").num_parameters
    assert 1.5 * each * 6805e6 / 2**30 == pytest.approx(171.13, rel=0.01)
    of_weights = 4 * split["resident"]["gpu/weights"] / load_model("llama-2-7b").num_parameters
    assert 2 * of_weights * 131e6 / 2**30 == pytest.approx(0.49, rel=0.01)  # with its gradient, in the same format
    beside = whole["device"]["context_bytes"] + whole["device"]["communicator_bytes"]
    assert 13 < (whole["resident"]["gpu/weights"] + beside) / 2**30 < 15
    assert "gpu/optimizer" not in whole["resident"]


def test_bytes_a_parameter_under_zero_2(asked: Asked) -> None:
    parameters = load_model("llama-2-7b").num_parameters
    sixteen, thirty_two = asked("DeepSpeed #5099")
    assert sum(sixteen["resident"].values()) == pytest.approx(parameters * (2 + 14 / 8), rel=1e-3)
    assert (sixteen["peak_op"], sixteen["peak_bytes"]) == ("adam", pytest.approx(parameters * (2 + 18 / 8), rel=1e-3))
    assert sum(thirty_two["resident"].values()) == pytest.approx(parameters * (2 + 16 / 8), rel=1e-3)


def test_a_bucket_that_holds_all_gradients(asked: Asked) -> None:
    *held, reduced_once, reduced_each = asked("DeepSpeed #1302")
    one, two, small = (answer["peak_bytes"] for answer in held)
    assert small < one < two
    assert reduced_once["step_time_s"] < reduced_each["step_time_s"]


def test_frozen_weights_take_two_bytes_each(asked: Asked) -> None:
    model = load_model("qwen2.5-32b-lora")
    two, three = (answer["resident"] for answer in asked("OpenTau #446"))
    assert two["gpu/weights"] == pytest.approx(66e9, rel=0.02)
    assert three["gpu/weights"] == pytest.approx(8.25e9, rel=0.02)
    for held in (two, three):
        assert held["gpu/gradients"] == pytest.approx(4 * model.adapter_parameters / 8, rel=1e-6)
        assert held["gpu/optimizer"] == pytest.approx(12 * model.adapter_parameters / 8, rel=1e-6)


def test_offloading_frees_states_and_makes_no_step_faster(asked: Asked) -> None:
    """12 bytes a weight of states, and gradients in 16 bits."""
    plain, offloaded = asked("open-instruct #1228")
    freed = plain["peak_memory_bytes"]["gpu"] - offloaded["peak_memory_bytes"]["gpu"]
    assert freed == pytest.approx(14 * load_model("qwen2.5-0.5b").num_parameters, rel=0.05)
    assert offloaded["step_time_s"] > plain["step_time_s"]


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="states alone are 5.5 GiB, 28 % more than was seen to be freed; the process generates text too, with memory "
    "that its allocator keeps",
)
def test_memory_that_was_seen_to_be_freed(asked: Asked) -> None:
    plain, offloaded = asked("open-instruct #1228")
    freed = plain["peak_memory_bytes"]["gpu"] - offloaded["peak_memory_bytes"]["gpu"]
    assert freed / 2**30 == pytest.approx(4.3, rel=0.25)
