"""Measured collectives beside their predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from clustersim.faults import BadInput, Fault
from clustersim.hardware.communication import Communication, Transport
from clustersim.readers import collective_rows
from clustersim.readers.collective_rows import CollectiveRow, Unused
from clustersim.study.calibration import Calibration
from clustersim.study.left_out import COLUMNS, left_out_errors
from clustersim.study.measured import Measured, no_card
from clustersim.study.prediction import Outcome, closed_reason, predict, shipped_cards
from clustersim.study.row_kind import RowKind
from clustersim.study.validated_row import ValidatedRow

__all__ = ["COLLECTIVES", "LARGE", "NOT_KNOWN", "decade"]

LARGE = 2**20
"""Payload from which a row counts among the large ones of the totals [B]."""

NOT_KNOWN = "not known"
"""Label ``network`` of rows whose source does not say what they ran over."""

_PUBLISHED = ("collective", "hardware", "group", "confidence", "algo", "nccl_version", "nodes", "gpus")

_LABELS = ("source", "family", *_PUBLISHED, "size", "topology", "communication", "transport", "network")
"""Columns of the file; the decade of the size; the cards of topology, communication library and transport; and what is
known of the network."""

_NOT_PLACED = dict.fromkeys(("topology", "communication", "transport", "network"), "no card")
_ORIGINS = ("measured", "interpolated", "modelled", "assumed")

_MEANING = {
    "card": "a card stands for the hardware as published",
    "library": "what NCCL or RCCL costs on such nodes is assumed: out of domain",
    "placement": "how many ranks share a node is not given",
    "network": "the network between nodes is the card's, with the ports that are published",
    "unknown network": "the network is not known, that of the card is taken: out of domain",
    "clock": "the program's clock holds time of the host as well",
    "algorithm": "the algorithm is the one that the row says it ran",
}


def decade(nbytes: int | None) -> str:
    """Between which powers of ten a payload lies: ``10 kB to 100 kB``, a kB being 1000 B."""
    if not nbytes:
        return "no size"
    low = 10 ** (len(str(nbytes)) - 1)
    return f"{_round_size(low)} to {_round_size(10 * low)}" if low >= 1000 else "below 1 kB"


def _round_size(nbytes: int) -> str:
    power = min((len(str(nbytes)) - 1) // 3, 5)
    return f"{nbytes // 1000**power} {('B', 'kB', 'MB', 'GB', 'TB', 'PB')[power]}"


def _check(path: Path, leave_out: str | None) -> list[Fault]:
    try:
        rows, _, _ = collective_rows.read(path)
    except BadInput as error:
        return list(error.faults)
    rule = "must be given where groups are left out"
    return [
        Fault(file=str(path), key=f"line {row.line}, column {leave_out}", value="", rule=rule)
        for row in rows
        if leave_out is not None and not getattr(row, leave_out)
    ]


def _families(path: Path) -> list[str]:
    rows, unused, _ = collective_rows.read(path)
    told = [(row.line, row.family, row.source) for row in rows]
    told += [(row.line, row.given.get("family", ""), row.given.get("source", "")) for row in unused]
    return list(dict.fromkeys(_family(path, family, source) for _, family, source in sorted(told)))


def _predict(
    path: Path,
    *,
    leave_out: str | None,
    family: str | None,
    processes: int,
    progress: Callable[[float], None] | None,
) -> tuple[tuple[ValidatedRow, ...], tuple[str, ...]]:
    """All rows together, on one process: those that differ only in size cost as much as one."""
    del processes
    rows, unused, notes = collective_rows.read(path)
    outcomes = predict(rows)
    placed = [outcome.measured for outcome in outcomes if outcome.measured is not None]
    cards = shipped_cards(placed)
    report = [_validated(path, row, outcome, cards) for row, outcome in zip(rows, outcomes, strict=True)]
    if leave_out is not None:
        report = _with_left_out(report, outcomes, leave_out, progress)
    report += [_aside(path, row) for row in unused]
    report.sort(key=lambda row: row.line)
    return tuple(row for row in report if family in (None, row.family)), tuple(notes)


def _totals(rows: Sequence[ValidatedRow]) -> dict[str, Sequence[ValidatedRow]]:
    """All rows; large and small ones, those of low confidence apart; the same without unknown networks."""
    found: dict[str, Sequence[ValidatedRow]] = {"all rows": rows}
    for networks, confidence, large in product(("", ", known networks"), ("", ", low confidence"), (True, False)):
        found[f"{'1 MiB and above' if large else 'below 1 MiB'}{confidence}{networks}"] = [
            row
            for row in rows
            if row.nbytes is not None
            and (row.nbytes >= LARGE) == large
            and (row.labels.get("confidence") == "low") == bool(confidence)
            and not (networks and row.labels.get("network") == NOT_KNOWN)
        ]
    return found


def _with_left_out(
    report: Sequence[ValidatedRow],
    outcomes: Sequence[Outcome],
    column: str,
    progress: Callable[[float], None] | None,
) -> list[ValidatedRow]:
    placed = {i: one.measured for i, one in enumerate(outcomes) if one.measured is not None and not one.reason}
    found = iter(left_out_errors(list(placed.values()), column, progress=progress).tolist())
    return [replace(row, left_out_error=next(found)) if i in placed else row for i, row in enumerate(report)]


def _validated(path: Path, row: CollectiveRow, outcome: Outcome, cards: Calibration) -> ValidatedRow:
    one = outcome.measured
    published = {name: getattr(row, name) for name in _PUBLISHED if name not in ("nodes", "gpus")}
    labels = published | {"nodes": str(row.num_nodes or ""), "gpus": str(row.num_ranks), "size": decade(row.nbytes)}
    labels |= _NOT_PLACED
    if one is not None:
        labels |= {"topology": one.card, "communication": one.node, "transport": one.network, "network": _network(one)}
    common = _common(path, row.line, row.id, row.family, row.source)
    base = ValidatedRow(**common, measured=row.time_us, nbytes=row.nbytes, labels=labels)
    if one is None or outcome.reason:
        return replace(base, reason=outcome.reason, detail=outcome.detail)
    guessed = [card.name for card in _used(one, cards) if _is_guessed(card)]
    origin = "assumed" if guessed else "modelled"
    return replace(
        base,
        predicted=row.time_us * (1 + outcome.error),
        in_domain=labels["network"] != NOT_KNOWN and not guessed,
        coverage={name: float(name == origin) for name in _ORIGINS},
        assumptions=tuple(_assumptions(one, guessed)),
    )


def _aside(path: Path, row: Unused) -> ValidatedRow:
    """A row that the reader keeps aside."""
    given = row.given
    took, nbytes = given.get("time_us"), int(float(given.get("size_bytes") or 0)) or None
    return ValidatedRow(
        **_common(path, row.line, row.id, given.get("family", ""), given.get("source", "")),
        measured=float(took) if took else None,
        nbytes=nbytes,
        reason=closed_reason(row.reasons[0]),
        detail="; ".join(filter(None, (*row.reasons, no_card(given.get("hardware", ""))))),
        labels={name: given.get(name, "") for name in _PUBLISHED} | {"size": decade(nbytes)} | _NOT_PLACED,
    )


def _common(path: Path, line: int, name: str, family: str, source: str) -> dict[str, Any]:
    return {
        "id": name or f"line {line}",
        "line": line,
        "family": _family(path, family, source),
        "source": source,
        "metric": "time",
        "unit": "us",
    }


def _family(path: Path, family: str, source: str) -> str:
    return family or f"{path.stem}:{source or 'no source'}"


def _network(one: Measured) -> str:
    """What is known of the network that a row ran over."""
    if one.topology.num_nodes == 1:
        return "not used"
    return "known" if one.between.known else NOT_KNOWN


def _used(one: Measured, cards: Calibration) -> list[Communication | Transport]:
    """Cards whose numbers are in the row's time."""
    node, network = cards.nodes[one.node], cards.networks[one.network]
    return [node] if one.topology.num_nodes == 1 else [node, network]


