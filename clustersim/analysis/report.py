"""The summary of a run as text, readable at 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from clustersim.analysis.phases import PHASES
from clustersim.topology.topology import Topology

__all__ = ["bytes_text", "report", "seconds_text", "table", "unit_of_speed", "wrapped"]

_WIDTH = 80


def report(answer: Mapping[str, Any], topology: Topology) -> str:
    """Text of a summary.

    Parameters
    ----------
    answer : Mapping[str, Any]
        of :func:`clustersim.analysis.summary.summary`
    topology : Topology
        the cluster, for its own numbers
    """
    blocks = [_title(answer, topology), table(_rows(answer, topology))]
    if answer["message"]:
        blocks.append(f"{answer['status']}: {answer['message']}")
    if answer["out_of_memory"]:
        blocks.append(wrapped(_lack(answer)))
    warnings = [wrapped(f"warning: {warning}") for warning in answer["warnings"]]
    return "\n\n".join([*blocks, "\n".join(warnings)] if warnings else blocks)


def seconds_text(seconds: float | None) -> str:
    """A time in the unit that suits it."""
    if seconds is None:
        return "-"
    for unit, each in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= each:
            return f"{seconds / each:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def bytes_text(nbytes: float) -> str:
    """An amount of memory in GiB."""
    return f"{nbytes / 2**30:.1f} GiB"


def unit_of_speed(answer: Mapping[str, Any]) -> str:
    """What is told a second: ``tokens``; ``samples`` of a job that counts those alone."""
    counted = {name: answer.get(f"{name}_per_s") is not None for name in ("tokens", "samples")}
    return "samples" if counted["samples"] and not counted["tokens"] else "tokens"


def _title(answer: Mapping[str, Any], topology: Topology) -> str:
    plan = answer["plan"]
    nodes = f"{topology.num_nodes} node{'s' * (topology.num_nodes != 1)}"
    what = f"{answer['job']} on {topology.name}: {topology.num_devices:,} GPUs, {nodes}"
    if {"mp", "dp", "batch"} <= set(plan):  # a data-flow graph
        return f"{what}\nmp {plan['mp']} x dp {plan['dp']}; {plan['batch']} samples a worker"
    if not {"schedule", "zero", "recompute"} <= set(plan):  # a job made by hand
        return what
    degrees = " x ".join(f"{axis} {plan[axis]}" for axis in ("tp", "cp", "pp", "dp") if plan.get(axis, 1) > 1)
    experts = f", ep {plan['ep']}" if plan.get("ep", 1) > 1 else ""  # among the ranks of the others, no factor
    words = f"{plan['schedule']}, {_sharding(plan)}, recompute {plan['recompute']}"
    return f"{what}\n{degrees or 'one rank'}{experts}; {words}"


def _sharding(plan: Mapping[str, Any]) -> str:
    """How replicas divide weights, gradients and state, in the plan's words."""
    name = f"zero {plan['zero']}"
    if plan.get("fsdp"):
        name = "fsdp" if plan.get("hsdp") is None else f"fsdp over {plan['hsdp']}"
    elif plan.get("hsdp") is not None and plan["zero"] == 3:
        name = f"zero 3 over {plan['hsdp']}"
    if plan.get("zeropp"):
        name = f"{name} with {', '.join(plan['zeropp'])}"
    if plan.get("sync_every") is not None:
        name = f"{name}, exchange every {plan['sync_every']} steps"
    return str(plan["sharding"]) if plan.get("sharding") else name


