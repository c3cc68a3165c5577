"""Boxes stand where the kernels of their units do; a row a stage."""

from __future__ import annotations

import pandas as pd
import pytest

from clustersim import plot
from clustersim.workload.schedule import dualpipe, ideal, interleaved, one_f_one_b, placement_of, zb_h1

MS = 10**6
COLUMNS = ("rank", "phase", "micro_batch", "stage", "start_ns", "end_ns")


def trace_of(*ops: tuple[int, str, int, int, float, float], step: int = 0) -> pd.DataFrame:
    table = pd.DataFrame(ops, columns=COLUMNS)
    table[["start_ns", "end_ns"]] = (table[["start_ns", "end_ns"]] * MS).astype("int64")
    return table.assign(step=step, category=table["phase"].where(table["phase"] == "optimizer", "compute"))


def boxes(ax):
    """By label: (left, right, top, bottom) of each box."""
    found = {}
    for collection in ax.collections:
        extents = [path.get_extents() for path in collection.get_paths()]
        found[collection.get_label()] = sorted((b.x0, b.x1, round(b.y0, 2), round(b.y1, 2)) for b in extents)
    return found


def rows(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


TWO_STAGES = trace_of(
    (0, "forward", 0, 0, 10, 11),
    (0, "forward", 0, 0, 12, 13),
    (0, "backward", 0, 0, 20, 24),
    (0, "optimizer", -1, -1, 24, 25),
    (1, "forward", 0, 1, 13, 16),
    (1, "backward", 0, 1, 16, 20),
)


def test_a_unit_is_one_box_from_its_first_kernel_to_its_last():
    ax = plot.pipeline(TWO_STAGES)
    assert boxes(ax) == {
        "forward": [(0, 3, 0.08, 0.92), (3, 6, 1.08, 1.92)],
        "backward": [(6, 10, 1.08, 1.92), (10, 14, 0.08, 0.92)],
        "optimizer": [(14, 15, 0.08, 0.92)],
    }
    assert rows(ax) == ["stage 0 (rank 0)", "stage 1 (rank 1)"]
    assert ax.get_xlabel() == "time since the first kernel of step 0 [ms]"
    assert [t.get_text() for t in ax.texts] == ["0"] * 4
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["forward", "backward", "optimizer"]


def test_time_is_in_the_unit_that_suits_the_step():
    long = TWO_STAGES.assign(start_ns=TWO_STAGES["start_ns"] * 1000, end_ns=TWO_STAGES["end_ns"] * 1000)
    ax = plot.pipeline(long)
    assert ax.get_xlabel() == "time since the first kernel of step 0 [s]"
    assert boxes(ax) == boxes(plot.pipeline(TWO_STAGES))


def test_communication_and_other_phases_are_left_out():
    extra = trace_of((0, "forward", 0, 0, 13, 19), (0, "loading", 0, 0, 0, 1))
    extra.loc[0, "category"] = "communication"
    assert boxes(plot.pipeline(pd.concat([TWO_STAGES, extra]))) == boxes(plot.pipeline(TWO_STAGES))


def test_a_unit_is_split_where_another_stands_between():
    ax = plot.pipeline(
        trace_of(
            (0, "forward", 1, 0, 0, 2),
            (0, "backward weight", 0, 0, 2, 3),
            (0, "forward", 1, 0, 3, 4),
            (0, "backward input", 1, 0, 4, 6),
        )
    )
    assert boxes(ax) == {
        "forward": [(0, 2, 0.08, 0.92), (3, 4, 0.08, 0.92)],
        "backward, weights": [(2, 3, 0.08, 0.92)],
        "backward, input": [(4, 6, 0.08, 0.92)],
    }


def test_units_that_alternate_share_the_row():
    ax = plot.pipeline(
        trace_of(
            (0, "forward", 1, 0, 0, 1),
            (0, "backward", 0, 0, 1, 2),
            (0, "forward", 1, 0, 2, 3),
            (0, "backward", 0, 0, 3, 5),
            (0, "backward", 1, 0, 5, 6),
        )
    )
    assert boxes(ax) == {
        "forward": [(0, 3, 0.08, 0.5)],
        "backward": [(1, 5, 0.5, 0.92), (5, 6, 0.08, 0.92)],
    }


def test_one_rank_of_each_stage_in_the_order_of_the_model():
    replicas = [
        (rank, "forward", 0, stage, 10 * stage, 10 * stage + 5) for rank, stage in ((3, 0), (1, 1), (2, 0), (0, 1))
    ]
    assert rows(plot.pipeline(trace_of(*replicas))) == ["stage 0 (rank 2)", "stage 1 (rank 0)"]
    assert rows(plot.pipeline(trace_of(*replicas), ranks=[3, 0])) == ["rank 3", "stage 1 (rank 0)"]


def test_later_chunks_are_darker():
    ops = [(rank, "forward", 0, rank + 2 * chunk, chunk, chunk + 1) for rank in (0, 1) for chunk in (0, 1, 2)]
    ax = plot.pipeline(trace_of(*ops))
    assert set(boxes(ax)) == {f"forward, chunk {chunk}" for chunk in range(3)}
    light = [float(sum(c.get_facecolor()[0][:3])) for c in sorted(ax.collections, key=lambda c: str(c.get_label()))]
    assert light == sorted(light, reverse=True)
    assert light[0] > light[-1]
    assert rows(ax) == ["stage 0 (rank 0)", "stage 1 (rank 1)"]


def test_the_last_step_unless_one_is_named():
    later = trace_of((0, "forward", 0, 0, 100, 107), step=1)
    both = pd.concat([TWO_STAGES, later])
    assert boxes(plot.pipeline(both)) == {"forward": [(0, 7, 0.08, 0.92)]}
    assert boxes(plot.pipeline(both, step=0)) == boxes(plot.pipeline(TWO_STAGES))


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="no forward kernel in step 3"):
        plot.pipeline(TWO_STAGES, step=3)
    with pytest.raises(ValueError, match="no forward kernel"):
        plot.pipeline(TWO_STAGES[TWO_STAGES["phase"] != "forward"])
    with pytest.raises(ValueError, match=r"ranks: \[7\] have no kernel"):
        plot.pipeline(TWO_STAGES, ranks=[0, 7])


