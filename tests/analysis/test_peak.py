"""Peaks of ranks that share a store, with as many equal ranks as there are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.analysis.peak import peak_together

spans = st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(0, 9), st.sampled_from(["gpu/a", "nvme/b"]))


@settings(deadline=None)
@given(st.lists(st.tuples(st.lists(spans, max_size=4), st.integers(1, 3)), min_size=1, max_size=3), st.integers(0, 9))
def test_a_lane_with_a_count_is_as_many_lanes(new_scene, classes, beside):
    scene = new_scene()
    lanes = []
    for k, (rows, _) in enumerate(classes):
        lane = scene.lane(rank=k)
        lane.program.resident["gpu/weights"] = k
        lane.add(scene.compute(), (0, 0, 1))
        for start, lasts, nbytes, key in rows:
            lane.add(scene.copy(), (start, start, start + lasts), start_bytes={key: nbytes}, end_bytes={key: -nbytes})
        lanes.append(lane.freeze())
    counts = [count for _, count in classes]
    several = [lane for lane, count in zip(lanes, counts, strict=True) for _ in range(count)]
    counted = peak_together(lanes, counts=counts, beside={"nvme/pool": beside})
    one_by_one = peak_together(several, beside={"nvme/pool": beside})
    for tier, top in one_by_one.items():
        assert (counted[tier].nbytes, counted[tier].held) == (top.nbytes, top.held)
        assert sum(top.by_category.values()) == sum(top.by_tier.values()) == top.nbytes


def test_what_is_resident_alone_is_owned_by_who_holds_most_of_it(scene):
    lanes = []
    for rank, nbytes in enumerate((4, 9, 6)):
        lane = scene.lane(rank=rank)
        lane.program.resident["host_pinned/optimizer"] = nbytes
        lane.add(scene.compute(), (0, 0, 1))
        lanes.append(lane.freeze())
    top = peak_together(lanes, lambda tier: "host", counts=[3, 1, 1])["host"]
    assert (top.nbytes, top.op, top.lane) == (27, -1, 0)
    assert peak_together(lanes)["host_pinned"].lane == 1