def _rows(answer: Mapping[str, Any], topology: Topology) -> list[tuple[str, str, str]]:
    comm = answer["breakdown_s"]["exposed_comm"]
    step = answer["step_time_s"]
    by_axis = ", ".join(f"{axis} {_percent(s / step)}" for axis, s in comm.items() if s and step)
    ops_per_s = answer["num_ops"] / answer["wall_s"] if answer["wall_s"] else 0.0
    held = {tier: nbytes for tier, nbytes in answer["peak_memory_bytes"].items() if nbytes}
    used = np.unique(topology.gpu_of)
    unit = unit_of_speed(answer)
    capacity = min(topology.gpus[k].memory_bytes for k in used.tolist())
    waited = answer["breakdown_s"]["host"]
    host = [("host", _percent(waited / step), "GPUs wait for it")] if waited and step else []
    waits = [(s, pool) for pool, s in answer["pool_wait_s"].items() if s and step]
    pools = [("", _percent(s / step), f"waits for {pool}") for s, pool in sorted(waits, reverse=True)]
    rows = [
        ("step time", seconds_text(step), _between(answer["step_time_interval_s"])),
        (f"{unit}/s", _number(answer[f"{unit}_per_s"]), f"{_number(answer[f'{unit}_per_s_per_gpu'])} per GPU"),
        ("MFU", _percent(answer["mfu"]), f"HFU {_percent(answer['hfu'])}"),
        ("bubble", _percent(answer["bubble_fraction"]), ""),
        ("exposed comm", _percent(answer["exposed_comm_fraction"]), by_axis),
        *host,
        *pools,
        *_phases(answer.get("phases_s") or {}, answer.get("host_bounds_s") or {}),
        ("peak memory", bytes_text(held.get("gpu", 0)), f"of {bytes_text(capacity)} a GPU"),
    ]
    rows += [(f"  {tier}", bytes_text(nbytes), "") for tier, nbytes in held.items() if tier != "gpu"]
    num_classes = answer["num_classes"]
    alike = "one by one" if answer["fold"] == "off" else f"as {num_classes} class{'es' * (num_classes != 1)}"
    rows += [
        ("ranks", f"{answer['num_ranks']:,}", f"simulated {alike}"),
        ("ops", f"{answer['num_ops']:,}", f"{ops_per_s:,.0f} a second, {answer['num_events']:,} events"),
        ("simulation", seconds_text(answer["wall_s"]), ""),
    ]
    return rows


def _phases(seconds: Mapping[str, float], bounds: Mapping[str, float]) -> Iterator[tuple[str, str, str]]:
    """The terms of a step with offloading, how much of the accesses of drives is hidden, and what limits the host."""
    for name in PHASES:
        if seconds.get(name):
            hidden = seconds.get(f"{name}_overlapped")
            way = "reads" if name == "swap_in" else "writes"
            beside = "" if hidden is None else f"{_percent(hidden)} of {way} is hidden"
            if name == "update" and bounds:
                limit, most = next(iter(bounds.items()))
                beside = f"{_percent(most / sum(bounds.values()))} of the host's work is bound by {limit}"
            yield f"  {name.replace('_', '-')}", seconds_text(seconds[name]), beside


def _between(interval: Sequence[float] | None) -> str:
    """Where the time may turn out to lie."""
    return "" if interval is None else f"{seconds_text(interval[0])} to {seconds_text(interval[1])} in 8 of 10 cases"


def _lack(answer: Mapping[str, Any]) -> str:
    lack = answer["out_of_memory"]
    stage = "" if lack["stage"] is None else f" (stage {lack['stage']})"
    where = "from the start" if lack["op"] is None else f"in '{lack['op']}'"
    return (
        f"does not fit: rank {lack['rank']}{stage} needs {bytes_text(lack['needed_bytes'])} of {lack['tier']} memory "
        f"{where} and has {bytes_text(lack['capacity_bytes'])}: {lack['over_bytes']:,} bytes "
        f"({bytes_text(lack['over_bytes'])}) over, most of it {lack['category']}. With enough memory the step would "
        f"take {seconds_text(answer['step_time_s'])}."
    )


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def wrapped(text: str) -> str:
    """A sentence over as many lines as it needs."""
    return textwrap.fill(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def table(rows: Iterable[Iterable[str]], *, indent: str = "  ", right: Iterable[int] = ()) -> str:
    """Rows of texts as columns, those in ``right`` to the right."""
    lines = [list(row) for row in rows]
    widths = [max(map(len, column), default=0) for column in zip(*lines, strict=True)]
    flush = set(right)

    def cell(k: int, text: str) -> str:
        return text.rjust(widths[k]) if k in flush else text.ljust(widths[k])

    return "\n".join(f"{indent}{'  '.join(cell(k, text) for k, text in enumerate(line))}".rstrip() for line in lines)