def test_narrow_boxes_have_no_number():
    ops = [(0, "forward", j, 0, j, j + 1) for j in range(2000)]
    assert len(plot.pipeline(trace_of(*ops)).texts) == 0


@pytest.mark.parametrize(
    ("schedule", "p", "v", "m"), [(one_f_one_b, 3, 1, 5), (interleaved, 2, 3, 4), (zb_h1, 3, 1, 4)]
)
def test_a_schedule_is_drawn_as_it_is_played(schedule, p, v, m):
    table = schedule(p, v, m)
    ax = plot.schedule(table, forward=2, backward_input=3, backward_weight=1)
    played = ideal(table, placement_of(schedule, p, v), forward=2, backward_input=3, backward_weight=1)
    drawn = sorted((left, right, int(top)) for some in boxes(ax).values() for left, right, top, _ in some)
    assert drawn == sorted((span.start, span.end, s) for s, row in enumerate(played.rows) for span in row)
    assert rows(ax) == [f"stage {s}" for s in range(p)]
    assert ax.get_xlabel() == "time [F = 2, I = 3, W = 1]"


def test_overlapped_units_share_the_row_of_a_schedule():
    table = dualpipe(4, 2, 10)
    ax = plot.schedule(table, placement_of(dualpipe, 4, 2), overlapped=2.5)
    pairs = sum(str(entry).count("+") for row in table for entry in row)
    halves = [b for some in boxes(ax).values() for b in some if round(b[3] - b[2], 2) == 0.42]
    assert len(halves) == 2 * pairs > 0
    assert {round(b[1] - b[0], 6) for b in halves} == {2.5}
    legend = [t.get_text() for t in ax.get_legend().get_texts()]
    assert legend == ["forward of chunks 0 to 1", "backward", "backward, input", "backward, weights"]


def test_axes_may_be_given():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert plot.schedule(one_f_one_b(2, 1, 2), ax=ax) is ax
    assert plot.pipeline(TWO_STAGES, ax=ax) is ax
