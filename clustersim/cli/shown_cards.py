"""Cards in full, but for topologies."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from clustersim.cli.fields import plain_fields

__all__ = ["shown_any_part", "shown_graph", "shown_job", "shown_model", "shown_part", "shown_profile", "shown_residual"]


def shown_model(name: str) -> dict[str, Any]:
    """A model: its counts of parameters, layers by kind, shapes and sources."""
    from clustersim.library.model import load_model

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = load_model(name)
    layers: Counter[str] = Counter()
    for run in model.layer_runs():
        layers[run.kind] += run.count
    return {
        "name": model.name,
        "architecture": model.architecture,
        "num_parameters": model.num_parameters,
        "num_active_parameters": model.num_active_parameters,
        "num_trainable_parameters": model.num_trainable_parameters,
        "matmul_parameters": model.matmul_parameters,
        "mtp_parameters": model.mtp_parameters,
        "layers": dict(layers),
        "shapes": {
            field.name: plain_fields(getattr(model, field.name))
            for field in fields(model)
            if field.name not in ("name", "sources") and getattr(model, field.name) is not None
        },
        "parameters_by_part": model.parameters_by_part,
        "parameters_per_layer": model.parameters_per_layer,
        "sources": dict(model.sources),
        "warnings": [str(warning.message) for warning in told],
    }


def shown_graph(name: str) -> dict[str, Any]:
    """A data-flow graph: its ops, work and sources."""
    from clustersim.library.graph import load_graph

    graph = load_graph(name)
    per_sample = [op for op in graph.ops if op.per_sample]
    return {
        "name": graph.name,
        "num_ops": len(graph.ops),
        "num_parameters": graph.parameters,
        "flops_per_sample": sum(op.flops for op in per_sample),
        "gradient_bytes": sum(op.gradient for op in graph.ops),
        "dtypes": sorted({op.dtype for op in graph.ops}),
        "has_backward": graph.has_backward,
        "has_device": any(op.device is not None for op in graph.ops),
        "sources": dict(graph.sources),
    }


def shown_job(name: str) -> dict[str, Any]:
    """A job: its settings and their sources."""
    from clustersim.library.job import load_job

    setup = load_job(name)
    return {
        "name": setup.name,
        "description": setup.description,
        "settings": dict(setup.values),
        "sources": dict(setup.sources),
    }


def shown_profile(name: str) -> dict[str, Any]:
    """A software profile: its switches and their sources."""
    from clustersim.study.profile import load_profile

    shown: dict[str, Any] = plain_fields(load_profile(name))
    return shown


def shown_residual(name: str) -> dict[str, Any]:
    """What simulated steps miss: its numbers and their sources."""
    from clustersim.analysis.step_residual import load_step_residual

    shown: dict[str, Any] = plain_fields(load_step_residual(name))
    return shown


def shown_part(kind: str, name: str, told: Callable[[Any], Any]) -> dict[str, Any]:
    """A part of a kind, its dataclasses as ``told`` has them."""
    from clustersim.library.part import load_part

    return {"kind": kind, **told(load_part(kind, name))}


def shown_any_part(name: str, told: Callable[[Any], Any]) -> dict[str, Any]:
    """A part whose kind is not told: the only one of that name."""
    from clustersim.faults import BadInput, Fault, nearest_name
    from clustersim.library.card import KINDS, list_cards

    parts = {kind: [card for card, _ in found] for kind, found in list_cards().items() if "parts" in KINDS[kind]}
    having = [kind for kind, names in parts.items() if name in names]
    having = [kind for kind in having if kind != "kernels"] or having  # a GPU shows its kernels
    if len(having) == 1:
        return shown_part(having[0], name, told)
    if having:
        rule = f"is the name of several parts: show {' NAME, show '.join(having)} NAME"
    else:
        rule = "is no part; all of them: clustersim list"
    near = None if having else nearest_name(name, [card for names in parts.values() for card in names])
    raise BadInput([Fault(key="part", value=name, rule=rule, nearest=near)])
