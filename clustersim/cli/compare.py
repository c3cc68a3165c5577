"""``clustersim compare``: two runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from clustersim.cli.output import OK, print_json

__all__ = ["compare"]

_MOST_WAYS = 12


def compare(
    baseline: str,
    candidate: str,
    /,
    *,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Compare two runs: what changed going in, and what came out.

    Parameters
    ----------
    baseline
        a run folder, or a job, which is simulated
    candidate
        the same
    as_json
        print one JSON object
    """
    from clustersim.analysis.compare import changed_collectives
    from clustersim.analysis.compare import compare as side_by_side
    from clustersim.faults import BadInput, Fault, collect
    from clustersim.study.run_folder import open_run

    sides = []
    faults: list[Fault] = []
    for name in (baseline, candidate):
        with collect(faults):
            run = open_run(name)
            sides.append((run.summary, _inputs(run.inputs), run.collectives))
    if faults:
        raise BadInput(faults)
    (before, old, ran), (after, new, runs) = sides
    answer = side_by_side(before, after, inputs=(old, new))
    answer["changed_collectives"] = changed_collectives(ran, runs).to_dict("records")
    if as_json:
        print_json(answer)
        return OK
    print(_changes(answer["changed_inputs"]))
    if answer["changed_collectives"]:
        print(_ways(answer["changed_collectives"]))
    print(_figures(answer["metrics"] | {f"{name} [s]": pair for name, pair in answer["breakdown_s"].items()}))
    return OK


def _inputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What a user set, and the files behind it."""
    return {**inputs.get("settings", {}), "cards": inputs.get("cards", {})}


def _changes(changed: Mapping[str, Mapping[str, Any]]) -> str:
    if not changed:
        return "inputs: the same\n"
    from clustersim.analysis.report import table

    rows = [(name, *_pair(pair["baseline"], pair["candidate"])) for name, pair in changed.items()]
    return f"inputs\n{table(rows)}\n"


def _pair(before: Any, after: Any) -> tuple[str, str, str]:
    """Both values; of two lists what only one of them has, where they have anything in common."""
    if isinstance(before, list) and isinstance(after, list) and any(item in after for item in before):
        gone, new = [item for item in before if item not in after], [item for item in after if item not in before]
        if gone or new:
            return f"without {_words(gone)}" if gone else "", "->", f"with {_words(new)}" if new else ""
    return _short(before), "->", _short(after)


def _words(items: Sequence[Any]) -> str:
    return _short(", ".join(map(str, items)))


def _ways(changed: Sequence[Mapping[str, Any]]) -> str:
    from clustersim.analysis.report import table
    from clustersim.cli.collectives_text import nbytes_text

    rows = [
        (row["family"], row["kind"], nbytes_text(row["nbytes"]), row["baseline"], "->", row["candidate"])
        for row in changed[:_MOST_WAYS]
    ]
    more = f"  and {len(changed) - len(rows)} more\n" if len(changed) > len(rows) else ""
    return f"collectives that are sent otherwise\n{table(rows, right=(2,))}\n{more}"


def _figures(figures: Mapping[str, Mapping[str, float | None]]) -> str:
    from clustersim.analysis.report import table

    rows = [("", "baseline", "candidate", "delta", "ratio")]
    for name, pair in figures.items():
        if pair["baseline"] or pair["candidate"]:
            told, ratio = _amount if name.startswith("peak_memory_bytes.") else _figure, pair["ratio"]
            rows.append(
                (
                    name,
                    told(pair["baseline"]),
                    told(pair["candidate"]),
                    told(pair["delta"], sign="+"),
                    "-" if ratio is None else f"{ratio:.3f}",
                )
            )
    return table(rows, indent="", right=(1, 2, 3, 4))


def _figure(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign},}" if isinstance(value, int) else f"{value:{sign}.4g}"


def _amount(value: float | None, sign: str = "") -> str:
    from clustersim.analysis.report import bytes_text

    return "-" if value is None else f"{'+' if sign and value >= 0 else ''}{bytes_text(value)}"


def _short(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= 28 else f"{text[:12]}..."
