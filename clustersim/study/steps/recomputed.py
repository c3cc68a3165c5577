"""What a row computes again, in its source's words -> fields of a plan."""

from __future__ import annotations

import re
from typing import Any

from clustersim.faults import nearest_name
from clustersim.readers.step_rows import StepRow
from clustersim.study.profile import Profile
from clustersim.study.steps.refusal import RefusedError

__all__ = ["recompute_of"]

_OFF = re.compile(r"(no|none|any|false|off|disabled|without|0|sequence parallel, no)\b")
_ON = re.compile(r"(true|yes|enabled)\b|(on|1)$|activation (re)?comput|(gradient|activation) checkpoint")
_WORDS = ("none", "full", "selective", "selective layer", "false", "true")

_EVERY = re.compile(r"\b(?:every )?(?P<number>\d+)(?:nd|rd|th)?\b")
_EVERY_SECOND = 2
"""Of how many layers one is computed again by "selective layer" without a number: torchtitan, ``selective_ac_option``
of its configurations that choose layers."""


def recompute_of(row: StepRow, profile: Profile, stages: int, assumed: list[str]) -> dict[str, Any]:
    """recompute and what goes with it.

    Parameters
    ----------
    row : StepRow
    profile : Profile
        which says what "selective" is
    stages : int
        chunks that the layers are cut into
    assumed : list[str]
        is extended by what is assumed

    Raises
    ------
    RefusedError
        when the words are not known
    """
    text = row.recompute.lower().strip()
    if not text or "not stated" in text:
        assumed.append("recompute: none, it is not stated")
        return {}
    if text == "sequence parallel" or _OFF.match(text):
        return {}
    if "selective" in text and "none" in text:
        assumed.append(f"recompute: none; published as {row.recompute!r}")
        return {}
    if "selective" in text and "layer" in text and row.layers is not None:
        return _some_layers(row, row.layers, text, stages, assumed)
    if "selective" in text:
        if profile.recompute_modules != ("core",):
            parts = ", ".join(profile.recompute_modules)
            assumed.append(f"recompute: {parts}, the profile's; published as {row.recompute!r}")
        return {"recompute": "selective", "recompute_modules": profile.recompute_modules}
    if "full" in text:
        if _EVERY.search(text):
            assumed.append(f"recompute: full, all layers; published as {row.recompute!r}")
        return {"recompute": "full"}
    if _ON.match(text):
        assumed.append(f"recompute: full; published as {row.recompute!r}")
        return {"recompute": "full"}
    near = nearest_name(text, _WORDS)
    raise RefusedError("method", f"recompute {row.recompute!r}" + (f"; nearest: {near}" if near else ""))


def _some_layers(row: StepRow, layers: int, text: str, stages: int, assumed: list[str]) -> dict[str, Any]:
    """Every so manieth layer whole; which of them they are moves no time, so that they stand first in a chunk."""
    told = _EVERY.search(text)
    every = int(told["number"]) if told else _EVERY_SECOND
    chosen = max(1, -(-layers // stages) // max(1, every))
    assumed.append(f"recompute: {chosen} layers a chunk, one of {every}; published as {row.recompute!r}")
    return {"recompute": "full", "recompute_method": "block", "recompute_layers": chosen}
