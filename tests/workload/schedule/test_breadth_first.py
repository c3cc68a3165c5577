from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import Unit, breadth_first, ideal, loop


def test_chunk_by_chunk() -> None:
    row = "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0"
    assert [" ".join(map(str, row)) for row in breadth_first(2, 2, 2)] == [row, row]


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 9), st.integers(1, 5), st.integers(1, 5))
def test_the_bubble_shrinks_with_the_chunks(p: int, v: int, more: int, f: int, b: int) -> None:
    m = p + more
    found = ideal(breadth_first(p, v, m), loop(p, v), forward=f, backward_input=b, backward_weight=0)
    # Chunks of 1/v of the stage: (p - 1)(F + B)/v of whole stages.
    assert found.makespan == m * v * (f + b) + (p - 1) * (f + b)
    assert found.peaks() == (m * v,) * p


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 6), st.integers(2, 4), st.data())
def test_fewer_micro_batches_than_stages_wait_for_each_chunk(p: int, v: int, data: st.DataObject) -> None:
    m = data.draw(st.integers(1, p))
    found = ideal(breadth_first(p, v, m), loop(p, v), forward=1, backward_input=1, backward_weight=0)
    assert found.makespan == 2 * (p * v + m - 1)


def test_gradients_of_a_chunk_are_complete_early() -> None:
    found = ideal(breadth_first(4, 4, 8), loop(4, 4), forward=1, backward_input=1, backward_weight=1)
    backwards = [(s.entry.chunk, s.end) for s in found.rows[0] if isinstance(s.entry, Unit) and s.entry.kind == "B"]
    ends = [max(end for chunk, end in backwards if chunk == c) for c in range(4)]
    assert ends == sorted(ends, reverse=True)
    assert ends[3] == found.makespan - 3 * 8 * 2
