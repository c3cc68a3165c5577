"""A published kernel -> the launches that its time is of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from clustersim.hardware.kernel import Kernel, KernelKind
from clustersim.library.model import load_model
from clustersim.readers.kernel_rows import KernelRow
from clustersim.workload.shard import FP8_KERNELS

__all__ = ["launches_of"]

_WIDTH = {"bf16": 2, "fp16": 2, "fp32": 4, "fp64": 8, "fp8": 1, "mxfp8": 1}
_WRITTEN = {**_WIDTH, "fp8": 2, "mxfp8": 2}

_STREAM = 2**25
"""Elements of BabelStream's arrays by default (README of UoB-HPC/BabelStream)."""

_STREAM_ARRAYS = {"copy": 2, "mul": 2, "add": 3, "triad": 3, "dot": 2}

_ATTENTION = {
    "flashattention-1": "flash-1",
    "flashattention-2": "flash-2",
    "flashattention-3": "flash-3",
    "cudnn": "cudnn",
    "cudnn fp8": FP8_KERNELS["fp8"],
    "cudnn mxfp8": FP8_KERNELS["mxfp8"],
}

_MODELS = {"Llama-2-70b-hf": "llama-2-70b", "Llama-2-7b-hf": "llama-2-7b"}


def launches_of(row: KernelRow, kind: KernelKind, dtype: str) -> tuple[Kernel, ...] | str:
    """Launches, one after the other, that the time of a row is of; one of the reasons where these are not known.

    Parameters
    ----------
    row : KernelRow
    kind : {"gemm", "attention", "memory"}
        what it is counted among
    dtype : str
        of its operands
    """
    make: Callable[[KernelRow, str], tuple[Kernel, ...] | str] = {
        "gemm": _gemm,
        "attention": _attention,
        "memory": _memory,
    }[kind]
    return make(row, dtype)


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
    """Fused attention; what aiconfigurator collects also rotates queries and keys and writes keys and values away.

    Backward, cuDNN's fp8 kernels compute the whole triangle, window or not: their times with a window grow with the
    square of the tokens.
    """
    counts = row.counts
    name = row.notes.split(";")[0].strip().lower()
    form = "trtllm" if row.source.startswith("aiconfigurator") else _ATTENTION.get(name, "")
    if name.startswith("pytorch"):
        return "a sequence of kernels whose number is not told"
    if row.passes not in ("fwd", "bwd", "fwd+bwd"):
        return "forward or backward is not told"
    if not form or not {"seq_len", "heads", "head_dim", "batch"} <= counts.keys():
        return "no shape"
    s, d, heads = counts["seq_len"], counts["head_dim"], counts["heads"]
    kv_heads, sequences = counts.get("kv_heads", heads), counts["batch"]
    w, value_dim, window = _WIDTH[dtype], counts.get("value_dim", d), min(counts.get("window", s), s)
    pairs2 = window * (2 * s - window) if counts.get("causal") else 2 * s * s
    rows = w * s * (d + value_dim) * (heads + kv_heads) + 4 * s * heads
    forward = Kernel(
        kind="attention",
        dtype=dtype,
        flops=pairs2 * (d + value_dim) * heads * sequences,
        nbytes=sequences * rows,
        m=s,
        n=window,
        k=d,
        batch=sequences * heads,
        form=form,
    )
    if row.source.startswith("aiconfigurator"):
        return (_pass(2 * w * sequences * s * d * (heads + 2 * kv_heads)), forward)
    if row.passes == "fwd":
        return (forward,)
    if form in FP8_KERNELS.values() and counts.get("causal"):
        pairs2, window = s * s, s
    flops = pairs2 * (3 * d + 2 * value_dim) * heads * sequences
    backward = replace(forward, flops=flops, nbytes=2 * forward.nbytes, n=window, backward=True)
    return (backward,) if row.passes == "bwd" else (forward, backward)


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
