"""The settings of the host's part in a step: how it issues kernels and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.library.keys.key import Key
from clustersim.library.values import Flag, Names, Word
from clustersim.workload.captured import CAPTURED
from clustersim.workload.host_calls import LAUNCHES

__all__ = ["LAUNCH_KEYS"]

LAUNCH_KEYS: Mapping[str, Key] = {
    "plan.launch": Key(
        Word(LAUNCHES),
        "how the host issues kernels: not looked at, as operators, by layers in Python as Megatron-LM's or Transformer "
        "Engine's, compiled, or captured",
        "none",
    ),
    "plan.cuda_graphs": Key(
        Names(f"some of {', '.join(CAPTURED)}", CAPTURED),
        "parts of layers that are graphs by themselves, with plan.launch layers or modules",
        (),
    ),
    "plan.wait_norm": Key(Flag(), "the host reads the gradient norm before it issues the update", False),
    "plan.wait_layers": Key(Flag(), "the host waits for the device in each forward pass of a layer", False),
    "plan.module_hooks": Key(Flag(), "Python is called around each module, as by DeepSpeed's ZeRO-3", False),
    "plan.wait_messages": Key(Flag(), "the host waits for the messages between stages that it posts", False),
    "plan.wait_kernels": Key(Flag(), "the host waits for each kernel that it issues", False),
    "plan.memory_breakdown": Key(
        Flag(), "the host collects Python's garbage around each pass and step, as DeepSpeed to report memory", False
    ),
}
"""By dotted name."""
