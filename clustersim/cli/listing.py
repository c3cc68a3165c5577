"""``clustersim list``: the cards that can be named."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from clustersim.cli.output import OK, described, fault_line, print_json

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
    from clustersim.library.card import KINDS, broken_cards, list_cards

    plural = {"jobs": "job", "models": "model", "topologies": "topology"}
    wanted = plural.get(kind or "", (kind or "").removesuffix("s") if kind not in KINDS else kind)
    if kind is not None and wanted not in KINDS:
        rule = f"must be one of {', '.join(KINDS)}"
        raise BadInput([Fault(key="kind", value=kind, rule=rule, nearest=nearest_name(kind, KINDS))])
    cards = {name: found for name, found in list_cards().items() if kind is None or name == wanted}
    for fault in broken_cards():
        print(f"warning: left out: {fault_line(fault)}", file=sys.stderr)
    if as_json:
        print_json(
            {name: [{"name": card, "description": about} for card, about in found] for name, found in cards.items()}
        )
        return OK
    order = ["job", "model", "topology", *cards]
    for name in dict.fromkeys(name for name in order if name in cards):
        print(f"{name} ({len(cards[name])})")
        longest = max((len(card) for card, _ in cards[name]), default=0)
        for card, about in cards[name]:
            print(described(f"  {card:<{longest}}  ", about))
    return OK
