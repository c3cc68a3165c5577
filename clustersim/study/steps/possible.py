"""What a row's numbers say that its hardware cannot do."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.hardware.gpu import GPU
from clustersim.readers.step_rows import StepRow
from clustersim.study.filled_nodes import nodes_disagree
from clustersim.study.steps.machine import one_node
from clustersim.study.steps.refusal import RefusedError
from clustersim.study.steps.share import NARROW, SHARE

__all__ = ["check_numbers"]


def check_numbers(row: StepRow) -> None:
    """Refuse more nodes than GPUs, or more FLOP than a GPU's peak.

    Shares and rates are held against the dense peak of 16 bits, those of narrower products against the widest peak
    that the GPU has.

    Raises
    ------
    RefusedError
        also when no card stands for the hardware
    """
    wrong = list(_impossible(row))
    if wrong:
        raise RefusedError("numbers", "; ".join(wrong))


def _impossible(row: StepRow) -> Iterator[str]:
    node = one_node(row)
    if row.nodes is not None and row.gpus is not None:
        if told := nodes_disagree(row.gpus, row.nodes):
            yield told
        elif -(-row.gpus // row.nodes) > node.num_devices:
            yield f"{row.gpus} GPUs on {row.nodes} nodes of {node.num_devices}"
    gpu = node.gpus[0]
    rate, peak = _rate(row, gpu), _peak(row, gpu)
    if rate is not None and rate > peak:
        yield f"{row.metric} {row.value:g} {row.unit}: the dense peak of {gpu.name} is {peak / 1e12:g} TFLOP/s"


def _rate(row: StepRow, gpu: GPU) -> float | None:
    """What a GPU does [FLOP/s]; None for metrics that do not say."""
    if row.metric == "tflops_per_gpu":
        return row.value * 1e12
    share = SHARE.match(row.unit) if row.metric in ("mfu", "hfu") else None
    if share is None:
        return None
    peak = float(share["peak"]) * 1e12 if share["peak"] else gpu.flop_per_s("fp16")
    return row.value * peak / (1 if share["of"] == "fraction" else 100)


def _peak(row: StepRow, gpu: GPU) -> float:
    return max(gpu.tensor_flop_per_s.values()) if NARROW.search(row.precision) else gpu.flop_per_s("fp16")
