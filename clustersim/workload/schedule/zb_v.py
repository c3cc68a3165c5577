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

    def repeat(times: int, *steps: tuple[Kind, int]) -> None:
        """Steps in turn, each with the next micro-batch of its kind and chunk."""
        for kind, chunk in steps * times:
            j = count.get((kind, chunk), 0)
            count[kind, chunk] = j + 1
            row.append(Unit(kind, j, chunk))

    above, below = stage, num_stages - stage
    first: tuple[tuple[Kind, int], ...] = (("F", 0), ("I", 0), ("W", 0))
    second: tuple[tuple[Kind, int], ...] = (("F", 1), ("I", 1), ("W", 1))
    repeat(2 * below - 1, ("F", 0))
    repeat(above, ("F", 1), ("F", 0))
    repeat(below, *second)
    repeat(num_micro_batches - 2 * num_stages + 1 + stage, *first, *second)
    repeat(below - 1, ("I", 0), ("W", 0), *second)
    repeat(above, ("I", 0), ("I", 1))
    repeat(below, ("I", 0), ("W", 0))
    repeat(above, ("W", 1))
    repeat(above, ("W", 0))
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
