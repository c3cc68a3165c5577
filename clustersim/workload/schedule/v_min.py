"""V-Min: a model folded over the stages like a V, with a third of the activations of 1F1B."""

from __future__ import annotations

from clustersim.workload.schedule.building_block import BuildingBlock
from clustersim.workload.schedule.placed import PlacedSchedule
from clustersim.workload.schedule.placement import vee
from clustersim.workload.schedule.unit import Unit

__all__ = ["v_min"]


def _table(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    # where 3 divides p the earliest slots would collide: F of chunk 0 with I of chunk 1, F of chunk 1 with I of chunk 0
    late = 0 if num_stages % 3 else 2
    block = BuildingBlock(
        down=1, up=1, turn=2 * num_stages - 1, loss=2 * num_stages + late, back=4 * num_stages - 1 + late
    )
    return [block.row(s, num_micro_batches) for s in range(num_stages)]


v_min = PlacedSchedule(name="v-min", table=_table, placement=vee, num_virtual=2)
"""Every unit follows the one it needs as closely as it can.

A stage holds at most 2·⌊(p + 4) / 3⌋ chunks from F to W, that is ⌊(p + 4) / 3⌋ micro-batches of a whole stage. Played
as soon as it can be with F = I = W = 1 and m at least 2·p, the bubble is 4·p - 5 slots, and 4·p - 3 where 3 divides p:
about 2·p / 3 micro-batches.

References
----------
Qi et al., Pipeline Parallelism with Controllable Memory, 2024 (arXiv 2405.15362); memory as in the table of their
demonstration, huggingface.co/spaces/sail/pipeline-parallelism-with-controllable-memory.
"""
