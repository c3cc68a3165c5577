"""Measured kernels as published -> the GPU they ran on and the launches that the time is of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel, KernelKind
from clustersim.library.model import load_model
from clustersim.library.part import load_part
from clustersim.readers.kernel_rows import KernelRow

__all__ = ["MACHINES", "REASONS", "MeasuredKernel", "UnusedKernel", "place"]

MACHINES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("a100-pcie",), "a100-pcie-80gb"),
    (("a100", "40gb"), "a100-sxm-40gb"),
    (("a100",), "a100-sxm-80gb"),
    (("a40",), "a40"),
    (("gb200",), "gb200"),
    (("gb300",), "gb300"),
    (("gh200", "141gb"), "gh200-144gb"),
    (("gh200",), "gh200"),
    (("b200",), "b200"),
    (("b300",), "b300"),
    (("h100-sxm",), "h100-sxm"),
    (("h200",), "h200-sxm"),
    (("h800",), "h800-sxm"),
    (("l4",), "l4"),
    (("v100-pcie",), "v100-pcie"),
    (("mi210",), "mi210"),
    (("mi355x",), "mi355x"),
)
"""Words that a description of the hardware has -> the card that stands for it; the first that fits, ``MoE`` nodes of
several GPUs left out."""

_DTYPES = {
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "fp16",
    "fp32 (simt / tf32 off)": "fp32",
    "fp64": "fp64",
    "fp8": "fp8",
    "fp8 e4m3": "fp8",
    "fp8 (block scaled)": "fp8",
    "fp8 (block scaled, bf16 out)": "fp8",
}
_WIDTH = {"bf16": 2, "fp16": 2, "fp32": 4, "fp64": 8, "fp8": 1}
_WRITTEN = {**_WIDTH, "fp8": 2}

_STREAM = 2**25
"""Elements of BabelStream's arrays by default (README of UoB-HPC/BabelStream)."""

_STREAM_ARRAYS = {"copy": 2, "mul": 2, "add": 3, "triad": 3, "dot": 2}

_ATTENTION = {
    "flashattention-1": "flash-1",
    "flashattention-2": "flash-2",
    "flashattention-3": "flash-3",
    "cudnn": "cudnn",
}

_MODELS = {"Llama-2-70b-hf": "llama-2-70b", "Llama-2-7b-hf": "llama-2-7b"}

_IN_SEQUENCE = ("Vidur",)
"""Sources that time kernels as they follow each other in a model, on a device that is busy throughout: at the clock
that its power limit leaves. The others time one kernel alone."""

