"""Settings of offload policies."""

from __future__ import annotations

from dataclasses import fields

from clustersim.library.keys.offload import OFFLOAD_KEYS
from clustersim.workload.offload import POLICIES


def test_every_field_of_every_policy_is_a_setting_and_no_other_is() -> None:
    known = {f"plan.offload.{field.name}" for kind in POLICIES.values() for field in fields(kind)}
    assert known | {"plan.offload.policy"} == set(OFFLOAD_KEYS)


def test_defaults_are_legal_values_of_their_settings() -> None:
    for kind in POLICIES.values():
        for field in fields(kind):
            given = getattr(kind(), field.name)
            value = OFFLOAD_KEYS[f"plan.offload.{field.name}"].value
            assert given is None or value.read(given) == given, (kind.name, field.name)
