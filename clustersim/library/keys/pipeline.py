"""The settings of the pipeline: what its stages hold, in which order they work and what they send."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.library.keys.key import DEGREE, Key
from clustersim.library.values import Flag, Name, Wholes, Word
from clustersim.workload.schedule import SCHEDULES

__all__ = ["PIPELINE_KEYS"]

PIPELINE_KEYS: Mapping[str, Key] = {
    "plan.vpp": Key(DEGREE, "chunks of the model a stage", otherwise="1, or what the schedule asks for"),
    "plan.split": Key(Word(("layers", "flops")), "what stages have equally much of", "layers"),
    "plan.stage_layers": Key(
        Wholes(0, 10_000, 2**12), "layers of each virtual stage, in order", otherwise="even, as plan.split says"
    ),
    "plan.time_steps": Key(
        Flag(), "stages with several chunks wait for each other's messages at the end of each time step", False
    ),
    "plan.schedule": Key(
        Name(f"{', '.join(SCHEDULES)}, a table as .csv or .toml, or my_package.module:function"),
        "order of the passes of a stage",
        otherwise="1f1b; interleaved with chunks",
        usual="1f1b",
    ),
    "plan.scatter_gather": Key(Flag(), "messages between stages in tp parts, gathered after", False),
}
"""By dotted name."""
