"""The ledger of bytes, held against counting instant by instant."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.analysis import memory
from clustersim.analysis.peak import peak, peak_together


def test_an_activation_is_held_from_forward_to_backward(scene):
    lane = scene.lane()
    lane.program.resident["gpu/weights"] = 100
    lane.add(scene.compute("forward"), (0, 0, 10), end_bytes={"gpu/activations": 40})
    lane.add(
        scene.compute("backward"),
        (10, 10, 30),
        start_bytes={"gpu/workspace": 5},
        end_bytes={"gpu/activations": -40, "gpu/workspace": -5},
    )
    top = peak(lane.freeze())["gpu"]
    assert (top.nbytes, top.op) == (145, 1)
    assert top.by_category == {"weights": 100, "activations": 40, "workspace": 5}


def test_what_ends_at_an_instant_is_freed_before_what_starts(scene):
    lane = scene.lane()
    for k in range(3):
        lane.add(scene.compute(), (k, k, k + 1), start_bytes={"gpu/workspace": 10}, end_bytes={"gpu/workspace": -10})
    assert peak(lane.freeze())["gpu"].nbytes == 10


def test_resident_bytes_alone_have_no_op(scene):
    lane = scene.lane()
    lane.program.resident["host_pinned/optimizer"] = 7
    lane.add(scene.compute(), (0, 0, 1), start_bytes={"gpu/workspace": 3})
    peaks = peak(lane.freeze())
    assert (peaks["host_pinned"].nbytes, peaks["host_pinned"].op) == (7, -1)
    assert (peaks["gpu"].nbytes, peaks["gpu"].op) == (3, 0)


def test_bytes_carry_over_steps(scene):
    lane = scene.lane()
    lane.add(scene.compute(), (0, 0, 10), (10, 10, 20), end_bytes={"gpu/cache": 4})
    top = peak(lane.freeze())["gpu"]
    assert (top.nbytes, top.op) == (8, 1)


def test_ops_that_never_started_hold_nothing(scene):
    lane = scene.lane()
    lane.add(scene.compute(), (0, 0, -1), start_bytes={"gpu/workspace": 4}, end_bytes={"gpu/workspace": -4})
    lane.add(scene.compute(), (-1, -1, -1), start_bytes={"gpu/workspace": 9})
    assert peak(lane.freeze())["gpu"].nbytes == 4


def test_a_program_without_bytes_has_no_peak(scene):
    lane = scene.lane()
    lane.add(scene.compute(), (0, 0, 1))
    assert peak(lane.freeze()) == {}


def test_ranks_that_share_a_store_add_up_at_each_instant(scene):
    early, late = scene.lane(rank=0), scene.lane(rank=1)
    early.add(scene.copy(), (0, 0, 10), start_bytes={"host_pinned/buffer": 6}, end_bytes={"host_pinned/buffer": -6})
    late.add(scene.copy(), (5, 5, 20), start_bytes={"host_pageable/buffer": 5}, end_bytes={"host_pageable/buffer": -5})
    lanes = [early.freeze(), late.freeze()]
    top = peak_together(lanes, lambda tier: "host")["host"]
    assert (top.nbytes, top.lane, top.op) == (11, 1, 0)
    assert top.by_category == {"buffer": 11}
    assert peak_together([lanes[0], lanes[0]])["host_pinned"].nbytes == 12


spans = st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(-9, 9), st.integers(-9, 9))


@settings(deadline=None)
@given(st.lists(spans, min_size=1, max_size=8), st.integers(0, 20))
def test_peak_and_timeline_agree_with_counting(new_scene, rows, resident):
    scene = new_scene()
    lane = scene.lane()
    lane.program.resident["gpu/weights"] = resident
    for start, lasts, first, last in rows:
        lane.add(
            scene.compute(), (start, start, start + lasts), start_bytes={"gpu/a": first}, end_bytes={"gpu/a": last}
        )

    level, highest, after = resident, resident, {0: 0}
    for instant in range(20):
        level += sum(last for start, lasts, _, last in rows if start + lasts == instant)
        highest = max(highest, level)
        level += sum(first for start, _, first, _ in rows if start == instant)
        highest = max(highest, level)
        after[instant] = level - resident
    top = peak(lane.freeze())["gpu"]
    assert top.nbytes == highest == sum(top.by_category.values())

    table = memory(scene.record())
    held = table[table["category"] == "a"].set_index("time_ns")["nbytes"]
    assert held.index.is_monotonic_increasing
    assert held.index.is_unique
    assert {k: after[k] for k in held.index} == held.to_dict()
    assert held.iloc[-1] == after[19]


def test_timelines_of_a_tier_and_of_all_are_sums(scene):
    lane = scene.lane()
    lane.program.resident |= {"gpu/weights": 10, "nvme/optimizer": 50}
    moves = {"gpu/buffer": 8, "host_pinned/buffer": 4}
    lane.add(scene.copy(), (0, 5, 10), start_bytes=moves, end_bytes={key: -nbytes for key, nbytes in moves.items()})
    lane.add(scene.copy(), (10, 10, 20), end_bytes={"gpu/weights": 1})

    def steps(by):
        table = memory(scene.record(), by=by)
        assert set(table["category"]) == {"all"}
        return {t: list(zip(g["time_ns"], g["nbytes"], strict=True)) for t, g in table.groupby("tier", observed=True)}

    assert steps("tier") == {
        "gpu": [(0, 10), (5, 18), (10, 10), (20, 11)],
        "host_pinned": [(0, 0), (5, 4), (10, 0)],
        "nvme": [(0, 50)],
    }
    assert steps("all") == {"all": [(0, 60), (5, 72), (10, 60), (20, 61)]}
    with pytest.raises(ValueError, match="by: 'stage' must be"):
        memory(scene.record(), by="stage")


def test_timeline_names_rank_tier_and_category(scene):
    lane = scene.lane(rank=3, multiplicity=2)
    lane.program.resident["nvme/optimizer"] = 50
    lane.add(scene.drive(), (0, 5, 10), start_bytes={"gpu/buffer": 8})
    table = memory(scene.run())
    assert list(table.columns) == ["run", "rank", "multiplicity", "tier", "category", "time_ns", "nbytes"]
    rows = {
        (t, c): list(zip(g["time_ns"], g["nbytes"], strict=True))
        for (t, c), g in table.groupby(["tier", "category"], observed=True)
    }
    assert rows == {("gpu", "buffer"): [(0, 0), (5, 8)], ("nvme", "optimizer"): [(0, 50)]}
    assert set(table["rank"]) == {3}
    assert set(table["multiplicity"]) == {2}
    assert len(memory(scene.record())) == len(table)
