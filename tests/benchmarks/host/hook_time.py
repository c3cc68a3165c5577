"""What DeepSpeed's ZeRO-3 takes its host around the modules of a layer, measured without a GPU.

``python tests/benchmarks/host/hook_time.py`` trains small layers by themselves and under stage 3 on one of eight ranks
whose collectives do nothing, and prints the difference in processor time a layer: hooks before and after each module,
what looks for weights, calls for them and releases them, and what puts gradients into buckets. Layers have the modules
of Llama in transformers and of Megatron-LM's GPT. A bucket of prefetching holds three tenths of a layer and norms stay
gathered, as in models of some billion parameters with DeepSpeed's defaults. On a GPU's host streams, events and markers
come on top. Needs DeepSpeed and numactl's ``device_count``, which is put aside here.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.testing._internal.distributed.fake_pg import FakeStore

__all__ = ["LAYERS", "GptLayer", "HookTime", "LlamaLayer", "hook_time"]

_WIDTH = 32
_RANKS = 8


class _Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(_WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def _product(columns: int, rows: int) -> nn.Linear:
    return nn.Linear(columns, rows, bias=False)


def _heads(part: Tensor) -> Tensor:
    batch, tokens, width = part.shape
    return part.view(batch, tokens, 2, width // 2).transpose(1, 2)


class _LlamaAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (_product(_WIDTH, _WIDTH) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        parts = (_heads(product(x)) for product in (self.query, self.key, self.value))
        met = functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.output(met.transpose(1, 2).reshape(x.shape))


class _LlamaMlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = (_product(_WIDTH, 2 * _WIDTH) for _ in range(2))
        self.down, self.activation = _product(2 * _WIDTH, _WIDTH), nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.gate(x)) * self.up(x))


class _Softmax(nn.Module):
    def forward(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, -1)


class _GptCore(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.softmax, self.dropout = _Softmax(), nn.Dropout(0.0)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return self.dropout(self.softmax(query @ key.transpose(-1, -2))) @ value


class _GptAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query_key_value, self.dense = _product(_WIDTH, 3 * _WIDTH), _product(_WIDTH, _WIDTH)
        self.core = _GptCore()

    def forward(self, x: Tensor) -> Tensor:
        met = self.core(*map(_heads, self.query_key_value(x).chunk(3, -1)))
        return self.dense(met.transpose(1, 2).reshape(x.shape))


class _GptMlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = _product(_WIDTH, 4 * _WIDTH), _product(4 * _WIDTH, _WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.gelu(self.up(x)))


class _Layer(nn.Module):
    def __init__(self, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.first, self.second, self.attention, self.mlp = _Norm(), _Norm(), attention, mlp

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class LlamaLayer(_Layer):
    """Thirteen modules, nine of them with weights."""

    def __init__(self) -> None:
        super().__init__(_LlamaAttention(), _LlamaMlp())


class GptLayer(_Layer):
    """Twelve modules, six of them with weights."""

    def __init__(self) -> None:
        super().__init__(_GptAttention(), _GptMlp())


LAYERS: tuple[type[_Layer], ...] = (LlamaLayer, GptLayer)


@dataclass(frozen=True, kw_only=True, slots=True)
class HookTime:
    """What stage 3 adds to a layer.

    Parameters
    ----------
    forward, backward : float
        processor time [s]
    """

    forward: float
    backward: float


def hook_time(layer: Callable[[], nn.Module], layers: int = 8, repeats: int = 60) -> HookTime:
    """Measure several layers that run one after the other; the 10th percentile of the repeats counts."""
    torch.set_num_threads(1)
    x = torch.randn(1, 8, _WIDTH, dtype=torch.bfloat16)
    alone = nn.Sequential(_product(_WIDTH, _WIDTH), *(layer() for _ in range(layers))).bfloat16()
    sharded = nn.Sequential(_product(_WIDTH, _WIDTH), *(layer() for _ in range(layers)))
    engine = _engine(sharded, sum(weight.numel() for weight in sharded[1].parameters()))

    def gradients_alone(loss: Tensor) -> None:
        loss.backward()

    def gradients_sharded(loss: Tensor) -> None:
        engine.backward(loss)
        engine.step()

    without, under = (
        _quick(model, x, backward, repeats)
        for model, backward in ((alone, gradients_alone), (engine, gradients_sharded))
    )
    forward, backward = ((b - a) / layers for a, b in zip(without, under, strict=True))
    return HookTime(forward=forward, backward=backward)


def _engine(model: nn.Module, weights: int) -> Any:
    """``model`` under stage 3; ``weights``: of one layer."""
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(_RANKS), DS_ACCELERATOR="cpu")
    if not dist.is_initialized():
        dist.init_process_group("fake", rank=0, world_size=_RANKS, store=FakeStore())
    import deepspeed
    from deepspeed.accelerator import get_accelerator

    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    type(get_accelerator()).device_count = lambda self: _RANKS
    stage = {
        "stage": 3,
        "overlap_comm": True,
        "stage3_param_persistence_threshold": _WIDTH + 1,
        "stage3_prefetch_bucket_size": 3 * weights // 10,
        "stage3_max_live_parameters": 3 * weights,
        "stage3_max_reuse_distance": 3 * weights,
        "reduce_bucket_size": weights,
    }
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 10**9,
        "bf16": {"enabled": True},
        "zero_optimization": stage,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
    }
    adam = torch.optim.Adam(model.parameters())
    return deepspeed.initialize(model=model, optimizer=adam, config=config, dist_init_required=False)[0]


def _quick(
    model: Callable[[Tensor], Tensor], x: Tensor, backward: Callable[[Tensor], None], repeats: int
) -> tuple[float, float]:
    """Forward and backward [s]."""
    spent = []
    for _ in range(repeats + 10):
        begun = time.thread_time_ns()
        loss = model(x).float().mean()
        turned = time.thread_time_ns()
        backward(loss)
        spent.append((turned - begun, time.thread_time_ns() - turned))
    forward, back = np.percentile(spent[10:], 10, axis=0) / 1e9
    return float(forward), float(back)


if __name__ == "__main__":
    for layer in LAYERS:
        measured = hook_time(layer)
        print(
            f"{layer.__name__:10} forward {measured.forward * 1e6:5.0f} us, backward {measured.backward * 1e6:5.0f} us"
        )
