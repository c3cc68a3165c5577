"""A pipeline schedule of one's own, in two ways: a table in a file, and a callable with places for its chunks.

The table puts off the gradients of weights until a stage has nothing else to do. The callable is GPipe on the way down
and up a vee: stage 0 has the model's first and last layers, and the last stage passes nothing on at the turn.
"""

from pathlib import Path

import clustersim as cs
from clustersim.workload.schedule import PlacedSchedule, Unit, vee

TABLE = Path(__file__).with_suffix(".csv")


def there_and_back(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    """All micro-batches through chunk 0, through chunk 1, and the other way round."""
    batches = range(num_micro_batches)
    down = [Unit("F", j, chunk) for chunk in range(num_virtual) for j in batches]
    up = [Unit("B", j, chunk) for chunk in reversed(range(num_virtual)) for j in batches]
    return [down + up] * num_stages


SCHEDULES = {
    "1f1b": "1f1b",
    "table": str(TABLE),
    "vee": PlacedSchedule(name="there and back", table=there_and_back, placement=vee, num_virtual=2),
}


def step(schedule: str) -> cs.Result:
    """Llama 2 7B on four replicas of two stages, four micro-batches each."""
    plan = cs.ParallelPlan(pp=2, dp=4, zero=1, schedule=SCHEDULES[schedule])
    model = cs.load_model("llama-2-7b")
    job = cs.training_step(model, plan, num_devices=8, global_batch=16, micro_batch=1, seq_len=4096)
    return cs.simulate(cs.load_topology("dgx-h100"), job)


if __name__ == "__main__":
    for name in SCHEDULES:
        found = cs.summary(step(name))
        memory = found["peak_memory_bytes"]["gpu"] / 2**30
        print(f"{name}: {found['step_time_s']:.3f} s, bubble {found['bubble_fraction']:.1%}, {memory:.1f} GiB")
