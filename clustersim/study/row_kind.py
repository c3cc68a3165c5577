"""A kind of measurement: how a file of it is known, checked, predicted and told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clustersim.faults import Fault
from clustersim.study.validated_row import ValidatedRow

__all__ = ["Predict", "RowKind"]


class Predict(Protocol):
    """Rows of a file beside their predictions, and what of the file was not read."""

    def __call__(
        self,
        path: Path,
        *,
        leave_out: str | None,
        family: str | None,
        processes: int,
        progress: Callable[[float], None] | None,
    ) -> tuple[tuple[ValidatedRow, ...], tuple[str, ...]]:
        """Predict a file that :attr:`RowKind.check` found nothing wrong with."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowKind:
    """One of collectives, kernels, steps.

    Parameters
    ----------
    name : str
    labels : tuple[str, ...]
        what errors can be told by
    tables : tuple[str, ...]
        what they are told by unless the user asks for something else: labels, several of them with commas
    titles : Mapping[str, str]
        of tables that are not named as their label
    meaning : Mapping[str, str]
        first word of an assumption -> what it means
    leave_out : tuple[str, ...]
        columns whose values can be left out of the calibration one at a time
    detect : callable
        whether a file is of this kind, by its header
    check : callable
        path and ``leave_out`` -> every fault of the file
    families : callable
        path -> families of a file without faults, in its order
    predict : Predict
    totals : callable
        rows -> what is summed up, by its name
    """

    name: str
    labels: tuple[str, ...]
    tables: tuple[str, ...]
    titles: Mapping[str, str]
    meaning: Mapping[str, str]
    leave_out: tuple[str, ...]
    detect: Callable[[Path], bool]
    check: Callable[[Path, str | None], list[Fault]]
    families: Callable[[Path], list[str]]
    predict: Predict
    totals: Callable[[Sequence[ValidatedRow]], Mapping[str, Sequence[ValidatedRow]]]
