"""The page of how accurate predictions are, its figures, and the record that tests hold the models to.

``python -m clustersim.study.accuracy_page`` in a checkout predicts all measurements of the library, also without what
each source measured, and writes ``docs/accuracy.md``, ``docs/accuracy_*.png`` and
``tests/published/accuracy_budgets.csv``. Tests hold the page to the record, and the models to it. With ``--page`` it
only writes the page again, from the record: after a change of ``reasons.toml``.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from clustersim.faults import BadInput, Fault
from clustersim.library.measurements import measurement_files
from clustersim.study.accuracy_figures import accuracy_figures
from clustersim.study.accuracy_part import part_ids
from clustersim.study.accuracy_record import RecordedErrors, read_record, record, write_record
from clustersim.study.validate import validate

__all__ = ["BUDGETS", "FIGURES", "PAGE", "main", "page", "reasons", "write_page"]

PAGE = Path("docs/accuracy.md")
BUDGETS = Path("tests/published/accuracy_budgets.csv")

FIGURES: Mapping[str, tuple[str, ...]] = {
    "e2e_training.csv": ("accuracy_e2e_training.png",),
    "e2e_vtrain_single_node.csv": ("accuracy_e2e_vtrain_single_node.png",),
    "memory_footprint.csv": ("accuracy_memory_footprint.png",),
    "collectives.csv": ("accuracy_collectives.png", "accuracy_collectives_by_size.png"),
    "kernels.csv": ("accuracy_kernels.png",),
}
"""File of measurements -> its figures beside the page."""

_ABOUT = {
    "e2e_training.csv": "Training steps, as published: seconds, tokens per second, TFLOP/s or MFU.",
    "e2e_vtrain_single_node.csv": "Training steps of small GPT models on 2 to 8 A100.",
    "memory_footprint.csv": "What a GPU holds in training.",
    "collectives.csv": "Times of collectives.",
    "kernels.csv": "Times and rates of single kernels.",
}

_TITLES = {
    "family": "By family",
    "source": "By source",
    "communication": "By kind of node (card of the communication library)",
    "device,kind": "By device and kind of kernel",
}

_LARGE = 0.10
"""Mean error above which a family's reason is told."""

_HEAD = """\
# How accurate it is

Written by `python -m clustersim.study.accuracy_page` from the measurements that come with clustersim
([workloads/measurements](../workloads/measurements/README.md)). `clustersim validate` predicts them again and prints
the same numbers; `clustersim validate --data FILE` does it for measurements of your own.

An error is predicted / measured - 1 of the figure that was published, in its own unit and FLOP convention. Columns:

- **rows**, **pred.**: rows of the file, and those that are predicted; the others are refused, with the reason below.
- **mean**, **median**, **p90**: of the absolute error, in %. **bias**: mean of the error with its sign.
- **sure**: the mean over rows that were read where they were published and are not of low confidence.
- **rank**, **regret**: where rows are layouts of one job, the mean Spearman correlation between predicted and
  measured, and how much worse than the best measured layout the one is that is predicted best, in %.
- **left out**: the mean under cards of kernels and collectives that were calibrated without what the row's own source
  measured. Nothing is fitted to training steps or memory: where a source gave neither kernels nor collectives, which
  is most of them, both errors are the same by construction. Of kernels, **shapes left out** is the error of each fifth
  of the shapes under numbers fitted to the other shapes.
- **inside**: of times and rates of steps, how many are between the 10th and the 90th percentile of their prediction,
  which come from what kernels, collectives and steps of other sources were off by; it should be 80 %.

In the figures points on the diagonal are right, the grey band is ±10 %, and hollow points are out of the calibrated
domain: on a network that is not known, or on hardware that nobody has measured.
"""


