"""The table of settings."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter

import pytest

from clustersim.library import keys
from clustersim.library.keys import KEYS, workload_of
from clustersim.library.settings import read_settings
from clustersim.library.values import Name, Wholes


def test_defaults_and_usual_values_are_legal() -> None:
    for name, key in KEYS.items():
        for value in (key.default, key.usual):
            if value is not None:
                assert key.value.read(value) == value, name
        assert key.meaning
        assert key.default is None or key.otherwise == "none"


def test_each_setting_is_in_one_table() -> None:
    found = pkgutil.iter_modules(keys.__path__)
    modules = [importlib.import_module(f"{keys.__name__}.{each.name}") for each in found]
    tables = [getattr(module, name) for module in modules for name in module.__all__ if name.endswith("_KEYS")]
    assert Counter(name for table in tables for name in table) == Counter(list(KEYS))


def test_every_setting_that_must_be_given_has_no_default() -> None:
    required = [name for name, key in KEYS.items() if key.required]
    assert required == ["model", "topology", "global_batch", "seq_len", "graph", "graph.batch"]
    assert all(KEYS[name].default is None for name in required)


def test_settings_are_for_jobs_with_a_model_a_graph_or_both() -> None:
    kinds = {key: workload_of(key) for key in KEYS}
    assert {kinds[key] for key in ("model", "seq_len", "dtype", "plan.tp")} == {"model"}
    assert {kinds[key] for key in ("graph", "graph.devices")} == {"graph"}
    assert {kinds[key] for key in ("topology", "nodes", "steps", "seed", "fabric", "perturb.jitter")} == {""}


def test_good_and_bad_together() -> None:
    values, faults = read_settings(["plan.tp=8", "plan.tpp = 2", "seq_len=nan", "perturb.slow_ranks={3: 1.5}", "steps"])
    assert values == {"plan.tp": 8, "perturb.slow_ranks": {3: 1.5}}
    assert [(fault.key, fault.value, fault.nearest) for fault in faults] == [
        ("steps", "steps", "steps=8"),
        ("plan.tpp", "2", "plan.tp"),
        ("seq_len", "nan", 4096),
    ]


def test_the_last_of_two_counts() -> None:
    assert read_settings(["steps=1", "steps=2"]) == ({"steps": 2}, [])
    assert read_settings(["steps=x", "steps=2"]) == ({"steps": 2}, [])


@pytest.mark.parametrize("text", ["", "=", " = 8", "=8"])
def test_a_setting_without_a_key(text: str) -> None:
    values, (fault,) = read_settings([text])
    assert (values, fault.key, fault.nearest) == ({}, "--set", "plan.tp=8")


@pytest.mark.parametrize("key", [key for key, about in KEYS.items() if not isinstance(about.value, Name | Wholes)])
def test_what_is_near_nothing_is_offered_a_legal_value(key: str) -> None:
    for text in ("", "[]", "{", "nan", "-1", "wrong"):
        values, faults = read_settings([f"{key}={text}"])
        assert set(values) | {fault.key for fault in faults} == {key}
        for fault in faults:
            offered = "true" if fault.nearest is True else "false" if fault.nearest is False else fault.nearest
            assert read_settings([f"{key}={offered}"])[1] == []
