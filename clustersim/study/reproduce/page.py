"""The status table of ``docs/systems.md``, written from what was simulated.

The page's own words stand around it: the idea of each system, what is modelled of it and what is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from clustersim.faults import BadInput, Fault
from clustersim.study.reproduce.reproduction import Outcome, Reproduction, reproduce
from clustersim.study.reproduce.system import NOT_YET, System
from clustersim.study.reproduce.text import error_text, number_text, published_text, reasons_of, within_text

__all__ = ["BEGIN", "END", "PAGE", "rows", "status", "write_status"]

PAGE = Path("docs/systems.md")

BEGIN, END = "<!-- status: written by python -m clustersim.study.reproduce -->", "<!-- end of status -->"
"""Lines of the page between which the table stands."""

_NAMES = ("", "system", "job", "quantity", "published", "simulated", "error", "grade", "within")


def status(found: Reproduction) -> str:
    """The table and the reasons below it, as Markdown."""
    lines = [f"| {' | '.join(_NAMES)} |", "|---|---|---|---|---:|---:|---:|---|---|"]
    for system, outcomes in found.outcomes:
        lines += rows(system, outcomes)
    slow = ", ".join(f"{system.number} {system.name}" for system, _ in found.outcomes if system.slow)
    told = [f"- **{system.number}**, {'; '.join(names)}: {why}." for system, names, why in reasons_of(found)]
    blocks = ["\n".join(lines), f"Slow, tens of seconds of processor time: {slow or 'none'}.", "\n".join(told)]
    return "\n\n".join(block for block in blocks if block)


def rows(system: System, outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    """Lines of the table for one system."""
    title = f"[{system.name}](https://arxiv.org/abs/{system.arxiv})" if system.arxiv else system.name
    if not outcomes:
        yield _line(system.number, title, "", NOT_YET, "", "", "", "", "")
    for outcome in outcomes:
        one = outcome.quantity
        cells = published_text(one), number_text(outcome.simulated, one), error_text(outcome)
        job = f"`{one.job}`" if one.job else ""
        yield _line(system.number, title, job, one.name, *cells, one.grade, within_text(outcome))


def write_status(systems: Sequence[System], root: Path, *, processes: int = 1) -> Path:
    """Simulate systems and write the table into a checkout's page.

    Raises
    ------
    BadInput
        before anything is simulated, when ``root`` has no such page with the two lines that the table stands between
    """
    path = root / PAGE
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        rule = f"must have the lines {BEGIN} and {END}; run it in a checkout of clustersim"
        raise BadInput([Fault(key="page", value=str(path), rule=rule)])
    found = reproduce(systems, processes=processes)
    path.write_text(f"{before}{begin}\n\n{status(found)}\n\n{end}{after}", encoding="utf-8")
    return path


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
