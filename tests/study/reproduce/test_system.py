"""When a number is held, and when it is within what it is held to."""

from __future__ import annotations

from typing import Any

import pytest

from clustersim.faults import BadInput
from clustersim.library.card import list_cards
from clustersim.study.reproduce import SYSTEMS, Quantity, Runs, find_system


def two(runs: Runs) -> float:
    return 2.0


def quantity(**changes: Any) -> Quantity:
    return Quantity(**{"name": "step", "published": 2.0, "unit": "s", "grade": "S", "simulated": two} | changes)


class TestQuantity:
    def test_an_error_is_relative(self) -> None:
        assert quantity().error(2.2) == pytest.approx(0.1)

    def test_an_error_of_percentages_is_in_points(self) -> None:
        assert quantity(unit="%", published=-37.22).error(-27.22) == pytest.approx(0.1)

    @pytest.mark.parametrize(("simulated", "within"), [(2.2, True), (2.3, False), (1.8, True), (1.7, False)])
    def test_within_a_tolerance(self, simulated: float, within: bool) -> None:
        assert quantity(tolerance=0.1001).within(simulated) is within

    @pytest.mark.parametrize(("relation", "within"), [("<", [True, False, False]), (">", [False, False, True])])
    def test_an_order_has_no_error(self, relation: str, within: list[bool]) -> None:
        one = quantity(relation=relation)
        assert [one.within(value) for value in (1.9, 2.0, 2.1)] == within
        assert one.error(1.9) is None

    @pytest.mark.parametrize("grade", ["M-med", "M-low"])
    def test_what_is_remembered_unsurely_is_not_held(self, grade: str) -> None:
        assert quantity(grade=grade).within(5.0) is None
        assert quantity(grade=grade, relation=">").within(5.0) is None
        with pytest.raises(ValueError, match="tolerance"):
            quantity(grade=grade, tolerance=0.1)

    def test_without_a_tolerance_nothing_is_held(self) -> None:
        assert quantity().within(2.0) is None
        assert not quantity().held

    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            ({"relation": "<", "tolerance": 0.1}, "tolerance"),
            ({"simulated": None}, "reason"),
            ({"grade": "A"}, "grade"),
            ({"relation": "~"}, "relation"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, changes: dict[str, Any], named: str) -> None:
        with pytest.raises(ValueError, match=named):
            quantity(**changes)


class TestSystems:
    def test_twenty_and_five_baselines(self) -> None:
        numbers = [*map(str, range(1, 21)), *(f"B{k}" for k in range(1, 6))]
        assert [system.number for system in SYSTEMS] == numbers
        assert len({system.name for system in SYSTEMS}) == 25

    def test_names_of_quantities_are_their_own(self) -> None:
        for system in SYSTEMS:
            assert len({one.name for one in system.quantities}) == len(system.quantities)

    def test_jobs_are_cards(self) -> None:
        jobs = {name for name, _ in list_cards()["job"]}
        assert {one.job for system in SYSTEMS for one in system.quantities} - {""} <= jobs

    def test_what_is_not_held_says_why_or_is_from_memory(self) -> None:
        for system in SYSTEMS:
            for one in system.quantities:
                assert one.held or one.reason or one.grade in ("M-med", "M-low")

    @pytest.mark.parametrize("label", ["11", "frontier", "Frontier"])
    def test_found_by_number_and_name(self, label: str) -> None:
        assert find_system(label).number == "11"

    def test_one_that_is_not_there(self) -> None:
        with pytest.raises(BadInput) as refusal:
            find_system("frontir")
        assert refusal.value.faults[0].nearest == "frontier"
