"""Words that a policy knows, of those that a key may name."""

from __future__ import annotations

import pytest

from clustersim.workload.offload import POLICIES, DeepOptimizerStates, OffloadPolicy
from clustersim.workload.offload.words import word_faults


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_own_settings_are_words_that_it_knows(policy: type[OffloadPolicy]) -> None:
    assert not list(word_faults(policy()))


def test_each_word_that_is_none_is_told() -> None:
    policy = DeepOptimizerStates(weights="nvme", cast="cpus", cast_weights="late")  # type: ignore[arg-type]
    assert [(fault.key, fault.value, fault.nearest) for fault in word_faults(policy)] == [
        ("plan.offload.cast", "cpus", "cpu"),
        ("plan.offload.weights", "nvme", "gpu"),
    ]


def test_where_a_word_may_be_left_out() -> None:
    assert not list(word_faults(OffloadPolicy(cast_weights=None)))
    (fault,) = word_faults(OffloadPolicy(cast_weights="never"))  # type: ignore[arg-type]
    assert fault.key == "plan.offload.cast_weights"
