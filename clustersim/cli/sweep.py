"""``clustersim run --vary``: every combination of some values, in one sorted table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustersim.cli.output import BAD_INPUT, FAILED, OK, WIDTH, num_cores, print_json, progress, written_text

if TYPE_CHECKING:
    from clustersim.faults import Fault
    from clustersim.library.job import JobSetup

__all__ = ["MOST_POINTS", "run_sweep"]

MOST_POINTS = 10_000
"""Combinations that one command runs."""

_APART = re.compile(r",(?![^\[{]*[\]}])")
"""A comma that is not inside a list or a mapping."""


def run_sweep(
    setup: JobSetup,
    vary: Sequence[str],
    faults: Sequence[Fault],
    *,
    out: Path | None,
    as_json: bool,
    fold: bool,
) -> int:
    """Run the product of ``vary`` over a process pool and print its table; the exit code."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from clustersim.faults import BadInput
    from clustersim.study.sweep import points, sweep
    from clustersim.trace.formats.folder import refuse_folder

    wanted, wrong = _read(vary)
    wrong = [*faults, *wrong, *(refuse_folder(out) if out else ())]
    if wrong:
        raise BadInput(wrong)
    num_points = len(points(wanted))
    workers = min(num_points, num_cores())
    with progress("points", total=num_points) as at:
        if workers > 1:
            with ProcessPoolExecutor(workers, get_context("spawn")) as executor:
                rows = sweep(setup, wanted, fold=fold, executor=executor, progress=at)
        else:
            rows = sweep(setup, wanted, fold=fold, progress=at)
    if out is not None:
        _write(rows, out)
    if as_json:
        print_json(rows)
    else:
        print(_text(rows))
        if out is not None:
            print(f"\n{written_text(out, ['sweep.json'])}")
    statuses = {row["status"] for row in rows}
    if statuses == {"bad_input"}:
        return BAD_INPUT
    return OK if "ok" in statuses and "interrupted" not in statuses else FAILED


def _read(vary: Sequence[str]) -> tuple[dict[str, list[Any]], list[Fault]]:
    """``KEY=A,B,C`` as key -> values; what is wrong with any of them."""
    from math import prod

    from clustersim.faults import Fault
    from clustersim.library.settings import read_settings

    wanted: dict[str, list[Any]] = {}
    faults: list[Fault] = []
    for text in vary:
        key, equals, values = text.partition("=")
        for value in _APART.split(values) if equals else [""]:
            read, wrong = read_settings([f"{key}={value}" if equals else key])
            faults += wrong
            for name, one in read.items():
                wanted.setdefault(name, []).append(one)
    num_points = prod(map(len, wanted.values()))
    if num_points > MOST_POINTS:
        rule = f"must be at most {MOST_POINTS} combinations"
        faults.append(Fault(key="--vary", value=num_points, rule=rule, nearest=MOST_POINTS))
    return wanted, faults


def _write(rows: Sequence[Mapping[str, Any]], out: Path) -> None:
    import json

    from clustersim.trace.formats.folder import MARK, fresh, versions

    with fresh(out) as place:
        (place / "sweep.json").write_text(json.dumps(rows, indent=2, default=str) + "\n")
        (place / MARK).write_text(json.dumps(versions(), indent=2) + "\n")


def _text(rows: Sequence[Mapping[str, Any]]) -> str:
    from clustersim.analysis.report import bytes_text, seconds_text, table, unit_of_speed

    keys = list(rows[0]["point"])
    unit = next((unit_of_speed(row) for row in rows if row["status"] != "bad_input"), "tokens")
    lines = [["status", "step", f"{unit}/s/GPU", "MFU", "peak"]]
    points = [[_value(row["point"][key]) for key in keys] for row in rows]
    for row in rows:
        if row.get("step_time_s") is None:
            lines.append([row["status"], "", "", "", ""])
            continue
        lines.append(
            [
                row["status"],
                seconds_text(row["step_time_s"]),
                f"{row[f'{unit}_per_s_per_gpu'] or 0:,.0f}",
                "-" if row["mfu"] is None else f"{100 * row['mfu']:.1f} %",
                bytes_text(row["peak_memory_bytes"]["gpu"]),
            ]
        )
    body = [point + line for point, line in zip(points, lines[1:], strict=True)]
    last = [key.rpartition(".")[2] for key in keys]
    halved = [[list(half) for half in zip(*map(_halves, names), strict=True)] for names in (keys, last)]
    for heads in ([keys], *halved):
        above = [[*head, *of] for head, of in zip(heads, [[""] * 5, lines[0]][-len(heads) :], strict=True)]
        drawn = table([*above, *body], right=range(len(keys) + 1, len(keys) + 5))
        if max(map(len, drawn.splitlines())) <= WIDTH:
            break
    return "\n".join([drawn, *_reasons(rows), *_warnings(rows)])


def _halves(name: str) -> tuple[str, str]:
    """A name cut behind the dot or underscore that leaves the shortest lines; whole on the second where it has none."""
    cuts = [0, *(k for k, letter in enumerate(name, start=1) if letter in "._")]
    cut = min(cuts, key=lambda k: max(k, len(name) - k))
    return name[:cut], name[cut:]


def _reasons(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Why some were refused, each reason once."""
    from clustersim.analysis.report import wrapped
    from clustersim.cli.output import fault_line
    from clustersim.faults import Fault

    errors = [fault_line(Fault(**error)) for row in rows for error in row.get("errors", ())]
    for line in dict.fromkeys(errors):
        yield wrapped(f"refused: {line}")


def _warnings(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What runs warn of, each once, with how many of them do."""
    from collections import Counter

    from clustersim.analysis.report import wrapped

    count = Counter(warning for row in rows for warning in row.get("warnings", ()))
    for warning, times in count.items():
        of = "" if times == len(rows) else f" ({times} of {len(rows)} runs)"
        yield wrapped(f"warning: {warning}{of}")


def _value(value: Any) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list | tuple) else str(value)
