"""A GPU as PyTorch drives it: what each kernel is there, and the marks and caches a stopwatch needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kernel_cases import Case

from clustersim.hardware.kernel import Kernel

__all__ = ["NotMeasuredError", "TorchDevice", "why_not"]

_FLUSHED = 2**29
"""Bytes that one flush writes: four times the L2 cache of a B200, the largest of NVIDIA's, and 0.1 ms at 5 TB/s."""

_COLUMNS = 4096
"""Columns of the rows that norm and softmax are taken over."""

_SLACK = 0.01
"""How far from its bytes a pass of whole rows may be."""

_BLOCKS = {"mxfp8": 32, "nvfp4": 16}
_SCALE_ROWS, _SCALE_COLUMNS = 128, 4
"""Elements that share a scale, and the tiles that scales are stored in: cuBLAS, 1D block scaling factors layout."""

_SINCE = {"tf32": (8, 0), "bf16": (8, 0), "fp8": (8, 9), "mxfp8": (10, 0), "nvfp4": (10, 0)}
"""Compute capability with which matrix units came to have a dtype (CUDA programming guide, table of capabilities)."""

Work = Callable[[], object]


class NotMeasuredError(Exception):
    """Why a kernel cannot be measured here."""


def why_not() -> str:
    """Why nothing can be measured on this machine; empty when it can."""
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    return "" if torch.cuda.is_available() else f"PyTorch {torch.__version__} sees no GPU here"


