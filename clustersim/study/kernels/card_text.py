"""Calibrated kernel models as the TOML file that holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np

from clustersim.hardware.attention_model import AttentionModel
from clustersim.hardware.gemm_model import GemmModel
from clustersim.hardware.kernel_models import KernelModels
from clustersim.hardware.memory_model import MemoryModel
from clustersim.hardware.residual import spread
from clustersim.study.card_text import RESIDUAL
from clustersim.study.kernels.calibration import Fitted, errors
from clustersim.study.kernels.measured import MeasuredKernel

__all__ = ["kernel_card_text"]


def kernel_card_text(fitted: Fitted, *, description: str, start: KernelModels) -> str:
    """The file's content.

    Parameters
    ----------
    fitted : Fitted
    description : str
        the line that ``clustersim list`` prints
    start : KernelModels
        where the search began: numbers that no row depends on say so; parts without rows keep their sources
    """
    models = fitted.models
    lines = [f'description = "{description}"', "", f'usual_attention = "{models.usual_attention}"']
    for name, part in _parts(models):
        lines += ["", f"[{name}]"]
        lines += [f"{item.name} = {_value(item.name, getattr(part, item.name))}" for item in fields(part)]
    residual = {**start.residual, **{name: spread(errors(rows, models)) for name, rows in fitted.rows.items()}}
    lines += ["", "[residual]"]
    lines += [f'"{name}" = {residual[name]:.2g}' for name, _ in _parts(models) if name in residual]
    lines += ["", "[sources]"]
    kept = {
        key: text
        for key, text in start.sources.items()
        if any(_below(part, key) or _below(key, part) for part, _ in _parts(models) if part not in fitted.rows)
    }
    sources = {"residual": f"measured: {RESIDUAL}", **kept, **dict(_measured(fitted, start))}
    return "\n".join([*lines, *(f'"{key}" = "{text}"' for key, text in sources.items())]) + "\n"


def evidence(rows: Sequence[MeasuredKernel], models: KernelModels) -> str:
    """How many rows from where, and how far off they stay."""
    middle, far = np.quantile(np.abs(errors(rows, models)), [0.5, 0.9])
    origins = ", ".join(dict.fromkeys(row.row.source for row in rows)).replace("\\", "/").replace('"', "'")
    return f"least squares over {len(rows)} rows (median error {middle:.1%}, 90th percentile {far:.0%}): {origins}"


def _parts(models: KernelModels) -> Iterator[tuple[str, GemmModel | AttentionModel | MemoryModel]]:
    yield from ((f"gemm.{name}", part) for name, part in models.gemm.items())
    yield from ((f"attention.{name}", part) for name, part in models.attention.items())
    yield "memory", models.memory


def _measured(fitted: Fitted, start: KernelModels) -> Iterator[tuple[str, str]]:
    parts = dict(_parts(fitted.models))
    for name, rows in fitted.rows.items():
        yield name, f"measured: {evidence(rows, fitted.models)}"
        for item in fields(parts[name]):
            key = f"{name}.{item.name}"
            if item.name == "cache_nbytes":
                yield key, start.sources.get(key, "assumed: where the search began")
            elif item.name not in fitted.determined[name]:
                yield key, "assumed: where the search began, no row depends on it"


def _below(key: str, part: str) -> bool:
    return key == part or key.startswith(f"{part}.")


def _value(name: str, number: float) -> str:
    if name.endswith("_latency"):
        return f'"{number * 1e6:.3g} us"'
    if name.endswith("_nbytes"):
        return f'"{number / 2**20:.4g} MiB"'
    return f"{number:.3g}"
