"""A reproduction as text, readable at 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from clustersim.analysis.report import wrapped
from clustersim.study.reproduce.reproduction import Outcome, Reproduction
from clustersim.study.reproduce.system import NOT_YET, Quantity, System

__all__ = ["error_text", "number_text", "published_text", "reasons_of", "reproduction_text", "within_text"]

_WIDTH = 80
_HEAD = f"{'published':>13}{'simulated':>15}{'error':>9} {'grade':<7}{'within':<6}"


def reproduction_text(found: Reproduction) -> str:
    """One table, a line a quantity under its system; then the reasons of what is missed and of what is not simulated.

    Parameters
    ----------
    found : Reproduction
    """
    room = _WIDTH - len(_HEAD)
    lines = [f"{'system, quantity':<{room}}{_HEAD}".rstrip()]
    for system, outcomes in found.outcomes:
        title = f"{system.number:<3}{system.name}"
        lines.append(title if outcomes else f"{title}: {NOT_YET}")
        for outcome in outcomes:
            lines += _lines(outcome, room)
    blocks = ["\n".join(lines)]
    reasons = [wrapped(f"{system.number} {'; '.join(names)}: {why}") for system, names, why in reasons_of(found)]
    if reasons:
        blocks.append("\n".join(reasons))
    blocks.append(
        wrapped(
            "error: simulated / published - 1, of percentages the points between them. grade: S read from the source, "
            "D arithmetic on it, M from memory, with how sure. within: held against its tolerance, or - where nothing "
            "is"
        )
    )
    return "\n\n".join(blocks)


def reasons_of(found: Reproduction) -> Iterator[tuple[System, list[str], str]]:
    """Systems, names of quantities, and why these are out of their tolerance, not held to one, or not simulated."""
    for system, outcomes in found.outcomes:
        names: dict[str, list[str]] = {}
        for outcome in outcomes:
            if outcome.quantity.reason:
                names.setdefault(outcome.quantity.reason, []).append(outcome.quantity.name)
        yield from ((system, same, reason) for reason, same in names.items())


def number_text(value: float | None, quantity: Quantity) -> str:
    """A number with its unit; ``-`` where there is none."""
    if value is None:
        return "-"
    digits = f"{value:.1f}" if quantity.unit == "%" else f"{value:.4g}"
    return f"{digits} {quantity.unit}".rstrip()


def published_text(quantity: Quantity) -> str:
    """The published number, with ``<`` or ``>`` before it where only an order is published."""
    return f"{'' if quantity.relation == '=' else f'{quantity.relation} '}{number_text(quantity.published, quantity)}"


def error_text(outcome: Outcome) -> str:
    """An error in percent, or in points (``pt``) where it is one of percentages."""
    if outcome.error is None:
        return "-"
    return f"{100 * outcome.error:+.1f} {'pt' if outcome.quantity.unit == '%' else '%'}"


def within_text(outcome: Outcome) -> str:
    """``yes``, ``no`` or ``-``."""
    return {True: "yes", False: "no", None: "-"}[outcome.within]


def _lines(outcome: Outcome, room: int) -> Iterator[str]:
    """A quantity: its name, over two lines where one is too short, and its numbers."""
    one = outcome.quantity
    cells = f"{published_text(one):>13}{number_text(outcome.simulated, one):>15}{error_text(outcome):>9}"
    cells += f" {one.grade:<7}{within_text(outcome):<6}"
    *before, last = textwrap.wrap(one.name, room - 4, subsequent_indent="  ")
    yield from (f"   {line}" for line in before)
    yield f"   {last:<{room - 3}}{cells}".rstrip()
