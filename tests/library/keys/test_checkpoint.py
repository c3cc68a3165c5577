"""Settings of checkpoints."""

from __future__ import annotations

from dataclasses import fields

import pytest

from clustersim.faults import BadInput
from clustersim.library.job import JobSetup
from clustersim.library.keys.checkpoint import CHECKPOINT_KEYS
from clustersim.study.point import prepare
from clustersim.workload.checkpoint import STRATEGIES


def test_every_field_of_every_strategy_is_a_setting_and_no_other_is() -> None:
    known = {f"plan.checkpoint.{field.name}" for kind in STRATEGIES.values() for field in fields(kind)}
    assert known | {"plan.checkpoint.policy"} == set(CHECKPOINT_KEYS)


def test_defaults_are_legal_values_of_their_settings() -> None:
    for kind in STRATEGIES.values():
        for field in fields(kind):
            given = getattr(kind(), field.name)
            value = CHECKPOINT_KEYS[f"plan.checkpoint.{field.name}"].value
            assert given is None or value.read(given) == given, (kind.name, field.name)


def test_a_setting_that_a_strategy_has_not_is_named() -> None:
    setup = JobSetup.of("t", model="gpt2", topology="polaris", global_batch=16, seq_len=128)
    with pytest.raises(BadInput) as error:
        prepare(setup.with_values({"plan.checkpoint.policy": "synchronous", "plan.checkpoint.pool_bytes": 10**9}))
    assert [fault.key for fault in error.value.faults] == ["plan.checkpoint.pool_bytes"]
    with pytest.raises(BadInput) as error:
        prepare(setup.with_values({"plan.checkpoint.every": 10}))
    assert [fault.key for fault in error.value.faults] == ["plan.checkpoint.policy"]
    with pytest.raises(BadInput) as error:
        prepare(setup.with_values({"plan.checkpoint.policy": "lasy"}))
    assert [fault.nearest for fault in error.value.faults] == ["lazy"]
