"""The words of a row on offloading -> the policy that stands for them."""

from __future__ import annotations

import re
from typing import Any

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.refusal import RefusedError
from clustersim.workload.offload import OffloadPolicy, TwinFlow, Zero2Offload, Zero3Offload, ZeroInfinity

__all__ = ["offload_of"]

_NOT_BUILT = (
    ("zenflow", "ZenFlow"),
    ("adaptive partial", "DeepCompile's adaptive offloading"),
)
"""Words of what is offloaded -> a system that no policy stands for."""

_PINNED = ("zenflow core binding", "zero-infinity", "zero-3 offload")
"""Words of sources whose configuration sets ``pin_memory``, or whose paper says that it pins; DeepSpeed's default, in
``runtime/zero/offload_config.py``, is not to."""

_NVME_FROM = re.compile(r"nvme \((\d+)t and above\)")
"""How a figure tells which of its models have drives under them."""

_FRACTION = re.compile(r"offload fraction ([\d.]+)")

_TRILLIONS = re.compile(r"\b(\d+)t\b")


def offload_of(row: StepRow) -> tuple[dict[str, Any], list[str]]:
    """Fields of a row's plan, with its policy, and what is assumed with them; none where nothing is off the GPUs.

    DeepSpeed's stages are told by the row's ``zero_stage``; what its releases do differently goes by the row's year.
    Its launcher binds processes to no cores unless it is asked to.

    Raises
    ------
    RefusedError
        when no policy stands for the words
    """
    text = row.offload.lower()
    if text in ("", "none"):
        return {}, []
    name = next((name for words, name in _NOT_BUILT if words in text), None)
    if name is not None:
        raise RefusedError("offload", f"{name}; published as {row.offload!r}")
    fraction = _FRACTION.search(text)
    if fraction is not None:
        hybrid = _hybrid(float(fraction[1]))
        told = f"{hybrid.name} with ratio {hybrid.ratio:g} and PyTorch's Adam, as Megatron-Core's HybridDeviceOptimizer"
        return {"offload": hybrid, "gradient_dtype": "fp32"}, [f"offload: {told}; published as {row.offload!r}"]
    pinned = any(words in row.source.lower() for words in _PINNED)
    settings: dict[str, Any] = {
        "binding": "numa" if re.search(r"\bbound\b", row.id.lower()) else "none",
        "pinned": pinned,
        "pinned_states": False,
    }
    if row.zero_stage == 3 and _on_drives(row, text):
        policy: OffloadPolicy = ZeroInfinity(weights="nvme", binding=settings["binding"])
    elif row.zero_stage == 3 and ("cpu" in text or "optimizer" in text):
        policy = _third_stage(row.year or 0, weights="gpu" if text.startswith("optimizer") else "host", **settings)
    elif row.zero_stage == 2 and ("cpu" in text or "optimizer" in text):
        policy = _second_stage(row.year or 0, accumulates=(row.grad_accum or 1) > 1, **settings)
    else:
        raise RefusedError("offload", f"offload {row.offload!r} with ZeRO stage {row.zero_stage}")
    bound = "cores bound" if settings["binding"] == "numa" else "no cores bound"
    memory = "pinned" if pinned else "not pinned"
    told = f"{policy.name} as of {row.year or 'now'}, memory {memory}, {bound}"
    return {"offload": policy}, [f"offload: {told}; published as {row.offload!r}"]


def _on_drives(row: StepRow, text: str) -> bool:
    """Whether the row's model is one of those that have drives under them."""
    found = _NVME_FROM.search(text)
    if found is None:
        return "nvme" in text
    size = _TRILLIONS.search(row.model.lower())
    return size is not None and int(size[1]) >= int(found[1])


def _second_stage(year: int, *, accumulates: bool, **settings: Any) -> Zero2Offload:
    """Weights in 16 bits through temporaries until 2023, in fp32 in 2024, through a buffer since.

    The fp32 weights are pinned whatever ``pin_memory`` says, until pull request 7689 at the end of 2025.
    Where micro-batches are added up, gradients of each but the last wait on the host in their own format and come back
    to be added to the next: ``runtime/zero/stage_1_and_2.py``, ``async_accumulate_grad_in_cpu_via_gpu``.
    """
    return Zero2Offload(
        temporaries=0 < year < 2024,
        cast_weights="gpu" if year == 2024 else "cpu",
        pinned_weights=True if year == 2024 else None,
        flat_buffer=accumulates,
        **settings,
    )


def _third_stage(year: int, *, weights: str, **settings: Any) -> Zero3Offload:
    """Gradients are cast by the CPU until 2024, on the GPU since 2025."""
    recent = {} if 0 < year < 2025 else {"cast": "gpu", "cast_weights": "cpu"}
    return Zero3Offload(**settings, **recent, weights=weights)  # type: ignore[arg-type]


def _hybrid(ratio: float) -> TwinFlow:
    """Megatron-Core's HybridDeviceOptimizer without its overlap.

    Parameters are on the host from the first on until the fraction is reached. After the last micro-batch their fp32
    gradients come to pinned memory, PyTorch's AdamW updates them all, and weights are cast on the CPU and copied:
    ``core/optimizer/cpu_offloading/hybrid_optimizer.py``, ``_get_sub_optimizer_param_groups``, ``step`` and
    ``_register_param_copy_back_gpu_hook``; ``core/optimizer/__init__.py``, ``AdamW as CPUAdam``.
    """
    return TwinFlow(
        ratio=ratio,
        subgroup_size=10_000_000,
        adam="adam_torch",
        cast="gpu",
        cast_weights="cpu",
        pinned_states=True,
        powers_of_two=False,
        flat_buffer=False,
        scales=False,
        blocking=False,
        in_turn=False,
        each_micro_batch=False,
        binding="none",
    )
