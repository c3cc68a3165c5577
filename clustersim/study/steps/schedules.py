"""The pipeline schedule of a row, in its source's words -> fields of a plan."""

from __future__ import annotations

import re
from typing import Any

from clustersim.faults import nearest_name
from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.refusal import RefusedError
from clustersim.workload.schedule import SCHEDULES

__all__ = ["schedule_of"]

_NAMES: tuple[tuple[str, str], ...] = (
    ("1f1b-interleaved", "interleaved"),
    ("interleaved", "interleaved"),
    ("1f1b", "1f1b"),
    ("zbb", "zb-h1"),
    ("zbv", "zb-v"),
    *((name, name) for name in ("zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipev", "dualpipe", "gpipe")),
    ("zb-1p", "zb-h1"),
    ("zb1p", "zb-h1"),
    ("zb-2p", "zb-h2"),
    ("zb2p", "zb-h2"),
    ("zero bubble", "zb-h1"),
    ("zero-bubble", "zb-h1"),
)
"""Words of a schedule -> its name here, the first that fits.

Primus' zero bubble starts backward passes as soon as 1F1B does (``scheduler/algorithms/zerobubble.py``), as ZB-H1.
ZB-1p and ZB-2p are found by search under the memory of ZB-H1 and ZB-H2 (arXiv 2401.10241, sections 2 and 3)."""

_SAID = re.compile(
    r"(?<!lr )(?<!rate )(?<!lr-)(?<!rate-)\bschedule[: ]+"
    r"(?!cosine|linear|constant|warm|wsd|decay|of |with )(?P<name>[\w.-]+)"
)
"""A schedule of passes; not one of learning rates, which notes also tell."""

_ALONE = re.compile(r"(?<![\w-])(zb-?[12]p|zb-h[12]|zb-?v|v-half|v-min|dualpipev?|gpipe)(?![\w-])")
"""Names that stand for nothing else, wherever in the notes they are."""


def schedule_of(row: StepRow, pp: int, assumed: list[str]) -> dict[str, Any]:
    """vpp and schedule.

    Parameters
    ----------
    row : StepRow
    pp : int
    assumed : list[str]
        is extended by what is assumed

    Raises
    ------
    RefusedError
        when a schedule is named that nobody knows
    """
    if pp == 1:
        return {}
    notes = row.notes.lower()
    said = _SAID.search(notes) or _ALONE.search(notes)
    words = "" if said is None else notes[said.start("name") if "name" in said.groupdict() else said.start() :]
    name = next((name for told, name in _NAMES if re.match(rf"{told}(?![a-z0-9])", words)), None)
    if words and name is None:
        near = nearest_name(words.split()[0], SCHEDULES)
        hint = f"; nearest: {near}" if near else f"; one of {', '.join(SCHEDULES)}"
        raise RefusedError("method", f"schedule {words.split()[0]!r}{hint}")
    if name is not None and name != "1f1b":
        return {"schedule": name, "vpp": row.vpp if name == "interleaved" else None}
    if row.vpp is None:
        assumed.append("schedule: one chunk a stage")
    return {"vpp": row.vpp} if (row.vpp or 1) > 1 else {}
