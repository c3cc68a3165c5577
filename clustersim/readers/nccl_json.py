"""The JSON that recent nccl-tests write with ``-J``, into a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from clustersim.faults import Fault
from clustersim.readers.json_object import JsonObject
from clustersim.readers.nccl_run import NcclCell, NcclLine, NcclRun
from clustersim.readers.nccl_text import version_of

__all__ = ["looks_like_json", "read_json"]

_HALF_UNIT = 0.5e-6
"""nccl-tests, ``src/util.cu``: numbers are written by ``%lf``, with six decimals."""


def looks_like_json(values: Mapping[str, Any]) -> bool:
    """Whether an object has the parts of one run."""
    return isinstance(values.get("config"), dict) and "args" in values and "nccl_version" in values


def read_json(found: JsonObject) -> NcclRun:
    """The run in one file; what is wrong with it is kept in ``found``.

    Each process lists the first of its devices only, so the list stands for ``nthreads`` x ``ngpus`` as many ranks.
    """
    config = found.values["config"]
    run = NcclRun(program=_program(found.values["args"]), start=1, header=1, footer="end_time" in found.values)
    per_process = 1
    for name in ("nthreads", "ngpus"):
        per_process *= _count(found, config, name) or 1
    for name, key in (("min_bytes", "minimum_bytes"), ("max_bytes", "maximum_bytes"), ("warmup", "warmup_iters")):
        setattr(run, name, _count(found, config, key))
    run.iters = _count(found, config, "iterations")
    run.step_is_factor = "step_factor" in config
    run.step = _count(found, config, "step_factor" if run.step_is_factor else "step_bytes")
    code = found.values["nccl_version"]
    run.version = f"NCCL {version_of(code)}" if isinstance(code, int) and code > 0 else ""
    devices = config.get("devices")
    for device in devices if isinstance(devices, list) else ():
        if isinstance(device, dict) and isinstance(device.get("hostname"), str):
            run.hosts.append(device["hostname"])
            run.devices.append(str(device.get("device_info", "")))
            run.groups.add(str(device.get("group", 0)))
    run.num_listed = len(run.hosts) * per_process
    bounds = found.values.get("out_of_bounds")
    if isinstance(bounds, dict) and isinstance(bounds.get("count"), int):
        run.out_of_bounds = bounds["count"]
    results = found.values.get("results")
    if results is not None and not isinstance(results, list):
        found.fault("results", "must be a list of rows")
        return run
    for k, row in enumerate(results or ()):
        if line := _line(found, k, row):
            run.lines.append(line)
    return run


def _refuse(found: JsonObject, place: str, value: object, rule: str) -> None:
    found.faults.append(Fault(file=str(found.path), key=place, value=value, rule=rule))


def _program(args: object) -> str:
    name = PurePath(str(args[0])).name if isinstance(args, list) and args else ""
    return name.removesuffix(".exe").removesuffix("_perf") if name.endswith(("_perf", "_perf.exe")) else ""


def _count(found: JsonObject, config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    _refuse(found, f"config.{key}", value, "must be a whole number, not negative")
    return None


def _line(found: JsonObject, k: int, row: object) -> NcclLine | None:
    place = f"results[{k}]"
    if not isinstance(row, dict):
        _refuse(found, place, row, "must be an object, that is {...}")
        return None
    nbytes = row.get("size")
    if not isinstance(nbytes, int) or isinstance(nbytes, bool) or nbytes < 0:
        _refuse(found, f"{place}.size", nbytes, "must be a whole number of bytes")
        return None
    root = str(row.get("root", "")).strip()
    return NcclLine(
        number=k + 1,
        nbytes=nbytes,
        dtype=str(row.get("type", "")),
        redop=str(row.get("redop", "")),
        root=int(root) if re.fullmatch(r"-?\d+", root) else None,
        out_of_place=_cell(found, f"{place}.out_of_place", row.get("out_of_place")),
        in_place=_cell(found, f"{place}.in_place", row.get("in_place")),
    )


def _cell(found: JsonObject, place: str, given: object) -> NcclCell | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        _refuse(found, place, given, "must be an object, that is {...}")
        return None
    if "cpu_time" in given:
        _refuse(found, f"{place}.cpu_time", given["cpu_time"], "is not the time of the collective itself")
        return None
    good = True
    for name in ("time", "alg_bw", "bus_bw"):
        value = given.get(name)
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
        if not number or (name == "time" and value == 0):
            rule = "must be a number above 0" if name == "time" else "must be a number, zero or above"
            _refuse(found, f"{place}.{name}", value, rule)
            good = False
    wrong = given.get("nwrong")
    if wrong is not None and (not isinstance(wrong, int | float) or isinstance(wrong, bool) or not 0 <= wrong < 2**63):
        _refuse(found, f"{place}.nwrong", wrong, "must be a count")
        good = False
    if not good:
        return None
    return NcclCell(
        time_us=float(given["time"]),
        algbw=float(given["alg_bw"]),
        busbw=float(given["bus_bw"]),
        algbw_half_unit=_HALF_UNIT,
        busbw_half_unit=_HALF_UNIT,
        wrong=None if wrong is None else round(wrong),
    )
