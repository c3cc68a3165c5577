"""What becomes of measured collectives: each row placed on its cluster and predicted, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clustersim.faults import BadInput
from clustersim.hardware.communication import Communication, Transport
from clustersim.library.part import load_part
from clustersim.readers.collective_rows import CollectiveRow
from clustersim.study.calibration import Calibration, errors
from clustersim.study.measured import Measured, locate

__all__ = ["REASONS", "Outcome", "closed_reason", "predict", "shipped_cards"]

_TOLD = {
    "no size": "no size",
    "no time": "no time",
    "no number of ranks": "no number of ranks",
    "one rank: no link is used": "one rank uses no link",
    "is not a collective that is modelled": "the collective is not modelled",
    "no card stands for the hardware": "no card stands for the hardware",
    "ranks on a node of": "more ranks on a node than it has GPUs",
    "on each of": "its numbers of nodes and ranks disagree",
    "; at most": "too large to be laid out",
}
"""Words of those who refuse a row, with its own values around them -> the reason."""

_DOES_NOT_RUN = "does not run on its cluster"

REASONS = (*_TOLD.values(), _DOES_NOT_RUN)
"""Why rows are refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of a row.

    Parameters
    ----------
    measured : Measured, optional
        the row on its cluster; None where none was found
    error : float
        predicted/measured - 1
    reason : str
        why it was refused, one of :data:`REASONS`; empty where it was not
    detail : str
        the reason with the row's own values
    """

    measured: Measured | None = None
    error: float = 0.0
    reason: str = ""
    detail: str = ""


def closed_reason(told: str) -> str:
    """The one of :data:`REASONS` that a refusal with a row's own values gives."""
    return next(reason for words, reason in _TOLD.items() if words in told)


def shipped_cards(rows: Sequence[Measured]) -> Calibration:
    """What the library ships of the cards that the rows' topologies name."""
    nodes: dict[str, Communication] = {name: load_part("communication", name) for name in {row.node for row in rows}}
    networks: dict[str, Transport] = {name: load_part("transport", name) for name in {row.network for row in rows}}
    return Calibration(nodes=nodes, networks=networks)


def predict(rows: Sequence[CollectiveRow]) -> list[Outcome]:
    """Place each row and predict its time with the shipped cards; rows that differ only in size at once."""
    outcomes = [_place(row) for row in rows]
    alike: dict[tuple[object, ...], list[int]] = {}
    placed: dict[int, Measured] = {}
    for i, outcome in enumerate(outcomes):
        one = outcome.measured
        if one is not None:
            placed[i] = one
            key = id(one.topology), one.devices.tobytes(), one.row.collective, one.algorithm, one.node, one.network
            alike.setdefault(key, []).append(i)
    cards = shipped_cards(list(placed.values()))
    for index in alike.values():
        try:
            found = errors([placed[i] for i in index], cards).tolist()
        except BadInput as refusal:
            for i in index:
                outcomes[i] = replace(outcomes[i], reason=_DOES_NOT_RUN, detail=_text(refusal))
        else:
            for i, error in zip(index, found, strict=True):
                outcomes[i] = replace(outcomes[i], error=error)
    return outcomes


def _place(row: CollectiveRow) -> Outcome:
    """Find the cluster of a row, or all that is wrong with it; the first of these is its reason."""
    try:
        placed, refused = locate([row])
    except BadInput as refusal:  # its card has no network, or one that does not reach so many nodes
        return Outcome(reason=_DOES_NOT_RUN, detail=_text(refusal))
    if refused:
        return Outcome(reason=closed_reason(refused[0].reasons[0]), detail="; ".join(refused[0].reasons))
    return Outcome(measured=placed[0])


def _text(refusal: BadInput) -> str:
    return "; ".join(f"{fault.key} {fault.value} {fault.rule}" for fault in refusal.faults)
