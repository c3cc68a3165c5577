"""What a source leaves out of a row and says elsewhere: in the recipe that it names, in its code, in other tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from clustersim.readers.step_rows import StepRow

__all__ = ["LAYOUT", "Recipe"]

LAYOUT = ("gpus", "tp", "pp", "vpp", "dp", "cp", "ep", "micro_batch", "global_batch", "seq_len", "grad_accum")
"""Columns of layout and batch: a row that lacks some of them is outside the calibrated domain."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Columns and switches of the rows that it fits.

    Parameters
    ----------
    words : tuple[str, ...]
        all of them are in the row's source, model, hardware, precision, notes or id, in lower case
    without : tuple[str, ...]
        none of them is
    columns : Mapping[str, Any]
        of :class:`clustersim.readers.step_rows.StepRow`, where the row's own are empty
    instead : Mapping[str, Any]
        columns in place of the row's own, which another part of the source contradicts
    switches : Mapping[str, Any]
        of :class:`clustersim.workload.plan.ParallelPlan`, in place of the profile's
    origin : str
        where they stand
    """

    words: tuple[str, ...]
    without: tuple[str, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    instead: Mapping[str, Any] = field(default_factory=dict)
    switches: Mapping[str, Any] = field(default_factory=dict)
    origin: str

    def fits(self, row: StepRow) -> bool:
        """Whether a row is one of those that it is about."""
        text = "|".join((row.source, row.model, row.hardware, row.precision, row.notes, row.id)).lower()
        return all(word in text for word in self.words) and not any(word in text for word in self.without)

    def filled(self, row: StepRow) -> tuple[StepRow, dict[str, Any]]:
        """The row with the columns that it lacks or has wrong, and these."""
        given = {name: value for name, value in self.columns.items() if _is_empty(getattr(row, name))}
        given |= self.instead
        return replace(row, **given), given


def _is_empty(value: object) -> bool:
    """Whether a column tells nothing."""
    return value in (None, "", "see source")