REASONS = (
    "no card of the hardware",
    "low confidence",
    "not one kernel of one GPU",
    "no shape",
    "forward or backward is not told",
    "a sequence of kernels whose number is not told",
    "its unit is none of ms, TB/s and TFLOP/s, or not of such a kernel",
    "above the dense peak of the device",
)
"""Why a row cannot be predicted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredKernel:
    """A row and what it measured.

    Parameters
    ----------
    row : KernelRow
    gpu : GPU
        the card's, at the clock that the row was measured at
    kind : {"gemm", "attention", "memory"}
        what it is counted among
    kernels : tuple[Kernel, ...]
        launches, one after the other, whose times are in the measured one
    seconds : float
        measured [s]
    """

    row: KernelRow
    gpu: GPU
    kind: KernelKind
    kernels: tuple[Kernel, ...]
    seconds: float

    @property
    def kernel(self) -> Kernel:
        """The launch that the row is named for."""
        return next(kernel for kernel in self.kernels if kernel.kind == self.kind)

    @property
    def shape(self) -> tuple[int, ...]:
        """What rows that are left out together have in common: the weight matrix, tokens and heads, the bytes."""
        kernel = self.kernel
        if self.kind == "gemm":
            return (kernel.n, kernel.k)
        return (kernel.m, kernel.batch) if self.kind == "attention" else (kernel.nbytes,)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnusedKernel:
    """A row that cannot be predicted, with one of :data:`REASONS`."""

    row: KernelRow
    reason: str


def place(rows: Iterable[KernelRow]) -> tuple[list[MeasuredKernel], list[UnusedKernel]]:
    """Rows whose kernels are known, and the others with the reason."""
    used, unused = [], []
    for row in rows:
        placed = _place(row)
        if isinstance(placed, str):
            unused.append(UnusedKernel(row=row, reason=placed))
        else:
            used.append(placed)
    return used, unused


def _place(row: KernelRow) -> MeasuredKernel | str:
    card = next((card for words, card in MACHINES if all(word in row.hardware.lower() for word in words)), "")
    dtype = _DTYPES.get(row.dtype.lower(), "")
    if row.op.startswith("MoE") or row.hardware.startswith("8x"):
        return "not one kernel of one GPU"
    if not card or not dtype:
        return "no card of the hardware"
    if row.confidence == "low":
        return "low confidence"
    kind: KernelKind = "gemm" if "gemm" in row.op else "attention" if "attention" in row.op else "memory"
    make: Callable[[KernelRow, str], tuple[Kernel, ...] | str] = {
        "gemm": _gemm,
        "attention": _attention,
        "memory": _memory,
    }[kind]
    kernels = make(row, dtype)
    if isinstance(kernels, str):
        return kernels
    seconds = _seconds(row, kernels)
    if not seconds:
        return "its unit is none of ms, TB/s and TFLOP/s, or not of such a kernel"
    gpu = _gpu(card)
    if seconds < _seconds_at_peak(gpu, kernels):
        return "above the dense peak of the device"
    if row.source.startswith(_IN_SEQUENCE):
        gpu = gpu.at_clock(_clock(gpu, kernels, seconds))
    return MeasuredKernel(row=row, gpu=gpu, kind=kind, kernels=kernels, seconds=seconds)


def _seconds_at_peak(gpu: GPU, kernels: tuple[Kernel, ...]) -> float:
    """Of the FLOP of matrix units; 0 on a device that has none of the format, which is told elsewhere [s]."""
    try:
        return sum(k.count * k.flops / gpu.flop_per_s(k.dtype) for k in kernels if k.kind != "memory")
    except KeyError:
        return 0.0


def _clock(gpu: GPU, kernels: tuple[Kernel, ...], seconds: float) -> float:
    """The clock that the power limit leaves beside kernels which keep the device busy."""
    if gpu.power is None:
        return 1.0
    matrix_j = sum(
        gpu.power.matrix_j(k.kind, k.dtype, k.count * k.flops / gpu.flop_per_s(k.dtype), k.form)
        for k in kernels
        if k.kind != "memory"
    )
    memory_s = sum(k.count * k.nbytes for k in kernels) / gpu.memory_bandwidth
    return gpu.power.clock_when(matrix_j=matrix_j, memory_s=memory_s, seconds=seconds)


@cache
def _gpu(card: str) -> GPU:
    return load_part("gpu", card)


def _seconds(row: KernelRow, kernels: tuple[Kernel, ...]) -> float:
    """Measured time: milliseconds as published, or from a rate of the FLOP or bytes; 0 where the unit tells neither."""
    if row.unit == "ms":
        return row.value / 1e3
    if row.unit == "TB/s":
        return sum(kernel.nbytes for kernel in kernels) / (row.value * 1e12)
    if row.unit.startswith("TFLOP/s"):
        return sum(kernel.flops for kernel in kernels) / (row.value * 1e12)
    return 0.0


def _gemm(row: KernelRow, dtype: str) -> tuple[Kernel, ...] | str:
    """A product; batches stand in a column that of a linear layer says how many sequences the rows are from.

    What aiconfigurator collects for fp8 is TensorRT-LLM's linear layer: it finds the largest input, then casts the
    input, in two passes before the product.
    """
    if not {"m", "n", "k"} <= row.counts.keys():
        return "no shape"
    m, n, k = (row.counts[name] for name in "mnk")
    batch = row.counts.get("batch", 1) if row.op.startswith(("batched", "grouped")) else 1
    nbytes = batch * (_WIDTH[dtype] * (m * k + k * n) + _WRITTEN[dtype] * m * n)
    product = Kernel(kind="gemm", dtype=dtype, flops=2 * batch * m * n * k, nbytes=nbytes, m=m, n=n, k=k, batch=batch)
    if dtype == "fp8" and row.source.startswith("aiconfigurator"):
        return (_pass(2 * m * k, "norm"), _pass(3 * m * k), product)
    return (product,)


def _attention(row: KernelRow, dtype: str) -> tuple[Kernel, ...] | str:
    """Fused attention; what aiconfigurator collects also rotates queries and keys and writes keys and values away."""
    counts = row.counts
    name = row.notes.split(";")[0].strip().lower()
    form = "trtllm" if row.source.startswith("aiconfigurator") else _ATTENTION.get(name, "")
    if name.startswith("pytorch"):
        return "a sequence of kernels whose number is not told"
    if row.passes not in ("fwd", "fwd+bwd"):
        return "forward or backward is not told"
    if not form or not {"seq_len", "heads", "head_dim", "batch"} <= counts.keys():
        return "no shape"
    s, d, heads = counts["seq_len"], counts["head_dim"], counts["heads"]
    kv_heads, sequences = counts.get("kv_heads", heads), counts["batch"]
    w = _WIDTH[dtype]
    pairs2 = s * s if counts.get("causal") else 2 * s * s
    rows = 2 * w * s * d * (heads + kv_heads) + 4 * s * heads
    forward = Kernel(
        kind="attention",
        dtype=dtype,
        flops=2 * pairs2 * d * heads * sequences,
        nbytes=sequences * rows,
        m=s,
        n=s,
        k=d,
        batch=sequences * heads,
        form=form,
    )
    if row.source.startswith("aiconfigurator"):
        return (_pass(2 * w * sequences * s * d * (heads + 2 * kv_heads)), forward)
    if row.passes == "fwd":
        return (forward,)
    backward = replace(forward, flops=5 * forward.flops // 2, nbytes=2 * forward.nbytes, backward=True)
    return (forward, backward)


def _memory(row: KernelRow, dtype: str) -> tuple[Kernel, ...] | str:
    """A pass; of RMS norms, Vidur's reads its input twice, and Megatron-LM's plain one is several kernels."""
    counts, op = row.counts, row.op
    if op.startswith("stream"):
        arrays = _STREAM_ARRAYS.get(op.removeprefix("stream "), 0)
        return (_pass(arrays * _STREAM * _WIDTH[dtype]),) if arrays else "no shape"
    if op == "rmsnorm":
        return "a sequence of kernels whose number is not told"
    rows = counts.get("m", counts.get("batch", 0) * counts.get("seq_len", 0))
    elements, w = rows * counts.get("hidden", 0), _WIDTH[dtype]
    if not elements:
        return "no shape"
    tp = counts.get("tensor_parallel", 1)
    if row.model:
        if row.model not in _MODELS:
            return "no shape"
        model = load_model(_MODELS[row.model])
        if op == "mlp_act":
            return (_pass(w * 3 * rows * model.ffn_hidden // tp, "activation"),)
        if op == "attn_rope":
            return (_pass(w * 2 * rows * (model.num_heads + model.num_kv_heads) * model.head_dim // tp, "rope"),)
    passes = {
        "add": (3, ""),
        "mul": (3, ""),
        "residual add": (3, ""),
        "gelu": (2, "activation"),
        "layernorm": (2, "norm"),
        "input_layernorm": (3, "norm"),
        "softmax": (2, "softmax"),
    }
    if op not in passes:
        return "no shape"
    times, form = passes[op]
    if op == "gelu" and row.source.startswith("estimate-train-time"):
        elements = 4 * elements // tp
    return (_pass(times * w * elements, form),)


def _pass(nbytes: int, form: str = "") -> Kernel:
    return Kernel(kind="memory", dtype="fp32", flops=0, nbytes=nbytes, form=form)
