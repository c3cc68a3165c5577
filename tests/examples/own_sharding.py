"""A sharding of one's own: weights split inside nodes, where gathering is cheap, the optimizer state over everybody.

Between FSDP, which gathers weights over the network in each pass, and HSDP, which repeats the optimizer state on every
node: a step gathers over the network once, after the update.
"""

from typing import Any

import clustersim as cs
from clustersim.workload.sharding import Movement, Sharding

NODE = 8  # GPUs
WEIGHT, GRADIENT = 2, 4  # bytes: bf16 weights, fp32 gradients


def state_over_all(ranks: int) -> Sharding:
    """For ``ranks`` that hold the same weights: two hops of reduce-scatter, and the way back in two hops."""
    return Sharding(
        name="state over all",
        weights=NODE,
        gradients=NODE,
        optimizer=ranks,
        inner=NODE,
        gather=(Movement(kind="all_gather", what="weights", nbytes=WEIGHT, over="inner"),),
        gather_again=(Movement(kind="all_gather", what="weights", nbytes=WEIGHT, over="inner"),),
        reduce=(
            Movement(kind="reduce_scatter", what="gradients", nbytes=GRADIENT, over="inner"),
            Movement(kind="reduce_scatter", what="gradients", nbytes=GRADIENT, over="outer", share=NODE),
        ),
        refresh=(Movement(kind="all_gather", what="weights", nbytes=WEIGHT, over="outer", share=NODE),),
        each_micro_batch=True,
    )


def step(nodes: int, **plan: Any) -> cs.Result:
    """Llama 2 7B, one sequence a GPU."""
    job = cs.training_step(
        cs.load_model("llama-2-7b"),
        cs.ParallelPlan(**plan),
        global_batch=NODE * nodes,
        micro_batch=1,
        seq_len=4096,
        num_devices=NODE * nodes,
    )
    return cs.simulate(cs.load_topology("dgx-h100", nodes=nodes), job, steps=2)


if __name__ == "__main__":
    for name, plan in (
        ("FSDP", {"fsdp": True}),
        ("HSDP", {"fsdp": True, "hsdp": NODE}),
        ("own", {"sharding": state_over_all}),
    ):
        found = cs.summary(step(16, **plan))
        print(f"{name}: {found['step_time_s']:.3f} s, {found['peak_memory_bytes']['gpu'] / 2**30:.1f} GiB")
