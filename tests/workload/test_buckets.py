from hypothesis import given
from hypothesis import strategies as st

from clustersim.workload.buckets import buckets, default_bucket_parameters


def test_closed_by_the_block_that_fills_it() -> None:
    found = buckets([5, 0, 4, 3, 10], at_least=8)
    assert [(b.first_block, b.blocks, b.parameters) for b in found] == [(4, (4,), 10), (0, (3, 2, 0), 12)]


def test_what_is_left_over_is_the_last_bucket() -> None:
    assert [b.parameters for b in buckets([1, 9, 9], at_least=9)] == [9, 9, 1]


@given(st.lists(st.integers(0, 20), max_size=30), st.one_of(st.none(), st.integers(1, 50)))
def test_every_parameter_once(parameters: list[int], at_least: int | None) -> None:
    found = buckets(parameters, at_least=at_least)
    blocks = [b for bucket in found for b in bucket.blocks]
    assert blocks == [b for b in reversed(range(len(parameters))) if parameters[b]]
    assert [b.parameters for b in found] == [sum(parameters[i] for i in b.blocks) for b in found]
    assert all(b.first_block == min(b.blocks) for b in found)
    if at_least is None:
        assert len(found) <= 1
    else:
        assert all(b.parameters >= at_least for b in found[:-1])


def test_megatron_s_rule() -> None:
    assert default_bucket_parameters(8) == 40_000_000
    assert default_bucket_parameters(128) == 128_000_000
