"""The settings of offload policies: fields of the policies, each with its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from clustersim.library.keys.key import Key
from clustersim.library.values import Flag, Name, Names, Number, Whole, Wholes, Word
from clustersim.workload.offload import POLICIES
from clustersim.workload.offload.casts import Cast
from clustersim.workload.offload.cpu_update import Adam
from clustersim.workload.offload.place import DRIVES, Updater

__all__ = ["OFFLOAD_KEYS"]

_OWN = "the policy's own"

OFFLOAD_KEYS: Mapping[str, Key] = {
    "plan.offload.policy": Key(
        Name(f"{', '.join(POLICIES)}, or a class as my_package.module:Policy"),
        "what is off the GPUs, and who updates it",
        otherwise="nothing is",
    ),
    **{
        f"plan.offload.{name}": Key(value, meaning, otherwise=_OWN)
        for name, value, meaning in (
            ("subgroup_size", Whole(1, 2**40), "weights of a rank that are moved and updated together"),
            ("fused_tensors", Flag(), "matrices that read one input are one tensor"),
            ("pinned", Flag(), "host memory is page-locked"),
            ("pinned_weights", Flag(), "what new weights are copied from is page-locked"),
            ("pinned_states", Flag(), "optimizer states on the host are page-locked"),
            ("powers_of_two", Flag(), "page-locked memory is taken in powers of two"),
            ("binding", Word(("numa", "none")), "where threads and memory of a rank are"),
            ("adam", Word(get_args(Adam)), "how the CPU's update is written"),
            ("cast", Word(get_args(Cast)), "who converts gradients and weights"),
            ("cast_weights", Word(get_args(Cast)), "who converts new weights, where it is not who converts gradients"),
            ("update_threads", Whole(1, 2**12), "threads of the CPU's updates"),
            ("cast_threads", Whole(1, 2**12), "threads of the CPU's casts"),
            ("update_cores", Number(0.01, 0.99), "part of the cores that a process of its own updates with"),
            ("temporaries", Flag(), "what the CPU casts is copied through memory allocated for it"),
            ("flat_buffer", Flag(), "gradients go to a buffer on the host and back before they go to their place"),
            ("scales", Flag(), "the CPU scales gradients in a pass of its own"),
            ("norm", Word(get_args(Updater)), "who takes the norm of gradients"),
            ("blocking", Flag(), "the backward pass waits for copies of gradients"),
            ("round_robin", Flag(), "all ranks copy gradients at a time, not one after the other"),
            ("serial", Flag(), "one thread updates, casts and copies in turn"),
            ("collects", Flag(), "new weights are brought when all updates are through"),
            ("in_turn", Flag(), "one thread waits for each update, also of the GPU, before it asks for the next"),
            ("each_micro_batch", Flag(), "gradients leave the GPU with each micro-batch"),
            ("overlaps_forward", Flag(), "the next forward pass starts before the update is through"),
            ("validates", Flag(), "the CPU validates updates that did not wait for all gradients"),
            ("rolls_back", Flag(), "validation fails: the CPU takes its updates back and does them again"),
            ("buffers", Whole(1, 2**20), "subgroups on their way from or to drives at a time"),
            ("gradient_buffers", Whole(1, 2**20), "largest subgroups' fp32 gradients on their way to drives"),
            ("read_ahead", Flag(), "states are read before their turn"),
            ("write_behind", Flag(), "updates go on while states are written"),
            ("staging", Whole(1, 2**20), "subgroups on the GPU at a time to be updated there"),
            ("duplex", Flag(), "states come to the GPU and leave it at the same time"),
            ("lock", Flag(), "one rank of a node reads and one writes a drive at a time"),
            ("weights", Word(("auto", "gpu", "host", "nvme")), "where the weights that the passes read live"),
            ("flow_from", Whole(1, 2**40), "tokens of a micro-batch from which on weights come from the host"),
            ("tail", Whole(0, 2**20), "subgroups, from the first on, that stay on the GPU"),
            ("speculates", Flag(), "updates do not wait for the norm of all gradients"),
            ("asynchronous", Flag(), "updates begin during the backward pass, where gradients are not clipped"),
            ("tiers", Names(", ".join(DRIVES), DRIVES), "drives that states are on"),
            (
                "ratio",
                Number(0, 2**20),
                "share of subgroups that the CPU updates; how many to one on the second tier",
            ),
            ("stride", Whole(2, 2**20), "of so many subgroups the GPU updates one"),
            ("shares", Wholes(1, 2**40, 2), "in which proportion subgroups are on the tiers"),
            ("cache", Whole(0, 2**20), "subgroups of each tier that stay on the host from step to step"),
            ("reverses", Flag(), "every other step updates backward"),
            ("gradients_on_host", Flag(), "gradients wait on the host in 16 bits"),
            ("delayed", Flag(), "the CPU updates while the GPU computes the next step"),
        )
    },
}
"""By dotted name; a policy that has no such field refuses it."""
