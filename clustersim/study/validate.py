"""A file of measured collectives or training steps -> predictions beside the measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.communication import Communication, Transport
from clustersim.readers import collective_rows, step_rows
from clustersim.readers.collective_rows import CollectiveRow, Unused
from clustersim.study.calibration import Calibration
from clustersim.study.left_out import COLUMNS, left_out_errors
from clustersim.study.measured import Measured
from clustersim.study.networks import is_known
from clustersim.study.prediction import Outcome, closed_reason, predict, shipped_cards
from clustersim.study.steps.report import StepValidation
from clustersim.study.steps.validate import read_rows, unknown_family, validate_steps
from clustersim.study.validated_row import ValidatedRow
from clustersim.study.validation import NOT_KNOWN, Validation

__all__ = ["LABELS", "decade", "input_faults", "validate"]

_PUBLISHED = ("collective", "hardware", "group", "confidence", "algo", "nccl_version", "nodes", "gpus")

LABELS = ("source", "family", *_PUBLISHED, "size", "topology", "communication", "transport", "network")
"""What errors can be told by: columns of the file; the decade of the size; the cards of topology, communication library
and transport; and what is known of the network."""

_NOT_PLACED = dict.fromkeys(("topology", "communication", "transport", "network"), "no card")
_ORIGINS = ("measured", "interpolated", "modelled", "assumed")


def validate(
    path: str | Path,
    *,
    leave_out: str | None = None,
    family: str | None = None,
    processes: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Validation | StepValidation:
    """Predict every row of a file of measurements with the shipped cards.

    Parameters
    ----------
    path : str or Path
        a CSV as :func:`clustersim.readers.collective_rows.read` or :func:`clustersim.readers.step_rows.read` takes it
    leave_out : {"group", "source"}, optional
        of collectives: also give errors under numbers calibrated on all rows but those that have the row's value in
        this column; minutes on hundreds of rows
    family : str, optional
        rows of this one only
    processes : int
        of steps: that simulate beside each other
    progress : callable, optional
        called with the fraction of the work that is done

    Returns
    -------
    Validation or StepValidation
        all rows of the file, or of the family: predicted, or refused with a reason

    Raises
    ------
    BadInput
        with every fault of the file, of ``leave_out`` and of ``family``
    """
    path = Path(path)
    faults = input_faults(path, leave_out, family)
    if faults:
        raise BadInput(faults)
    if step_rows.detect(path):
        return validate_steps(path, family=family, processes=processes, progress=progress)
    rows, unused, notes = _read(path, leave_out)
    outcomes = predict(rows)
    placed = [outcome.measured for outcome in outcomes if outcome.measured is not None]
    cards = shipped_cards(placed)
    report = [_validated(path, row, outcome, cards) for row, outcome in zip(rows, outcomes, strict=True)]
    if leave_out is not None:
        report = _with_left_out(report, outcomes, leave_out, progress)
    report += [_aside(path, row) for row in unused]
    report.sort(key=lambda row: row.line)
    report = [row for row in report if family in (None, row.family)]
    return Validation(file=str(path), rows=tuple(report), notes=tuple(notes), left_out=leave_out)


def input_faults(path: str | Path, leave_out: str | None = None, family: str | None = None) -> list[Fault]:
    """What :func:`validate` would refuse, without its work."""
    path = Path(path)
    try:
        if step_rows.detect(path):
            return [*_no_calibration(leave_out), *_step_faults(path, family)]
        rows, unused, _ = _read(path, leave_out)
    except BadInput as error:
        return list(error.faults)
    names = dict.fromkeys(_family(path, row.family, row.source) for row in rows)
    names |= dict.fromkeys(_family(path, row.given.get("family", ""), row.given.get("source", "")) for row in unused)
    if family is None or family in names:
        return []
    return [unknown_family(path, family, list(names))]


def _step_faults(path: Path, family: str | None) -> list[Fault]:
    try:
        read_rows(path, family)
    except BadInput as error:
        return list(error.faults)
    return []


def _no_calibration(leave_out: str | None) -> list[Fault]:
    if leave_out is None:
        return []
    return [Fault(key="leave_out", value=leave_out, rule="is of collectives only: no step calibrates anything")]


def decade(nbytes: int | None) -> str:
    """Between which powers of ten a payload lies: ``10 kB to 100 kB``, a kB being 1000 B."""
    if not nbytes:
        return "no size"
    low = 10 ** (len(str(nbytes)) - 1)
    return f"{_round_size(low)} to {_round_size(10 * low)}" if low >= 1000 else "below 1 kB"


def _round_size(nbytes: int) -> str:
    power = min((len(str(nbytes)) - 1) // 3, 5)
    return f"{nbytes // 1000**power} {('B', 'kB', 'MB', 'GB', 'TB', 'PB')[power]}"


def _read(path: Path, leave_out: str | None) -> tuple[tuple[CollectiveRow, ...], tuple[Unused, ...], list[str]]:
    faults = _leave_out_faults(leave_out)
    try:
        rows, unused, notes = collective_rows.read(path)
    except BadInput as error:
        raise BadInput([*faults, *_other_table(path, error.faults), *error.faults]) from None
    if leave_out in COLUMNS:
        rule = "must be given where groups are left out"
        faults += [
            Fault(file=str(path), key=f"line {row.line}, column {leave_out}", value="", rule=rule)
            for row in rows
            if not getattr(row, leave_out)
        ]
    if faults:
        raise BadInput(faults)
    return rows, unused, notes


def _leave_out_faults(column: str | None) -> list[Fault]:
    if column is None:
        return []
    if column not in COLUMNS:
        rule = f"must be one of {', '.join(COLUMNS)}"
        return [Fault(key="leave_out", value=column, rule=rule, nearest=nearest_name(column, COLUMNS))]
    from importlib.util import find_spec

    missing = find_spec("scipy") is None
    return [Fault(key="leave_out", value=column, rule="needs scipy, which is not installed")] if missing else []


def _other_table(path: Path, faults: Sequence[Fault]) -> Iterator[Fault]:
    """What to say of a table of something else."""
    if any(fault.key.startswith("line 1, column") for fault in faults):
        rule = "must be measured collectives or training steps"
        yield Fault(file=str(path), key="file", value=path.name, rule=rule)


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
        reason=closed_reason(row.reason),
        detail=row.reason,
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
    return "known" if is_known(one.row.inter_link) else NOT_KNOWN


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
        yield f"{kind}: that of {one.card} is taken; published as {row.inter_link!r}"
    if one.clock.added:
        yield f"clock: {one.clock.added * 1e6:g} us before each call are measured with it"
    if one.clock.least:
        yield f"clock: a call takes the host {one.clock.least * 1e6:g} us or more"
    if one.algorithm is not None:
        yield f"algorithm: {one.algorithm}, as published"
