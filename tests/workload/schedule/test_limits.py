from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import SCHEDULES, check, legal, placement_of
from clustersim.workload.schedule.limits import LIMITS

SHAPES = st.tuples(st.sampled_from(sorted(SCHEDULES)), st.integers(1, 6), st.integers(1, 3), st.integers(-1, 20))


def test_every_name_has_its_limits() -> None:
    assert LIMITS.keys() == SCHEDULES.keys()


@settings(deadline=None, max_examples=50)
@given(SHAPES)
def test_what_is_legal_runs(shape: tuple[str, int, int, int]) -> None:
    name, p, v, m = shape
    # Move to the nearest legal values; they must be legal, and closer ones must not.
    for fault in legal(name, p, v, m):
        assert isinstance(fault.nearest, int)
        if fault.key == "plan.pp":
            p = fault.nearest
        elif fault.key == "plan.vpp":
            v = fault.nearest
    for fault in legal(name, p, v, m):
        assert fault.key == "num_micro_batches"
        assert isinstance(fault.nearest, int)
        nearer = range(m + 1, fault.nearest) if fault.nearest > m else range(fault.nearest + 1, m)
        assert all(legal(name, p, v, other) for other in nearer)
        m = fault.nearest
    assert legal(name, p, v, m) == ()
    schedule = SCHEDULES[name]
    table, placement = schedule(p, v, m), placement_of(schedule, p, v)
    assert check(table, num_stages=p, num_virtual=v, num_micro_batches=m, placement=placement) == ()


def test_each_fault_names_its_rule() -> None:
    told = [str(fault) for fault in legal("dualpipe", 5, 1, 7)]
    assert told == [
        "plan.pp: 5 must be a multiple of 2 for dualpipe; nearest: 6",
        "plan.vpp: 1 must be 2 for dualpipe; nearest: 2",
        "num_micro_batches: 7 micro-batches must be a multiple of 2 and at least 10 for dualpipe on 5 stages; "
        "nearest: 10",
    ]
    assert [str(f) for f in legal("interleaved", 4, 1, 6)] == [
        "plan.vpp: 1 must be at least 2 for interleaved; nearest: 2",
        "num_micro_batches: 6 micro-batches must be a multiple of 4 for interleaved on 4 stages; nearest: 8",
    ]
