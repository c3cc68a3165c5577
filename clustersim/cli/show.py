"""``clustersim show``: settings and cards in full."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from clustersim.cli.output import OK, pairs, print_json, wrapped
from clustersim.cli.quantities import quantities

__all__ = ["show"]


def show(
    kind: str,
    name: str | None = None,
    /,
    *,
    settings: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Show all settings, or one model, graph, topology, job, profile or part.

    Parameters
    ----------
    kind
        keys, model, graph, topology, job, profile, or a kind of part: gpu, kernels, cpu, superchip, link, nic, switch,
        drive, communication, transport
    name
        a card or a file; for a model also a Hugging Face config.json, for a graph also a table of ops; of keys one, or
        a table of them as plan.offload; all keys when left out
    settings
        KEY=VALUE of a topology, as often as needed: nodes, nics_per_node, fabric.KEY, node.KEY
    as_json
        print one JSON object
    """
    from clustersim.faults import BadInput, Fault, nearest_name
    from clustersim.library.card import KINDS

    told = _fields if as_json else quantities
    shown: Mapping[str, Callable[[str], dict[str, Any]]] = {
        "model": _model,
        "graph": _graph,
        "topology": lambda text: _topology(text, settings),
        "job": _job,
        "profile": _profile,
        **{part: lambda text: _part(kind, text, told) for part, folder in KINDS.items() if "parts" in folder},
        "part": lambda text: _any_part(text, told),
    }
    if kind == "keys":
        return _keys(name, as_json=as_json)
    if kind not in shown:
        legal = ["keys", *shown]
        rule = f"must be one of {', '.join(legal)}"
        raise BadInput([Fault(key="kind", value=kind, rule=rule, nearest=nearest_name(kind, legal))])
    if name is None:
        raise BadInput([Fault(key=kind, value=None, rule=f"must be named; all of them: clustersim list {kind}")])
    if settings and kind != "topology":
        raise BadInput([Fault(key="--set", value=settings[0], rule="is for a topology only")])
    answer = shown[kind](name)
    if as_json:
        print_json(answer)
    elif kind == "topology":
        print(_topology_text(answer))
    else:
        notes = answer.pop("warnings", [])
        print(pairs(_lines(answer)))
        for note in notes:
            print(f"warning: {note}", file=sys.stderr)
    return OK


def _keys(part: str | None, *, as_json: bool) -> int:
    """All settings, or the one of a name, or those of a table, as ``plan.offload``."""
    from clustersim.faults import BadInput, Fault, nearest_name
    from clustersim.library.keys import KEYS

    asked = [name for name in KEYS if part is None or name == part or name.startswith(f"{part}.")]
    if not asked:
        tables = {name.rpartition(".")[0] for name in KEYS} - {""}
        rule = "is no key, and no table of keys; all of them: clustersim show keys"
        raise BadInput([Fault(key="keys", value=part, rule=rule, nearest=nearest_name(str(part), [*KEYS, *tables]))])
    rows = []
    for name in asked:
        key = KEYS[name]
        default = key.otherwise if key.default is None else key.default
        words = f"[{', '.join(default)}]" if isinstance(default, tuple) else default
        rows.append({"key": name, "unit": key.unit, "default": words, "legal": key.value.legal, "meaning": key.meaning})
    if as_json:
        print_json({row.pop("key"): row for row in rows})
        return OK
    for row in rows:
        unit = f" [{row['unit']}]" if row["unit"] else ""
        default = str(row["default"]).lower() if isinstance(row["default"], bool) else row["default"]
        print(wrapped(f"{row['key']}: {row['meaning']}{unit}"))
        print(wrapped(f"{row['legal']}; default: {default}", indent="    "))
    return OK


def _model(name: str) -> dict[str, Any]:
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
            field.name: _fields(getattr(model, field.name))
            for field in fields(model)
            if field.name not in ("name", "sources") and getattr(model, field.name) is not None
        },
        "parameters_by_part": model.parameters_by_part,
        "parameters_per_layer": model.parameters_per_layer,
        "sources": dict(model.sources),
        "warnings": [str(warning.message) for warning in told],
    }


def _graph(name: str) -> dict[str, Any]:
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


_TIMES = {"drive": "a drive's time", "cores": "its cores' time"}
"""What resources have that are asked for time and not for bytes."""


