"""Faults of an input, told together."""

from __future__ import annotations

import pytest

from clustersim.faults import BadInput, Fault, collect

ONE, TWO = (Fault(key=key, value=0, rule="must be positive") for key in ("nodes", "steps"))


def test_faults_are_noted_in_order_and_what_follows_goes_on() -> None:
    faults = [ONE]
    went_on = False
    with collect(faults):
        raise BadInput([TWO, ONE])
    with collect(faults):
        went_on = True
    assert faults == [ONE, TWO, ONE]
    assert went_on


def test_other_errors_are_not_noted() -> None:
    faults: list[Fault] = []
    with pytest.raises(KeyError), collect(faults):
        raise KeyError("nodes")
    assert faults == []
