"""``clustersim show``: settings and cards in full."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from clustersim.cli.fields import dotted_lines, plain_fields
from clustersim.cli.output import OK, pairs, print_json
from clustersim.cli.quantities import quantities
from clustersim.cli.shown_cards import (
    shown_any_part,
    shown_graph,
    shown_job,
    shown_model,
    shown_part,
    shown_profile,
    shown_residual,
)
from clustersim.cli.shown_keys import show_keys
from clustersim.cli.shown_topology import shown_topology, topology_text

__all__ = ["show"]


def show(
    kind: str,
    name: str | None = None,
    /,
    *,
    settings: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Show all settings, or one model, graph, topology, job, profile, residual or part.

    Parameters
    ----------
    kind
        keys, model, graph, topology, job, profile, residual, or a kind of part: gpu, kernels, cpu, superchip, link,
        nic, switch, drive, communication, transport
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

    told = plain_fields if as_json else quantities
    shown: Mapping[str, Callable[[str], dict[str, Any]]] = {
        "model": shown_model,
        "graph": shown_graph,
        "topology": lambda text: shown_topology(text, settings),
        "job": shown_job,
        "profile": shown_profile,
        "residual": shown_residual,
        **{part: lambda text: shown_part(kind, text, told) for part, folder in KINDS.items() if "parts" in folder},
        "part": lambda text: shown_any_part(text, told),
    }
    if kind == "keys":
        return show_keys(name, as_json=as_json)
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
        print(topology_text(answer))
    else:
        notes = answer.pop("warnings", [])
        print(pairs(dotted_lines(answer)))
        for note in notes:
            print(f"warning: {note}", file=sys.stderr)
    return OK
