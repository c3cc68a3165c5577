"""The sweeps of Deep Optimizer States: stride, micro-batch, subgroups, replicas, contention, models, ratios.

``python -m clustersim.study.interleaved_updates [SWEEP ...]`` prints a table each, with three ways to update side by
side: ZeRO-3 with its optimizer on the host as DeepSpeed 0.13 has it, the same with gradients that leave beside the
backward pass, and Deep Optimizer States.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clustersim.study.reproduce.runs import Runs

__all__ = ["JOB", "SWEEPS", "WAYS", "Row", "sweep_rows", "table_of"]

JOB = "deep-optimizer-states-20b"
"""Four H100, one sequence each, subgroups of 100 million."""

_ZERO_3 = {"plan.offload.policy": "zero-3-offload"}
_BESIDE = {**_ZERO_3, "plan.offload.cast": "gpu", "plan.offload.cast_weights": "cpu", "plan.offload.blocking": False}

WAYS: Mapping[str, Mapping[str, Any]] = {"ZeRO-3": _ZERO_3, "gradients beside": _BESIDE, "interleaved": {}}
"""By name, what a way sets; the last is the job's own policy."""

_MODELS = ("7b", "8.3b", "10b", "13b", "20b")


def _model(name: str) -> dict[str, Any]:
    return {"model": f"deep-optimizer-states-{name}"}


def _replicas(model: str, number: int) -> dict[str, Any]:
    where = {"topology": "jlse-h100" if number == 4 else f"jlse-h100-{number}gpu", "plan.dp": number}
    split = {} if number > 1 else {"plan.zero": 0, "plan.gather_blocks": False}
    return {**_model(model), **where, **split, "global_batch": number}


def _taken(share: float) -> dict[str, Any]:
    """Others take this share of what both sockets' memory can move."""
    return {"perturb.slow_links": {f"node0/cpu{socket}/dram": 1 - share for socket in (0, 1)}} if share else {}


SWEEPS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "models": {name.upper(): _model(name) for name in _MODELS},
    "stride, 7B": {str(k): {**_model("7b"), "plan.offload.stride": k} for k in range(2, 7)},
    "stride, 20B": {str(k): {"plan.offload.stride": k} for k in range(2, 7)},
    "micro-batch, 20B": {str(b): {"micro_batch": b, "global_batch": 4 * b} for b in (1, 2, 4, 8, 16)},
    "micro-batches, 13B": {str(n): {**_model("13b"), "global_batch": 4 * n} for n in (1, 4, 16, 64)},
    "subgroup, 7B": {
        f"{size // 1_000_000}M": {**_model("7b"), "plan.offload.subgroup_size": size}
        for size in (100_000_000, 200_000_000, 500_000_000, 1_000_000_000, 2_000_000_000)
    },
    "replicas, 7B": {str(n): _replicas("7b", n) for n in (1, 2, 4)},
    "replicas, 13B": {str(n): _replicas("13b", n) for n in (1, 2, 4)},
    "memory taken by others, 20B": {f"{share:.0%}": _taken(share) for share in (0, 0.1, 0.2, 0.4, 0.6, 0.8)},
}
"""Sweep -> setting -> values. Ways without a stride leave it out, so their rows repeat."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One setting.

    Parameters
    ----------
    setting : str
    step, update : Mapping[str, float]
        by way: iteration, and its part behind the passes [s]; ways that do not fit are missing
    """

    setting: str
    step: Mapping[str, float]
    update: Mapping[str, float]

    def gain(self, over: str) -> float | None:
        """Iteration of another way over the interleaved one; None where one of them does not fit."""
        if over not in self.step or "interleaved" not in self.step:
            return None
        return self.step[over] / self.step["interleaved"]


def sweep_rows(sweep: str, runs: Runs) -> Iterator[Row]:
    """Simulate one sweep."""
    for setting, values in SWEEPS[sweep].items():
        step, update = {}, {}
        for way, own in WAYS.items():
            kept = {key: value for key, value in values.items() if not own or key != "plan.offload.stride"}
            found = runs.step(JOB, {**kept, **own})
            if found["fits"]:
                step[way], update[way] = float(found["step_time_s"]), float(found["phases_s"]["update"])
        yield Row(setting=setting, step=step, update=update)


def table_of(sweep: str, rows: Sequence[Row]) -> str:
    """Rows as Markdown: iterations [s], in brackets their updates, and what interleaving gains."""
    lines = [f"| {sweep} | {' | '.join(WAYS)} | over ZeRO-3 | over gradients beside |", f"|---|{'---:|' * 5}"]
    for row in rows:
        cells = [f"{row.step[way]:.2f} ({row.update[way]:.2f})" if way in row.step else "does not fit" for way in WAYS]
        gains = [row.gain(way) for way in list(WAYS)[:2]]
        told = ["-" if gain is None else f"{gain:.2f}x" for gain in gains]
        lines.append(f"| {row.setting} | {' | '.join([*cells, *told])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    from clustersim.study.reproduce.runs import Runs

    wanted = sys.argv[1:] or list(SWEEPS)
    if unknown := [name for name in wanted if name not in SWEEPS]:
        sys.exit(f"{', '.join(unknown)}: no sweep; there are {'; '.join(SWEEPS)}")
    runs = Runs()
    for name in wanted:
        print(table_of(name, list(sweep_rows(name, runs))), end="\n\n")
