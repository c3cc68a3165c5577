"""Measurements as files: a kernel table that clustersim reads, and host numbers beside it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path

from host_numbers import HostNumber
from kernel_cases import Case
from stopwatch import Timing

from clustersim.hardware.gpu import GPU
from clustersim.readers.kernel_table import COLUMNS

__all__ = ["above_the_peaks", "row", "write_host_numbers", "write_kernels"]


def row(device: str, case: Case, timing: Timing) -> dict[str, object]:
    """A measurement in the columns of :mod:`clustersim.readers.kernel_table`."""
    kernel = case.kernel
    shape = {} if kernel.kind == "memory" else {name: getattr(kernel, name) for name in ("m", "n", "k", "batch")}
    return {
        "device": device,
        "kind": kernel.kind,
        "dtype": kernel.dtype,
        **shape,
        "form": kernel.form,
        "backward": int(kernel.backward),
        "causal": int(case.causal),
        "nbytes": kernel.nbytes,
        "time_us": f"{timing.seconds * 1e6:.4g}",
    }


def above_the_peaks(case: Case, timing: Timing, gpu: GPU) -> str:
    """Which peak of the card a measurement beats, and by how much; empty when it beats none.

    It says that the card is of another device, or that the time is not the kernel's.
    """
    kernel = case.kernel
    if kernel.kind == "memory":
        rates = [("memory bandwidth", kernel.nbytes / timing.seconds, gpu.memory_bandwidth, "B/s")]
    else:
        rates = [("dense peak", kernel.flops / timing.seconds, gpu.flop_per_s(kernel.dtype), "FLOP/s")]
    return "".join(
        f"{rate / 1e12:.4g} T{unit} is above the {name} of {gpu.name}, {peak / 1e12:.4g}"
        for name, rate, peak, unit in rates
        if rate > peak
    )


def write_kernels(path: Path, rows: Iterable[dict[str, object]]) -> None:
    """Write a kernel table as CSV."""
    _write(path, list(COLUMNS), rows)


def write_host_numbers(path: Path, numbers: Iterable[HostNumber]) -> None:
    """Write quantity, bytes, value, unit and spread as CSV."""
    _write(path, [field.name for field in fields(HostNumber)], _rounded(numbers))


def _rounded(numbers: Iterable[HostNumber]) -> Iterator[dict[str, object]]:
    for number in numbers:
        yield asdict(number) | {"value": f"{number.value:.4g}", "spread": f"{number.spread:.2g}"}


def _write(path: Path, columns: list[str], rows: Iterable[dict[str, object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
