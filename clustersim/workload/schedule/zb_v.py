"""ZB-V: a model folded over the stages like a V, without a bubble and in the memory of 1F1B."""

from __future__ import annotations

from clustersim.workload.schedule.placed import PlacedSchedule
from clustersim.workload.schedule.placement import vee
from clustersim.workload.schedule.unit import Kind, Unit

__all__ = ["zb_v"]


def _table(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    # With fewer than 2·p - 1 micro-batches the rows are those of 2·p - 1, without the units of the absent ones.
    enough = max(num_micro_batches, 2 * num_stages - 1)
    rows = [_row(num_stages, s, enough) for s in range(num_stages)]
    return [[unit for unit in row if unit.micro_batch < num_micro_batches] for row in rows]


def _row(num_stages: int, stage: int, num_micro_batches: int) -> list[Unit]:
    row: list[Unit] = []
    count: dict[tuple[Kind, int], int] = {}

    def do(times: int, *steps: tuple[Kind, int]) -> None:
        """Steps in turn, each with the next micro-batch of its kind and chunk."""
        for step in steps * times:
            j = count.get(step, 0)
            count[step] = j + 1
            row.append(Unit(step[0], j, step[1]))

    above, below = stage, num_stages - stage
    do(2 * below - 1, ("F", 0))
    do(above, ("F", 1), ("F", 0))
    do(below, ("F", 1), ("I", 1), ("W", 1))
    rest = num_micro_batches - (2 * num_stages - 1 - stage)
    do(rest, ("F", 0), ("I", 0), ("W", 0), ("F", 1), ("I", 1), ("W", 1))
    do(num_micro_batches - below - rest - above, ("I", 0), ("W", 0), ("F", 1), ("I", 1), ("W", 1))
    do(above, ("I", 0), ("I", 1))
    do(below, ("I", 0), ("W", 0))
    do(num_micro_batches - count.get(("W", 1), 0), ("W", 1))
    do(num_micro_batches - count.get(("W", 0), 0), ("W", 0))
    return row


zb_v = PlacedSchedule(name="zb-v", table=_table, placement=vee, num_virtual=2)
"""Forwards fill the V, then F, I and W of both chunks alternate, then W fills what is left.

With F = I = W and m at least 2·p - 1 no stage waits between its first unit and its last. A stage holds at most 2·p
chunks from F to W: as much as the first stage of 1F1B, on all stages. With fewer micro-batches there are gaps.

References
----------
Qi et al., Zero Bubble Pipeline Parallelism, 2023 (arXiv 2401.10241), section 6;
Qi et al., Pipeline Parallelism with Controllable Memory, 2024 (arXiv 2405.15362), where it is V-ZB.
"""
