"""A policy that contradicts itself is refused with every fault."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from clustersim.faults import BadInput
from clustersim.workload.offload import OffloadPolicy, Place, Subgroup
from clustersim.workload.offload.coherent import require_coherent

HOME = Place()
SUBGROUP = Subgroup(index=3, count=5, axis="dp", chunk=0, parts=((0, 10),))


@dataclass(frozen=True, kw_only=True)
class Answers(OffloadPolicy):
    """As given."""

    where: Place = HOME
    who: str = "cpu"
    when: str = "norm"

    def place(self, subgroup: Subgroup) -> Place:
        return self.where

    def tier(self, subgroup: Subgroup) -> str:  # type: ignore[override]
        return self.who

    def depends(self, subgroup: Subgroup) -> str:  # type: ignore[override]
        return self.when


def test_the_cpu_works_on_what_is_off_the_gpu() -> None:
    with pytest.raises(BadInput) as error:
        require_coherent(Answers(where=Place(gradients="gpu", states="gpu")), SUBGROUP)
    assert [fault.key for fault in error.value.faults] == ["plan.offload.place.gradients", "plan.offload.place.states"]
    require_coherent(Answers(where=Place(gradients="gpu", states="gpu"), who="gpu"), SUBGROUP)


def test_words_that_are_none() -> None:
    with pytest.raises(BadInput) as error:
        require_coherent(Answers(who="dpu", when="soon"), SUBGROUP)
    assert [(fault.key, fault.value) for fault in error.value.faults] == [
        ("plan.offload.tier", "dpu"),
        ("plan.offload.depends", "soon"),
    ]
    assert all("subgroup 3" in fault.rule for fault in error.value.faults)
