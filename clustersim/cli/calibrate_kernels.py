"""``clustersim calibrate kernels``: what kernels cost on devices, from measurements on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustersim.cli.output import OK, print_json, wrapped

if TYPE_CHECKING:
    from clustersim.study.kernels.calibrate_files import CalibratedKernels

__all__ = ["calibrate_kernels"]


def calibrate_kernels(files: tuple[Path, ...], *, out: Path | None, as_json: bool) -> int:
    """Fit the numbers of kernel cards; parameters as of the command."""
    from clustersim.study.kernels.calibrate_files import calibrate_kernel_files

    made = calibrate_kernel_files(files)
    written = []
    for path, text in made.texts.items() if out is not None else ():
        target = Path(out or "") / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(str(target))
    if as_json:
        print_json(_answer(made, written))
    else:
        print(_page(made, written))
    return OK


def _answer(made: CalibratedKernels, written: list[str]) -> dict[str, Any]:
    from dataclasses import asdict

    rows = [
        {
            "id": row.row.id,
            "device": row.gpu.name,
            "measured_us": 1e6 * row.seconds,
            "error_before": float(before),
            "error": float(after),
        }
        for row, before, after in zip(made.rows, made.before, made.after, strict=True)
    ]
    cards = {
        name: {key: value for key, value in asdict(one.models).items() if key != "sources"}
        for name, one in made.fitted.items()
    }
    return {"num_rows": len(rows), "cards": cards, "rows": rows, "written": written, "notes": list(made.notes)}


def _page(made: CalibratedKernels, written: list[str]) -> str:
    import numpy as np

    from clustersim.study.kernels.calibration import part_of

    groups: dict[str, list[int]] = {}
    for index, row in enumerate(made.rows):
        groups.setdefault(f"{row.gpu.name} {part_of(row)}", []).append(index)
    lines = [f"{len(made.rows)} measurements", "", f"{'':34}{'rows':>6}{'median error':>16}{'90th perc.':>16}"]
    lines.append(f"{'':34}{'':>6}{'before':>8}{'after':>8}{'before':>8}{'after':>8}")
    for group, members in groups.items():
        cells = [
            f"{np.quantile(np.abs(values[members]), q):>8.1%}"
            for q in (0.5, 0.9)
            for values in (made.before, made.after)
        ]
        lines.append(f"{group:<34}{len(members):>6}{''.join(cells)}")
    lines += ["", *(wrapped(f"note: {note}") for note in made.notes)] if made.notes else []
    lines += ["", *(f"wrote {path}" for path in written)] if written else []
    if written:
        lines += ["", 'to use a card: kernels = "FILE" on the card of a GPU, and what it is of under sources']
    else:
        lines += ["", "nothing was written: --out FOLDER saves the cards"]
    return "\n".join(lines)
