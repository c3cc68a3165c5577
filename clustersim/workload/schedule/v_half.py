"""V-Half: a model folded over the stages like a V, with half the activations of 1F1B."""

from __future__ import annotations

from clustersim.workload.schedule.building_block import BuildingBlock
from clustersim.workload.schedule.placed import PlacedSchedule
from clustersim.workload.schedule.placement import vee
from clustersim.workload.schedule.unit import Unit

__all__ = ["v_half"]


def _table(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    # the earliest slots in which nothing collides and the two W do not lengthen the life of a chunk
    late = 0 if num_stages % 2 else 3
    block = BuildingBlock(
        down=2,
        up=1,
        turn=3 * num_stages - 2 + late,
        loss=3 * num_stages - 1 + late,
        back=6 * num_stages - 2 + 2 * late,
    )
    return [block.row(s, num_micro_batches) for s in range(num_stages)]


v_half = PlacedSchedule(name="v-half", table=_table, placement=vee, num_virtual=2)
"""Chunks go down the stages in steps of two slots and up in steps of one.

A stage holds at most 2·⌊(p + 2) / 2⌋ chunks from F to W, that is ⌊(p + 2) / 2⌋ micro-batches of a whole stage. Played
as soon as it can be with F = I = W = 1 and m at least 2·p, the bubble is 3.5·p - 4 slots for even p and 3.5·p - 3.5 for
odd p. The authors' own tables are reordered by a search at both ends and come to about 3·p; this one is the repeated
block alone.

References
----------
Qi et al., Pipeline Parallelism with Controllable Memory, 2024 (arXiv 2405.15362); memory as in the table of their
demonstration, huggingface.co/spaces/sail/pipeline-parallelism-with-controllable-memory.
"""
