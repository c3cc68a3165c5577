"""``clustersim reproduce``: published systems beside their simulation."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from clustersim.cli.output import OK, num_cores, print_json, progress

__all__ = ["reproduce"]


def reproduce(
    system: str | None = None,
    /,
    *,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Simulate published systems and set their numbers beside those that come out.

    Parameters
    ----------
    system
        one only, by number (11, B1) or name (frontier); all take minutes
    as_json
        print one JSON object
    """
    from clustersim.study.reproduce import SYSTEMS, find_system
    from clustersim.study.reproduce import reproduce as reproduced
    from clustersim.study.reproduce.text import reproduction_text

    wanted = SYSTEMS if system is None else (find_system(system),)
    with progress("systems", total=len(wanted)) as at:
        found = reproduced(wanted, processes=num_cores(), progress=at)
    if as_json:
        print_json(found.answer())
    else:
        print(reproduction_text(found))
    return OK
