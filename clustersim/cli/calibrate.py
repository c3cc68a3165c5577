"""``clustersim calibrate``: what NCCL costs on a cluster, or kernels on devices, from measurements on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from clustersim.cli.output import OK, print_json, wrapped

if TYPE_CHECKING:
    from clustersim.faults import Fault
    from clustersim.study.calibrate_files import CalibratedFiles

__all__ = ["calibrate"]


def calibrate(
    what: Literal["nccl", "kernels", "steps"],
    files: tuple[Path, ...],
    /,
    *,
    topology: str | None = None,
    settings: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    name: str = "",
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Fit what a communication library, or kernels of GPUs, cost, or what whole steps miss.

    Parameters
    ----------
    what
        nccl: NCCL and RCCL; kernels: products, attention and passes over memory; steps: what simulated steps miss
        beside these, which makes intervals wider
    files
        output of nccl-tests or rccl-tests on one cluster, or CSV files of published collectives; CSV files of kernels;
        rows.csv of clustersim validate --out on measured steps
    topology
        what the logs ran on: a topology card or a .toml file
    settings
        KEY=VALUE of the cluster, as in ``clustersim collective``
    name
        of the new cards; the topology's when left out
    out
        folder for the cards; nothing is written when left out
    as_json
        print one JSON object
    """
    from clustersim.cli.calibrate_kernels import calibrate_kernels
    from clustersim.cli.calibrate_steps import calibrate_steps
    from clustersim.faults import BadInput, Fault
    from clustersim.library.settings import read_settings
    from clustersim.study.calibrate_files import calibrate_files
    from clustersim.study.cluster import unread

    values, faults = read_settings(settings)
    faults += [*unread(values), *(_out_faults(out) if out is not None else ())]
    if what == "kernels":
        given = {"--topology": topology, "--name": name or None, "--set": list(settings) or None}
        rule = "has no effect on kernels: rows name their hardware, and cards are named for it"
        faults += [Fault(key=key, value=value, rule=rule) for key, value in given.items() if value is not None]
    if what == "steps":
        given = {"--topology": topology, "--set": list(settings) or None}
        rule = "has no effect on steps: their rows are predicted already"
        faults += [Fault(key=key, value=value, rule=rule) for key, value in given.items() if value is not None]
    if faults:
        raise BadInput(faults)
    if what == "steps":
        return calibrate_steps(files, name=name or "steps", out=out, as_json=as_json)
    if what == "kernels":
        return calibrate_kernels(files, out=out, as_json=as_json)
    made = calibrate_files(files, topology=topology, settings=values, name=name)
    written = _write(made, out) if out is not None else []
    if as_json:
        print_json(_answer(made, written))
    else:
        print(_page(made, written))
    return OK


def _out_faults(out: Path) -> list[Fault]:
    """What speaks against writing into a folder; looked at before the work."""
    from tempfile import TemporaryDirectory

    from clustersim.faults import Fault

    there = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    try:
        with TemporaryDirectory(dir=there):  # rights alone do not tell: a file system may be read-only or full
            return []
    except OSError as error:
        rule = f"must be a folder that can be written: {there}: {error.strerror}"
        return [Fault(key="--out", value=str(out), rule=rule)]


def _write(made: CalibratedFiles, out: Path) -> list[str]:
    written = []
    for path, text in made.texts.items():
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(str(target))
    return written


def _answer(made: CalibratedFiles, written: list[str]) -> dict[str, Any]:
    from dataclasses import asdict

    rows = [
        {
            "id": row.row.id,
            "collective": row.row.collective,
            "nbytes": row.row.nbytes,
            "measured_us": row.row.time_us,
            "error_before": float(before),
            "error": float(after),
        }
        for row, before, after in zip(made.rows, made.before, made.after, strict=True)
    ]
    cards = {name: {k: v for k, v in asdict(card).items() if k != "sources"} for name, card in made.cards.items()}
    return {"num_rows": len(rows), "cards": cards, "rows": rows, "written": written, "notes": list(made.notes)}


def _page(made: CalibratedFiles, written: list[str]) -> str:
    import numpy as np

    from clustersim.hardware.communication import numbers

    lines = [f"{len(made.rows)} measurements", "", f"{'':26}{'rows':>6}{'median error':>24}{'90th percentile':>24}"]
    lines.append(f"{'':26}{'':>6}{'before':>12}{'after':>12}{'before':>12}{'after':>12}")
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(made.rows):
        groups.setdefault(f"{row.row.collective} {'from' if row.row.nbytes >= 2**20 else 'below'} 1 MiB", []).append(
            index
        )
    for group, members in sorted(groups.items()):
        cells = [
            f"{np.quantile(np.abs(values[members]), q):>12.1%}"
            for q in (0.5, 0.9)
            for values in (made.before, made.after)
        ]
        lines.append(f"{group:<26}{len(members):>6}{''.join(cells)}")
    for name, card in made.cards.items():
        lines += ["", f"{name:<40}{'before':>14}{'after':>14}"]
        for field in numbers(card):
            before, after = getattr(made.start[name], field), getattr(card, field)
            scale, unit = (1e6, "us") if field.endswith("latency") else (1.0, "") if before <= 1 else (1e-9, "GB/s")
            lines.append(f"  {f'{field} [{unit}]' if unit else field:<38}{before * scale:>14.4g}{after * scale:>14.4g}")
    lines += ["", *(wrapped(f"note: {note}") for note in made.notes)] if made.notes else []
    lines += ["", *(f"wrote {path}" for path in written)] if written else []
    if written:
        lines += ["", "to use a card: --set communication.node=FILE, or communication.network=FILE for a transport"]
    elif made.texts:
        lines += ["", "nothing was written: --out FOLDER saves the cards"]
    else:
        lines += ["", "nothing to write: no number depends on these measurements"]
    return "\n".join(lines)
