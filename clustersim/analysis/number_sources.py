"""Where the hardware numbers that a run used come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clustersim.hardware.gpu import GPU
from clustersim.topology.topology import Topology
from clustersim.trace.timed_work import TimedWork

__all__ = ["number_sources"]


def number_sources(topology: Topology, timed: Sequence[TimedWork], *, table: str | None = None) -> dict[str, str]:
    """Sources by dotted name: those of the topology's parts, and of the kernel models in use.

    Parameters
    ----------
    topology : Topology
    timed : Sequence[TimedWork]
        ``record.timed`` of the run
    table : str, optional
        name of the table of the user's own measurements of kernels

    Returns
    -------
    dict[str, str]
        ``node.gpu.memory_bandwidth`` -> ``datasheet: ...``; numbers of kernels follow, ``kernels/h100-sxm.gemm.bf16``.
        A GPU's curves of size are left out where all of its kernels have models
    """
    parts = {gpu.name: set(_parts(gpu, timed)) for gpu in topology.gpus}
    curves = any(gpu.kernels is None or "" in parts[gpu.name] for gpu in topology.gpus)
    found = {key: source for key, source in topology.sources.items() if curves or ".gpu.efficiency." not in f".{key}"}
    for gpu in topology.gpus:
        if gpu.kernels is None:
            continue
        for key, source in gpu.kernels.sources.items():
            if any(
                f"{key}.".startswith(f"{part}.") or f"{part}.".startswith(f"{key}.") for part in parts[gpu.name] if part
            ):
                found[f"kernels/{gpu.kernels.name}.{key}"] = source
    if table is not None:
        found[f"kernels/{table}.time_us"] = "measured: by the user, of shapes that it has or has one on each side of"
    return found


def _parts(gpu: GPU, timed: Sequence[TimedWork]) -> Iterator[str]:
    """Parts of the device's kernel card that a run used; empty for kernels that it has no model of."""
    for work in timed:
        kernel, models = work.kernel, gpu.kernels
        if kernel is None or work.device != gpu.name:
            continue
        if models is None or (kernel.kind != "memory" and not (kernel.m and kernel.n and kernel.k)):
            yield ""
        elif kernel.kind == "gemm":
            yield models.gemm_of(kernel.dtype)[1] or "gemm"
        else:
            yield models.attention_of(kernel.form)[1] if kernel.kind == "attention" else "memory"
