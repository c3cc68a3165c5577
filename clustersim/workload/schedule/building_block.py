"""Schedules on a V that repeat one building block: the instants of a micro-batch, six slots apart for the next one."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.schedule.unit import Kind, Unit

__all__ = ["BuildingBlock"]

_SLOTS = 6  # F, I and W of two chunks, each of one slot


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildingBlock:
    """When the units of micro-batch 0 run on each stage of a V, in slots.

    On stage s, F of chunk 0 runs at ``down``·s, F of chunk 1 at ``turn`` - ``up``·s, I of chunk 1 at
    ``loss`` + ``down``·s and I of chunk 0 at ``back`` - ``up``·s. Each W takes the first slot after its I that no
    other unit takes. Micro-batch j is 6·j slots later, so no two units may be a multiple of six slots apart.

    Parameters
    ----------
    down, up : int
        slots from a stage to the next: of F of chunk 0 and I of chunk 1; of F of chunk 1 and I of chunk 0
    turn, loss, back : int
        slots on stage 0: of F of chunk 1, of I of chunk 1, of I of chunk 0

    References
    ----------
    Qi et al., Pipeline Parallelism with Controllable Memory, 2024 (arXiv 2405.15362): what a block holds at its peak is
    how long its chunks live over its period.
    """

    down: int
    up: int
    turn: int
    loss: int
    back: int

    def row(self, stage: int, num_micro_batches: int) -> list[Unit]:
        """Units of a stage in the order of their slots.

        Raises
        ------
        ValueError
            when two of them take the same slot
        """
        at: dict[tuple[Kind, int], int] = {
            ("F", 0): self.down * stage,
            ("F", 1): self.turn - self.up * stage,
            ("I", 1): self.loss + self.down * stage,
            ("I", 0): self.back - self.up * stage,
        }
        free = set(range(_SLOTS)) - {slot % _SLOTS for slot in at.values()}
        if len(free) != _SLOTS - len(at):
            raise ValueError(f"stage {stage}: {at} must be in different slots of {_SLOTS}")
        for chunk in (1, 0):
            slot = next(t for t in range(at["I", chunk] + 1, at["I", chunk] + _SLOTS) if t % _SLOTS in free)
            free.remove(slot % _SLOTS)
            at["W", chunk] = slot
        slots = [
            (slot + _SLOTS * j, Unit(kind, j, chunk))
            for (kind, chunk), slot in at.items()
            for j in range(num_micro_batches)
        ]
        return [unit for _, unit in sorted(slots, key=lambda item: item[0])]
