"""The algorithms of a run: NCCL's choice, the user's by kind, an op's own."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

import clustersim as cs
from clustersim.collective.traffic import GroupShape, Phase, Traffic


def to_root_and_back(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Everything to the first member, then everything from it."""
    others, root = np.arange(1, shape.num_members), np.zeros(shape.num_members - 1, dtype=np.int64)
    whole = np.full_like(others, nbytes)
    return Traffic(
        algorithm="star",
        phases=(
            Phase(source=others, destination=root, nbytes=whole, num_steps=1),
            Phase(source=root, destination=others, nbytes=whole, num_steps=1),
        ),
        pipelined=False,
        memory_nbytes=np.zeros(shape.num_members, dtype=np.int64),
    )


def reduction(star: ModuleType, algorithm: object = None) -> cs.Job:
    """An all-reduce of 1 MB among four ranks, one a node, that join by NICs of 10 GB/s."""
    op = star.collective("all_reduce", 10**6, algorithm=algorithm)
    job: cs.Job = star.job(*[star.program(op)] * 4, families=(star.groups("dp", range(4)),))
    return job


def ns(run: cs.Result) -> int:
    return int(run.trace["end_ns"].max())


@pytest.mark.parametrize("fold", [True, False])
def test_an_algorithm_of_ones_own_takes_what_its_flows_take(star: ModuleType, fold: bool) -> None:
    cluster = star.cluster(4, 1)
    run = cs.simulate(cluster, reduction(star), algorithms={"all_reduce": to_root_and_back}, fold=fold)
    assert ns(run) == 2 * 3 * 100_000  # three flows of 1 MB into one NIC of 10 GB/s, and out of it
    assert run.inputs["algorithms"] == {"all_reduce": "to_root_and_back"}
    assert run.warnings == ()


def test_a_name_of_the_library_is_that_algorithm(star: ModuleType) -> None:
    cluster = star.cluster(4, 1)
    named = cs.simulate(cluster, reduction(star), algorithms={"all_reduce": "ring"})
    pinned = cs.simulate(cluster, reduction(star, "ring"))
    assert ns(named) == ns(pinned) == 2 * 3 * 250_000 // 10  # 2·3/4 of 1 MB
    assert ns(cs.simulate(cluster, reduction(star), algorithms={"all_reduce": "tree"})) != ns(named)


def test_an_op_that_pins_its_algorithm_keeps_it(star: ModuleType) -> None:
    run = cs.simulate(star.cluster(4, 1), reduction(star, "ring"), algorithms={"all_reduce": to_root_and_back})
    assert ns(run) == 150_000
    assert run.warnings == ("algorithms.all_reduce: no effect: no op leaves it open",)


def test_what_does_not_exist_is_named_all_at_once(star: ModuleType) -> None:
    wrong = {"all_reduce": "rings", "allgather": "ring"}
    with pytest.raises(cs.BadInput) as caught:
        cs.simulate(star.cluster(4, 1), reduction(star), algorithms=wrong)
    assert [(f.key, f.value, f.nearest) for f in caught.value.faults] == [
        ("algorithms.all_reduce", "rings", "ring"),
        ("algorithms", "allgather", "all_gather"),
    ]


def test_an_algorithm_that_cannot_do_the_kind_says_so(star: ModuleType) -> None:
    with pytest.raises(cs.BadInput, match="'all_reduce' is not a collective of direct"):
        cs.simulate(star.cluster(4, 1), reduction(star), algorithms={"all_reduce": "direct"})


def test_flows_that_cannot_be_are_refused(star: ModuleType) -> None:
    def off_by_one(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
        made = to_root_and_back(kind, nbytes, shape)
        return replace(made, phases=(replace(made.phases[0], source=np.arange(2, 5)),))

    with pytest.raises(cs.BadInput, match=r"star\.all_reduce\.phases\[0\]\.source: 4 must be a position"):
        cs.simulate(star.cluster(4, 1), reduction(star), algorithms={"all_reduce": off_by_one})
