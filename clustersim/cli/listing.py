"""``clustersim list``: the cards that can be named."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from clustersim.analysis.report import table
from clustersim.cli.output import OK, print_json

__all__ = ["list_"]


def list_(
    kind: str | None = None,
    /,
    *,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """List jobs, models, topologies, profiles and parts.

    Parameters
    ----------
    kind
        one kind only: job, model, graph, topology, gpu, kernels, cpu, superchip, link, nic, switch, drive,
        communication, transport, profile, residual
    as_json
        print one JSON object: kind -> cards
    """
    from clustersim.faults import BadInput, Fault, nearest_name
    from clustersim.library.card import KINDS, list_cards

    plural = {"jobs": "job", "models": "model", "topologies": "topology"}
    wanted = plural.get(kind or "", (kind or "").removesuffix("s") if kind not in KINDS else kind)
    if kind is not None and wanted not in KINDS:
        rule = f"must be one of {', '.join(KINDS)}"
        raise BadInput([Fault(key="kind", value=kind, rule=rule, nearest=nearest_name(kind, KINDS))])
    cards = {name: found for name, found in list_cards().items() if kind is None or name == wanted}
    if as_json:
        print_json(
            {name: [{"name": card, "description": about} for card, about in found] for name, found in cards.items()}
        )
        return OK
    order = ["job", "model", "topology", *cards]
    for name in dict.fromkeys(name for name in order if name in cards):
        print(f"{name} ({len(cards[name])})")
        print(table(cards[name]))
    return OK
