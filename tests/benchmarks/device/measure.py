"""Measures kernels, copies and launches on the first GPU and writes them down for clustersim.

    python tests/benchmarks/device/measure.py --device h100-sxm --out measured
    clustersim run JOB --set kernel_table=measured/kernels.csv

``kernels.csv`` is a kernel table (``clustersim.readers.kernel_table``), ``host.csv`` has launches and copies,
``left_out.txt`` what was not measured and why. With ``--job``, the kernels of a job are measured, at its own shapes,
instead of a sweep. It needs PyTorch 2.10 or later and an NVIDIA GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from host_numbers import HostNumber, copies, launches
from kernel_cases import Case, cases_of, usual_cases
from measured_table import above_the_peaks, row, write_host_numbers, write_kernels
from stopwatch import Stopwatch
from torch_device import NotMeasuredError, TorchDevice, why_not

from clustersim.faults import BadInput
from clustersim.hardware.gpu import GPU
from clustersim.library import load_part
from clustersim.library.job import load_job
from clustersim.study.point import prepare

__all__ = ["Measured", "main", "measure_kernels"]

_WIDE = 0.2
"""Spread of repeats from which a row is told."""


@dataclass(slots=True)
class Measured:
    """Rows, what was left out, and what is to be looked at."""

    rows: list[dict[str, object]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def measure_kernels(device: TorchDevice, stopwatch: Stopwatch, cases: Iterable[Case], gpu: GPU) -> Measured:
    """Each case that the device takes, one after another; what beats the card's peaks is left out."""
    measured = Measured()
    for case in cases:
        kernel = case.kernel
        name = " ".join(filter(None, [kernel.kind, kernel.form, kernel.dtype, "backward" if kernel.backward else ""]))
        name += f" {kernel.nbytes} B" if kernel.kind == "memory" else f" {kernel.m} x {kernel.n} x {kernel.k}"
        name += f" x {kernel.batch}" if kernel.batch > 1 else ""
        try:
            timing = stopwatch.on_device(device.work(case))
            beaten = above_the_peaks(case, timing, gpu)
        except (
            NotMeasuredError,
            RuntimeError,
            KeyError,
        ) as error:  # PyTorch's own refusals and a full memory are the second
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            measured.left_out.append(f"{name}: {reason}")
            continue
        if beaten:
            measured.left_out.append(f"{name}: {beaten}")
            continue
        if timing.spread > _WIDE:
            measured.notes.append(f"{name}: repeats spread by {timing.spread:.0%}")
        measured.rows.append(row(gpu.name, case, timing))
    return measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; 0, or 2 with the reason when nothing can be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True, help="the GPU's card: clustersim list gpu")
    parser.add_argument("--out", required=True, type=Path, help="folder to write to")
    parser.add_argument("--job", action="append", default=[], help="a job whose kernels are measured; repeatable")
    asked = parser.parse_args(arguments)
    try:
        gpu = load_part("gpu", asked.device)
        jobs = [prepare(load_job(name)).job for name in asked.job]
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    reason = why_not()
    if reason:
        print(f"nothing is measured: {reason}", file=sys.stderr)
        return 2
    device = TorchDevice()
    stopwatch = Stopwatch(device)
    cases, left_out = list(usual_cases(device.dtypes)) if not jobs else [], []
    for job in jobs:
        more, without = cases_of(job)
        cases, left_out = cases + more, left_out + without
    measured = measure_kernels(device, stopwatch, dict.fromkeys(cases), gpu)
    host: list[HostNumber] = [
        *launches(device, stopwatch),
        *copies(device, stopwatch, device.torch.cuda.device_count()),
    ]
    asked.out.mkdir(parents=True, exist_ok=True)
    write_kernels(asked.out / "kernels.csv", measured.rows)
    write_host_numbers(asked.out / "host.csv", host)
    (asked.out / "left_out.txt").write_text("".join(f"{line}\n" for line in left_out + measured.left_out))
    for note in measured.notes:
        print(note, file=sys.stderr)
    print(f"{device.name}: {len(measured.rows)} kernels and {len(host)} host numbers in {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
