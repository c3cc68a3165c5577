"""Files of measured kernels -> calibrated cards: what ``clustersim calibrate kernels`` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault, collect
from clustersim.hardware.kernel_models import KernelModels
from clustersim.library.card import read_card
from clustersim.library.part import load_part
from clustersim.readers import kernel_rows
from clustersim.readers.kernel_rows import KernelRow
from clustersim.study.kernels.calibration import Fitted, calibrate_kernels, errors, part_of
from clustersim.study.kernels.card_text import kernel_card_text
from clustersim.study.kernels.measured import MeasuredKernel, place
from clustersim.study.kernels.siblings import sibling_spreads

__all__ = ["GENERIC", "CalibratedKernels", "calibrate_kernel_files", "start_of"]

GENERIC = "generic"
"""Card of nothing measured, where numbers that rows can determine start."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CalibratedKernels:
    """The outcome.

    Parameters
    ----------
    rows : tuple[MeasuredKernel, ...]
        those that bear on a card, by card and part
    before, after : NDArray[float64], shape (num_rows,)
        predicted / measured - 1 under the shipped cards and as calibrated
    fitted : Mapping[str, Fitted]
        by name of the card
    texts : Mapping[str, str]
        path below the folder of parts -> content of the card
    notes : tuple[str, ...]
        what was left out, and why
    """

    rows: tuple[MeasuredKernel, ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    fitted: Mapping[str, Fitted]
    texts: Mapping[str, str]
    notes: tuple[str, ...]


def calibrate_kernel_files(paths: Sequence[Path]) -> CalibratedKernels:
    """Calibrate the kernel models of every device that the files have enough rows of.

    Parameters
    ----------
    paths : sequence of Path
        CSV files as :func:`clustersim.readers.kernel_rows.read` takes them; rows name their hardware

    Raises
    ------
    BadInput
        with every fault of the files, and for files without a row that bears on a number
    """
    rows: list[KernelRow] = []
    notes: list[str] = []
    faults: list[Fault] = []
    for path in paths:
        with collect(faults):
            told, said = kernel_rows.read(path)
            rows += told
            notes += said
    if faults:
        raise BadInput(faults)
    placed, unused = place(rows)
    notes += [f"rows left out: {count}, {reason}" for reason, count in Counter(one.reason for one in unused).items()]
    by_card: dict[str, list[MeasuredKernel]] = {}
    for row in placed:
        by_card.setdefault(row.gpu.name, []).append(row)
    fitted: dict[str, Fitted] = {}
    texts: dict[str, str] = {}
    used: list[MeasuredKernel] = []
    after: list[NDArray[np.float64]] = []
    for name, of in by_card.items():
        start = start_of(name, {part_of(row) for row in of})
        found = calibrate_kernels(of, start)
        bearing = [row for part in found.rows.values() for row in part]
        if aside := len(of) - len(bearing):
            notes.append(f"{aside} rows of {name} left out: too few of their kind")
        if not bearing:
            continue
        fitted[name] = found
        used += bearing
        after.append(errors(bearing, found.models))
        texts[f"kernels/{name}.toml"] = kernel_card_text(found, description=_description(name), start=start)
    if not used:
        rule = "; ".join(["hold no row to calibrate from", *notes])
        raise BadInput([Fault(key="files", value=[path.name for path in paths], rule=rule)])
    between = sibling_spreads(used, {name: one.models for name, one in fitted.items()})
    if between:
        spreads = ", ".join(f"{kind} {value:.2f}" for kind, value in between.items())
        notes.append(f"a device's kernels by the numbers of another, standard deviation of ln(time): {spreads}")
    return CalibratedKernels(
        rows=tuple(used),
        before=errors(used),
        after=np.concatenate(after),
        fitted=fitted,
        texts=texts,
        notes=tuple(notes),
    )


def start_of(name: str, parts: set[str]) -> KernelModels:
    """Where the search for a device's numbers starts.

    ``parts`` that rows bear on start from those of the generic card, so that one calibration after the other gives the
    same; the others, the usual attention kernel and the cache stay as the device's own card has them.
    """
    generic = load_part("kernels", GENERIC)
    try:
        own = load_part("kernels", name)
    except BadInput:
        return generic
    gemm = {key: generic.gemm_of(key)[0] if f"gemm.{key}" in parts else model for key, model in own.gemm.items()}
    first = generic.attention[generic.usual_attention]
    attention = {
        key: generic.attention.get(key, first) if f"attention.{key}" in parts else model
        for key, model in own.attention.items()
    }
    memory = own.memory
    if "memory" in parts:
        memory = replace(generic.memory, cache_nbytes=own.memory.cache_nbytes)
    return replace(own, gemm=gemm, attention=attention, memory=memory)


def _description(name: str) -> str:
    try:
        return read_card("kernels", name).description
    except BadInput:
        return f"Kernels of {name}"