def _is_guessed(card: Communication | Transport) -> bool:
    """Whether no number of a card comes from a measurement."""
    return all(text.startswith("assumed") for text in card.sources.values())


def _assumptions(one: Measured, guessed: Sequence[str]) -> Iterator[str]:
    row = one.row
    yield f"card: {one.card} stands for {row.hardware}"
    for name in guessed:
        yield f"library: the numbers of {name} are assumed, nobody has measured such hardware"
    if row.ranks_per_node is None:
        yield "placement: the ranks of a node are not given, as many as fit"
    if one.topology.num_nodes > 1:
        kind = "unknown network" if _network(one) == NOT_KNOWN else "network"
        yield f"{kind}: {one.between.told}"
    if one.clock.added:
        yield f"clock: {one.clock.added * 1e6:g} us before each call are measured with it"
    if one.clock.least:
        yield f"clock: a call takes the host {one.clock.least * 1e6:g} us or more"
    if one.algorithm is not None:
        yield f"algorithm: {one.algorithm}, as published"


COLLECTIVES = RowKind(
    name="collectives",
    labels=_LABELS,
    tables=("source", "collective", "size", "communication"),
    titles={"size": "size (1 kB = 1000 B)", "communication": "communication card (hardware family)"},
    meaning=_MEANING,
    leave_out=COLUMNS,
    detect=collective_rows.detect,
    check=_check,
    families=_families,
    predict=_predict,
    totals=_totals,
)
"""Times of collectives by size, on a cluster of the library."""
