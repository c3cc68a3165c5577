"""DataStates-LLM: lazy checkpoints after every step on Polaris (Maurya et al.).

The abstract says how much faster at most, not of which model and against which other system. So both are shown for what
they can mean: throughput, bytes saved over the time that a save holds up training, and the time of training, against
``torch.save`` that training waits for, and against snapshots whose files are serialised in the background or written as
they are. Models from 3B to 70B with tensor parallelism in a node and a pipeline over nodes, about 12 GB of state a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from clustersim.analysis.summary import summary
from clustersim.library.job import load_job
from clustersim.study.point import run_point
from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import Quantity, System

__all__ = ["DATASTATES_LLM"]

_JOB = "datastates-llm-7b"
_SIZES: Mapping[str, Mapping[str, Any]] = {
    "3B": {"model": "bloom-3b", "nodes": 1, "plan.pp": 1},
    "7B": {},
    "13B": {"model": "llama-2-13b", "nodes": 4, "plan.pp": 4},
    "70B": {"model": "llama-2-70b", "nodes": 20, "plan.pp": 20},
}
_LAZY: Mapping[str, Any] = {}
_SYNCHRONOUS = {"plan.checkpoint.policy": "synchronous", "plan.checkpoint.pool_bytes": None}
_SERIALISED = {"plan.checkpoint.policy": "asynchronous", "plan.checkpoint.serialises": True}
_SNAPSHOTS = {"plan.checkpoint.policy": "asynchronous"}
_UNNAMED = (
    "up to, of a model and against a system that the abstract does not name. One thread of torch.save handles 0.7 GB/s "
    "on the card, measured on another host, and what a node writes to Lustre is recalled"
)


def _step(runs: Runs, size: str, how: Mapping[str, Any] | None) -> float:
    """The last, when buffers are full, with saves or without [s]."""
    return runs.once(_step_time, size, None if how is None else tuple(sorted(how.items())))


def _step_time(size: str, how: tuple[tuple[str, Any], ...] | None) -> float:
    setup = load_job(_JOB).with_values(_SIZES[size])
    given = {key: value for key, value in (how or ()) if value is not None}
    left_out = [key for key, value in how or () if value is None]
    if how is None:
        left_out = [key for key in setup.values if key.startswith("plan.checkpoint.")]
    kept = {key: value for key, value in setup.values.items() if key not in left_out}
    return float(summary(run_point(replace(setup, values=kept).with_values(given)))["step_times_s"][-1])


def _end_to_end(runs: Runs, size: str, other: Mapping[str, Any]) -> float:
    return _step(runs, size, other) / _step(runs, size, _LAZY)


def _throughput(runs: Runs, size: str, other: Mapping[str, Any]) -> float:
    """Of the same bytes: the other's time held up over that of lazy saves."""
    plain = _step(runs, size, None)
    return (_step(runs, size, other) - plain) / (_step(runs, size, _LAZY) - plain)


_OTHERS = (("torch.save", _SYNCHRONOUS), ("serialised snapshots", _SERIALISED), ("snapshots", _SNAPSHOTS))
_SHOWN = (
    *((f"throughput over {name}, 7B", 4.0, partial(_throughput, size="7B", other=how)) for name, how in _OTHERS),
    *(
        (f"training time of {name} over its own, 7B", 2.2, partial(_end_to_end, size="7B", other=how))
        for name, how in _OTHERS
    ),
    *(
        (f"training time of torch.save over its own, {size}", 2.2, partial(_end_to_end, size=size, other=_SYNCHRONOUS))
        for size in ("3B", "13B", "70B")
    ),
)

DATASTATES_LLM = System(
    number="3",
    name="datastates-llm",
    paper="DataStates-LLM: Scalable Checkpointing for Transformer Models Using Composable State Providers",
    year=2026,
    arxiv="2601.16956",
    slow=True,
    quantities=tuple(
        Quantity(name=name, published=published, unit="x", grade="S", job=_JOB, simulated=simulated, reason=_UNNAMED)
        for name, published, simulated in _SHOWN
    ),
)