def _topology(name: str, settings: Sequence[str] = ()) -> dict[str, Any]:
    import numpy as np

    from clustersim.cli.cluster import load_cluster
    from clustersim.topology.naming import listing, pattern_of
    from clustersim.topology.numa import cpu_numa_nodes
    from clustersim.units import show as with_unit

    topology = load_cluster(name, settings)
    blocks = topology.resources.blocks
    return {
        "name": topology.name,
        "num_nodes": topology.num_nodes,
        "num_gpus": topology.num_devices,
        "gpus": {topology.gpus[k].name: int(n) for k, n in enumerate(np.bincount(topology.gpu_of)) if n},
        "cpus": [cpu.name for cpu in topology.cpus],
        "cpu_numa_nodes": cpu_numa_nodes(topology),
        "num_resources": len(topology.resources),
        "names": [
            {
                "names": listed.names,
                "count": listed.count,
                "num_names": listed.num_names,
                "kind": listed.kind,
                "capacity_text": _TIMES.get(listed.kind) or with_unit(listed.capacity, "B/s"),
                "latency_text": with_unit(listed.latency, "s"),
                "num_links": listed.num_links,
            }
            for listed in listing(topology.resources)
        ],
        "resources": {
            pattern_of(block)[0]: {
                "kind": block.kind,
                "count": block.count,
                "capacity": block.capacity,
                "latency_s": block.latency,
                "num_links": block.num_links,
            }
            for block in blocks
        },
        "tier_bytes": dict(topology.tier_bytes),
        "notes": list(topology.notes),
        "sources": dict(topology.sources),
    }


def _topology_text(answer: Mapping[str, Any]) -> str:
    """What it is, then its resources by the names that settings, traces and tables of links give them."""
    from clustersim.analysis.report import table

    rows = [("names", "count", "kind", "capacity", "latency", "")]
    for listed in answer["names"]:
        remarks = [f"{listed['num_links']} links each"] if listed["num_links"] > 1 else []
        if listed["num_names"] > listed["count"]:
            remarks.append(f"of {listed['num_names']:,} such names")
        rows.append(
            (
                listed["names"],
                f"{listed['count']:,}",
                listed["kind"],
                listed["capacity_text"],
                listed["latency_text"],
                "; ".join(remarks),
            )
        )
    about = {key: value for key, value in answer.items() if key not in ("names", "resources", "notes", "sources")}
    after = {key: answer[key] for key in ("notes", "sources")}
    return "\n".join(
        [
            pairs(_lines(about)),
            "",
            table(rows, indent="", right=(1, 3, 4)),
            "",
            pairs(_lines(after)),
        ]
    )


def _job(name: str) -> dict[str, Any]:
    from clustersim.library.job import load_job

    setup = load_job(name)
    return {
        "name": setup.name,
        "description": setup.description,
        "settings": dict(setup.values),
        "sources": dict(setup.sources),
    }


def _profile(name: str) -> dict[str, Any]:
    from clustersim.study.profile import load_profile

    shown: dict[str, Any] = _fields(load_profile(name))
    return shown


def _part(kind: str, name: str, told: Callable[[Any], Any]) -> dict[str, Any]:
    from clustersim.library.part import load_part

    return {"kind": kind, **told(load_part(kind, name))}


def _any_part(name: str, told: Callable[[Any], Any]) -> dict[str, Any]:
    """A part whose kind is not told: the only one of that name."""
    from clustersim.faults import BadInput, Fault, nearest_name
    from clustersim.library.card import KINDS, list_cards

    parts = {kind: [card for card, _ in found] for kind, found in list_cards().items() if "parts" in KINDS[kind]}
    having = [kind for kind, names in parts.items() if name in names]
    having = [kind for kind in having if kind != "kernels"] or having  # a GPU shows its kernels
    if len(having) == 1:
        return _part(having[0], name, told)
    if having:
        rule = f"is the name of several parts: show {' NAME, show '.join(having)} NAME"
    else:
        rule = "is no part; all of them: clustersim list"
    near = None if having else nearest_name(name, [card for names in parts.values() for card in names])
    raise BadInput([Fault(key="part", value=name, rule=rule, nearest=near)])


def _fields(value: Any) -> Any:
    """A dataclass as a mapping, with the dataclasses in it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _fields(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _fields(item) for key, item in value.items()}
    return value


def _lines(answer: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Dotted key and value of everything in an answer."""
    lines: list[tuple[str, str]] = []
    for key, value in answer.items():
        if isinstance(value, Mapping):
            lines += _lines(value, f"{prefix}{key}.")
        elif isinstance(value, int) and not isinstance(value, bool):
            lines.append((f"{prefix}{key}", f"{value:,}"))
        elif isinstance(value, list | tuple):
            lines.append((f"{prefix}{key}", ", ".join(map(str, value))))
        else:
            lines.append((f"{prefix}{key}", str(value)))
    return lines