def page(records: Sequence[RecordedErrors], why: Mapping[str, Mapping[str, str]]) -> str:
    """The record as Markdown.

    Parameters
    ----------
    records : Sequence[RecordedErrors]
    why : Mapping[str, Mapping[str, str]]
        file without its suffix -> name of a family, source, device or kind of node -> the reason found for its error
    """
    blocks = [_HEAD.strip(), "## All files", _table([one for one in records if one.by == "all"], "file")]
    for name in dict.fromkeys(one.file for one in records):
        mine = [one for one in records if one.file == name]
        blocks += [f"## {name}", _ABOUT[name]]
        blocks += [f"![Predicted against measured, {name}]({figure})" for figure in FIGURES[name]]
        for by in dict.fromkeys(one.by for one in mine if one.by != "all"):
            blocks += [f"### {_TITLES[by]}", _table([one for one in mine if one.by == by], by)]
        (whole,) = (one for one in mine if one.by == "all")
        if whole.refused:
            blocks += ["### Refused", "\n".join(f"- {text}" for text in whole.refused.split("; "))]
        told = list(_told(mine, why.get(Path(name).stem, {})))
        if told:
            blocks += [f"### Where the mean error is above {100 * _LARGE:.0f} %", "\n".join(told)]
    return "\n\n".join(blocks) + "\n"


def reasons() -> dict[str, dict[str, str]]:
    """The reasons found, by file and name, as ``reasons.toml`` beside the measurements has them."""
    (folder,) = {path.parent for path in measurement_files()}
    return tomllib.loads((folder / "reasons.toml").read_text(encoding="utf-8"))


def main(root: Path) -> list[Path]:
    """Predict everything and write the page, its figures and the record into a checkout.

    Raises
    ------
    BadInput
        when ``root`` is no checkout
    """
    missing = [folder for folder in (PAGE.parent, BUDGETS.parent) if not (root / folder).is_dir()]
    if missing:
        rule = "must be a checkout of clustersim, with docs and tests"
        raise BadInput([Fault(key="root", value=str(root / folder), rule=rule) for folder in missing])
    report = validate(leave_out="source", processes=len(os.sched_getaffinity(0)))
    files = {path.name: path for path in measurement_files()}
    shapes = {row.id: row.left_out_error for row in validate(files["kernels.csv"], leave_out="shape").rows}
    parts = {name: part_ids(path) for name, path in files.items()}
    write_record(record(report, parts=parts, shapes=shapes), root / BUDGETS)
    return [root / BUDGETS, write_page(root), *accuracy_figures(report, root / PAGE.parent)]


def write_page(root: Path) -> Path:
    """Write the page of the record that a checkout has."""
    (root / PAGE).write_text(page(read_record(root / BUDGETS), reasons()), encoding="utf-8")
    return root / PAGE


def _told(records: Sequence[RecordedErrors], why: Mapping[str, str]) -> Iterator[str]:
    for one in records:
        if one.by != "all" and one.mape is not None and one.mape > _LARGE:
            name = _short(one)
            yield f"- **{name}** ({_percent(one.mape)} %): {why.get(name, 'no reason has been found yet.')}"


def _table(records: Sequence[RecordedErrors], by: str) -> str:
    sweeps, left = any(one.num_sweeps for one in records), any(one.left_out_mape is not None for one in records)
    shapes, inside = any(one.shape_mape is not None for one in records), any(one.inside is not None for one in records)
    names = [by.replace(",", ", "), "rows", "pred.", "mean", "median", "p90", "bias", "sure", "worst row", "its error"]
    names += ["rank", "regret"] * sweeps + ["left out"] * left + ["shapes left out: mean", "median"] * shapes
    names += ["inside"] * inside
    lines = [f"| {' | '.join(names)} |", f"|---|{'---:|' * 7}---|{'---:|' * (len(names) - 9)}---:|"]
    for one in records:
        cells = [_short(one) or one.file, f"{one.num_rows:,}", f"{one.num_predicted:,}"]
        cells += [_percent(value) for value in (one.mape, one.median_ape, one.p90_ape)]
        cells += [_percent(one.bias, "+"), _percent(one.sure_mape), one.worst or "-", _percent(one.worst_error, "+")]
        if sweeps:
            rank = one.rank_correlation
            cells += ["-" if rank is None else f"{rank:.2f}", _percent(one.regret)]
        cells += [_percent(one.left_out_mape)] * left
        cells += [_percent(one.shape_mape), _percent(one.shape_median)] if shapes else []
        cells += [_percent(one.inside)] * inside
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(one: RecordedErrors) -> str:
    """A name without the file's."""
    return one.name.removeprefix(f"{Path(one.file).stem}:")


def _percent(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{100 * value:{sign}.1f}"


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--page"]):
        sys.exit("usage: python -m clustersim.study.accuracy_page [--page], in a checkout")
    for path in [write_page(Path())] if sys.argv[1:] == ["--page"] else main(Path()):
        print(path)