class TorchDevice:
    """The first GPU, or whatever ``place`` names.

    Parameters
    ----------
    place : str
        a PyTorch device; ``cpu`` has neither marks nor graphs, but runs every kernel that is not of a GPU alone
    """

    def __init__(self, place: str = "cuda") -> None:
        import torch

        self.torch, self.place = torch, place
        self._flushed = torch.empty(_FLUSHED if place != "cpu" else 1, dtype=torch.uint8, device=place)
        self._tiny = torch.zeros(32, device=place)

    @property
    def name(self) -> str:
        """As the driver has it."""
        return str(self.torch.cuda.get_device_name())

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Of products that the device has matrix units for, and fp32."""
        has = self.torch.cuda.get_device_capability()
        return ("fp32", "fp16", *(dtype for dtype, since in _SINCE.items() if has >= since))

    def flush(self) -> None:
        """Write more than the last-level cache holds."""
        self._flushed.zero_()

    def mark(self) -> Any:
        """An event behind all work so far."""
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, first: Any, second: Any) -> float:
        """Seconds from one event to another."""
        second.synchronize()
        return float(first.elapsed_time(second)) / 1e3

    def wait(self) -> None:
        """Return when the stream is empty."""
        if self.place != "cpu":
            self.torch.cuda.synchronize()

    def tiny(self) -> None:
        """The smallest kernel: 32 additions that depend on those before."""
        self._tiny.add_(1.0)

    def graph(self, work: Work) -> Work:
        """What replays ``work`` as a CUDA graph."""
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # a graph is captured beside the default stream, and after a run
            work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        replay: Work = graph.replay
        return replay

    def copy(self, source: str, target: str, nbytes: int) -> Work:
        """A copy of ``nbytes`` between ``pinned``, ``pageable`` and ``device`` or ``device:1`` memory."""
        from_, to = (self._memory(where, nbytes) for where in (source, target))
        block = "pageable" in (source, target)
        return lambda: to.copy_(from_, non_blocking=not block)

    def work(self, case: Case) -> Work:
        """What launches a kernel once, its operands random numbers: zeros would draw less power.

        Raises
        ------
        NotMeasuredError
            when PyTorch has no single kernel for it
        """
        kind = {"gemm": self._product, "attention": self._attention, "memory": self._pass}[case.kernel.kind]
        return kind(case)

    def _product(self, case: Case) -> Work:
        torch, kernel = self.torch, case.kernel
        m, n, k, batch = kernel.m, kernel.n, kernel.k, kernel.batch
        if kernel.dtype in ("fp8", *_BLOCKS):
            if batch > 1:
                raise NotMeasuredError(f"PyTorch has no batched product of {kernel.dtype}")
            return self._scaled_product(kernel)
        torch.backends.cuda.matmul.fp32_precision = "tf32" if kernel.dtype == "tf32" else "ieee"
        kind = self._dtype({"tf32": "fp32"}.get(kernel.dtype, kernel.dtype))
        left, right = self._random(batch, m, k, dtype=kind), self._random(batch, n, k, dtype=kind).transpose(1, 2)
        result = torch.empty(batch, m, n, dtype=kind, device=self.place)
        if batch == 1:
            return lambda: torch.mm(left[0], right[0], out=result[0])
        return lambda: torch.bmm(left, right, out=result)

    def _scaled_product(self, kernel: Kernel) -> Work:
        from torch.nn.functional import ScalingType, SwizzleType, scaled_mm

        torch, dtype = self.torch, kernel.dtype
        operands = [self._narrow(rows, kernel.k, dtype) for rows in (kernel.m, kernel.n)]
        if dtype == "fp8":
            scales = [torch.ones(1, device=self.place) for _ in operands]
            recipe, swizzle = ScalingType.TensorWise, None
        else:
            block = _BLOCKS[dtype]
            kind = torch.float8_e8m0fnu if dtype == "mxfp8" else torch.float8_e4m3fn
            columns = math.ceil(math.ceil(kernel.k / block) / _SCALE_COLUMNS) * _SCALE_COLUMNS
            rows = [math.ceil(side / _SCALE_ROWS) * _SCALE_ROWS for side in (kernel.m, kernel.n)]
            scales = [torch.ones(side * columns, device=self.place).to(kind) for side in rows]
            recipe = ScalingType.BlockWise1x32 if dtype == "mxfp8" else ScalingType.BlockWise1x16
            swizzle = SwizzleType.SWIZZLE_32_4_4
        left, right = operands[0], operands[1].t()
        return lambda: scaled_mm(
            left,
            right,
            scales[0],
            recipe,
            scales[1],
            recipe,
            swizzle_a=swizzle,
            swizzle_b=swizzle,
            output_dtype=torch.bfloat16,
        )

    def _narrow(self, rows: int, columns: int, dtype: str) -> Any:
        torch = self.torch
        if dtype == "nvfp4":  # two in a byte, and any byte is two numbers
            packed = torch.randint(0, 256, (rows, columns // 2), dtype=torch.uint8, device=self.place)
            return packed.view(torch.float4_e2m1fn_x2)
        return self._random(rows, columns, dtype=torch.bfloat16).to(torch.float8_e4m3fn)

    def _attention(self, case: Case) -> Work:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        torch, kernel = self.torch, case.kernel
        back_ends = {"flash-2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
        if kernel.form and kernel.form not in back_ends:
            raise NotMeasuredError(f"PyTorch has no attention kernel {kernel.form}")
        if case.causal and kernel.m != kernel.n:
            raise NotMeasuredError("PyTorch lays a causal mask over other queries than keys from the first key on")
        kind = self._dtype(kernel.dtype)
        shapes = [(1, kernel.batch, rows, kernel.k) for rows in (kernel.m, kernel.n, kernel.n)]
        q, k, v = (self._random(*shape, dtype=kind).requires_grad_(kernel.backward) for shape in shapes)

        def forward() -> Any:
            if not kernel.form:
                return scaled_dot_product_attention(q, k, v, is_causal=case.causal)
            with sdpa_kernel(back_ends[kernel.form]):
                return scaled_dot_product_attention(q, k, v, is_causal=case.causal)

        if not kernel.backward:
            return forward
        result = forward()
        gradient = torch.randn_like(result)
        return lambda: torch.autograd.grad(result, (q, k, v), gradient, retain_graph=True)

    def _pass(self, case: Case) -> Work:
        torch, kernel = self.torch, case.kernel
        functions = torch.nn.functional
        kind = self._dtype(kernel.dtype)
        num_arrays = {"": 3, "elementwise": 3, "norm": 2, "softmax": 2, "activation": 2}.get(kernel.form)
        if num_arrays is None:
            raise NotMeasuredError(f"PyTorch has no single kernel for a pass of form {kernel.form}")
        elements = kernel.nbytes / num_arrays / kind.itemsize
        rows = max(1, round(elements / _COLUMNS))
        if abs(rows * _COLUMNS / elements - 1) > _SLACK:
            raise NotMeasuredError(f"{kernel.nbytes} B are no whole rows of {_COLUMNS} numbers")
        x, y = (self._random(rows, _COLUMNS, dtype=kind) for _ in range(2))
        weight = torch.ones(_COLUMNS, dtype=kind, device=self.place)
        result = torch.empty_like(x)
        works: dict[str, Work] = {
            "norm": lambda: functions.layer_norm(x, (_COLUMNS,), weight, weight),
            "softmax": lambda: torch.softmax(x, -1, out=result),
            "activation": lambda: functions.gelu(x, approximate="tanh"),
        }
        return works.get(kernel.form, lambda: torch.add(x, y, out=result))

    def _random(self, *shape: int, dtype: Any) -> Any:
        return self.torch.randn(*shape, dtype=dtype, device=self.place)

    def _dtype(self, name: str) -> Any:
        torch = self.torch
        kinds = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
        if name not in kinds:
            raise NotMeasuredError(f"PyTorch has no such kernel in {name}")
        return kinds[name]

    def _memory(self, where: str, nbytes: int) -> Any:
        torch = self.torch
        if where.startswith("device"):
            place = self.place if where == "device" else f"{self.place}{where.removeprefix('device')}"
            return torch.zeros(nbytes, dtype=torch.uint8, device=place)
        return torch.zeros(nbytes, dtype=torch.uint8, pin_memory=where == "pinned")
