"""What a layer takes the host that runs it, forward and backward, measured without a GPU.

``python tests/benchmarks/host/layer_time.py`` runs layers of Llama in PyTorch, line by line, on tensors so small that
their arithmetic takes no time of note, and prints the processor time of a layer. What is left is what issues kernels:
modules, views, allocations and autograd. On a GPU's host each operator that launches a kernel takes the driver's time
beside it. The layers run one after the other, since a loop over one operator finds its instructions in the caches. A
machine that others use at the same time shows up to a third more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Layer", "LayerTime", "layer_time"]

_VIEWS = frozenset(
    {
        "_unsafe_view",
        "alias",
        "as_strided",
        "detach",
        "empty",
        "empty_like",
        "empty_strided",
        "expand",
        "new_empty",
        "permute",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "t",
        "transpose",
        "unbind",
        "unsqueeze",
        "view",
    }
)
"""Operators that launch nothing."""


class _Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x * scale)


class Layer(nn.Module):
    """One of Llama, each line an operator of the library.

    Parameters
    ----------
    width, heads : int
        of the residual stream, and over how many heads it is split
    """

    def __init__(self, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.first, self.second = _Norm(width), _Norm(width)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """``x`` of shape (batch, tokens, width); cosines and sines of shape (tokens, width of a head)."""
        batch, tokens, width = x.shape
        normed = self.first(x)
        q, k, v = (
            product(normed).view(batch, tokens, self.heads, self.head).transpose(1, 2)
            for product in (self.query, self.key, self.value)
        )
        q, k = (part * cos + _turned(part) * sin for part in (q, k))
        met = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(met.transpose(1, 2).reshape(batch, tokens, width))
        normed = self.second(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


def _turned(part: Tensor) -> Tensor:
    left, right = part.chunk(2, dim=-1)
    return torch.cat((-right, left), dim=-1)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerTime:
    """Of one layer.

    Parameters
    ----------
    forward, backward, inference : float
        processor time of the pass, the last without autograd [s]
    forward_launches, backward_launches : float
        operators of it that would launch a kernel
    """

    forward: float
    backward: float
    inference: float
    forward_launches: float
    backward_launches: float


class _Launches(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += str(func).removeprefix("aten.").split(".")[0] not in _VIEWS
        return func(*args, **(kwargs or {}))


def layer_time(layers: int = 8, repeats: int = 100) -> LayerTime:
    """Measure one layer of several that run one after the other; the 10th percentile of the repeats counts."""
    torch.set_num_threads(1)
    stack = nn.ModuleList(Layer() for _ in range(layers))
    x = torch.randn(1, 8, 32, requires_grad=True)
    cos, sin = torch.randn(8, 16), torch.randn(8, 16)

    def forward() -> Tensor:
        y = x
        for layer in stack:
            y = layer(y, cos, sin)
        return y

    def inference() -> None:
        with torch.no_grad():
            forward()

    gradient = torch.randn_like(forward())
    ahead, both, alone = (
        _quick(work, repeats) / layers for work in (forward, lambda: forward().backward(gradient), inference)
    )
    counts = []
    for work in (forward, lambda: forward().backward(gradient)):
        with _Launches() as launches:
            work()
        counts.append(launches.count / layers)
    return LayerTime(
        forward=ahead,
        backward=both - ahead,
        inference=alone,
        forward_launches=counts[0],
        backward_launches=counts[1] - counts[0],
    )


def _quick(work: Callable[[], object], repeats: int) -> float:
    spent = []
    for _ in range(repeats + 10):
        before = time.thread_time_ns()
        work()
        spent.append(time.thread_time_ns() - before)
    return float(np.percentile(spent[10:], 10)) / 1e9


if __name__ == "__main__":
    measured = layer_time()
    print(f"forward   {measured.forward * 1e6:6.0f} us, {measured.forward_launches:.0f} launches")
    print(f"backward  {measured.backward * 1e6:6.0f} us, {measured.backward_launches:.0f} launches")
    print(f"inference {measured.inference * 1e6:6.0f} us")
