"""DualPipe: micro-batches enter at both ends, each forward overlapped with a backward of the other direction."""

from __future__ import annotations

from clustersim.workload.schedule.dualpipev import dualpipe_row
from clustersim.workload.schedule.placed import PlacedSchedule
from clustersim.workload.schedule.placement import bidirectional
from clustersim.workload.schedule.unit import Overlapped, Unit

__all__ = ["dualpipe"]


def _table(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit | Overlapped]]:
    if num_stages % 2 or num_micro_batches % 2 or num_micro_batches < 2 * num_stages:
        raise ValueError(
            f"num_micro_batches: {num_micro_batches} must be even and at least {2 * num_stages} for {num_stages} "
            "stages, themselves even"
        )
    half = num_micro_batches // 2
    table = []
    for stage in range(num_stages):
        # the upper half of the stages mirrors the lower, with the directions swapped
        mirrored = stage >= num_stages // 2
        row = dualpipe_row(num_stages // 2, min(stage, num_stages - 1 - stage), half)
        table.append([_turned(entry, mirrored, half) for entry in row])
    return table


def _turned(entry: Unit | Overlapped, mirrored: bool, half: int) -> Unit | Overlapped:
    """Chunks 0 and 1 of the V as the two directions; those of chunk 1 are the second half of the micro-batches."""

    def turned(unit: Unit) -> Unit:
        chunk = unit.chunk ^ mirrored
        return Unit(unit.kind, unit.micro_batch + chunk * half, chunk)

    return turned(entry) if isinstance(entry, Unit) else Overlapped(turned(entry.forward), turned(entry.backward))


dualpipe = PlacedSchedule(name="dualpipe", table=_table, placement=bidirectional, num_virtual=2)
"""Half of the micro-batches go down the stages and half go up; every stage holds two chunks of the model, one each way.

Takes an even p and an even m of at least 2·p; micro-batches 0 to m/2 - 1 go down. With F&B for the time of a pair, no
less than F or B, the most that a stage idles within the whole (``makespan - busy``) is (p/2 - 1)·(F&B + B - 3·W) as
published where F = I and W is no longer. A longer F adds (p/2 - 1)·(F - I); a longer I takes off (p/2 - 1)·(I - F), but
no more than F in all. A stage holds at most p + 1 activations of a chunk, and the weights of two chunks.

References
----------
DeepSeek-AI, DeepSeek-V3 Technical Report, 2024 (arXiv 2412.19437), section 3.2.1, figure 5 and table 2; steps as in
github.com/deepseek-ai/DualPipe.
"""
