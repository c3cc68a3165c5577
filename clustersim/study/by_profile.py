"""What a software profile says of the settings that a job leaves open."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from clustersim.library.job import JobSetup
from clustersim.study.profile import load_profile
from clustersim.topology.topology import Topology
from clustersim.workload.precision import RECIPES

__all__ = ["asked_for", "by_profile"]


def by_profile(
    setup: JobSetup, refused: Collection[str], topology: Topology | None, num_devices: int
) -> dict[str, Any]:
    """What the job's profile says of the settings that the job leaves open."""
    profile = load_profile(setup.value("profile"))
    plan = {key.removeprefix("plan."): setup.values[key] for key in setup.values if key.startswith("plan.")}
    ranks = plan.get("tp", 1) * plan.get("cp", 1) * plan.get("pp", 1)
    dp = plan.get("dp", num_devices // ranks)
    models = [gpu.kernels for gpu in topology.gpus if gpu.kernels is not None] if topology else []
    known = set.intersection(*(set(model.attention) for model in models)) if models else set()
    dtype = setup.value("dtype")
    dtype = dtype if dtype in RECIPES else "bf16"  # what is none is told where all settings are looked at
    found = profile.switches(plan, replicas=dp * plan.get("cp", 1), kernels=known, dtype=dtype)
    told = {*plan, *(key.removeprefix("plan.") for key in refused)}
    return {f"plan.{name}": value for name, value in found.items() if name not in told}


def asked_for(notes: Iterable[str], taken: Collection[str]) -> Iterator[str]:
    """Notes without those on settings of a profile that do nothing here: nobody has asked for them."""
    return (
        note for note in notes if not ("no effect" in note and set(note.partition(": ")[0].split(", ")) <= set(taken))
    )
