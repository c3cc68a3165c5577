"""A model that no step is written for is refused by the name of what is missing, and does not pass as a dense one."""

from dataclasses import replace

import pytest

from clustersim.faults import BadInput
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.sliding_window import SlidingWindow
from clustersim.workload.training_step import training_step
from clustersim.workload.unsupported import unsupported_parts


def test_what_is_missing_is_named(llama: Model) -> None:
    without_loss = replace(llama, head=False)
    assert unsupported_parts(llama) == ()
    assert unsupported_parts(without_loss) == ("head = false",)
    with pytest.raises(BadInput, match=r"^model: 'llama-test' cannot be simulated yet: head = false"):
        training_step(without_loss, ParallelPlan(dp=1), global_batch=1, micro_batch=1, seq_len=64)


def test_a_window_is_none_for_sequences_that_fit(llama: Model) -> None:
    model = replace(llama, window=SlidingWindow(tokens=64))
    step = training_step(model, ParallelPlan(dp=1), global_batch=1, micro_batch=1, seq_len=64)
    assert step.ledger == training_step(llama, ParallelPlan(dp=1), global_batch=1, micro_batch=1, seq_len=64).ledger
