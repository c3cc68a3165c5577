"""The trace: one row an op, one column a fact, units in the names."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CATEGORIES", "COLUMNS", "SCHEMA_VERSION", "Column"]

SCHEMA_VERSION = 2
"""Version of the trace's columns and of the summary's fields; grows when one changes its meaning."""

CATEGORIES = ("compute", "optimizer", "communication", "copy", "storage", "host", "launch")
"""Values of the column ``category``."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the trace: its name, pandas dtype and meaning."""

    name: str
    dtype: str
    meaning: str


COLUMNS = (
    Column("run", "category", "name of the job"),
    Column("step", "int32", "optimizer step, from 0"),
    Column("rank", "int32", "rank of the job; in a folded trace the representative of its class"),
    Column("multiplicity", "int32", "ranks that the row stands for"),
    Column("stream", "category", "in-order queue of the rank"),
    Column("op_id", "int32", "number of the op in its program, which may be of several steps"),
    Column("name", "category", "what a person calls the op"),
    Column(
        "category",
        "category",
        "compute, optimizer, communication, copy, storage, host, launch (of kernels)",
    ),
    Column("kind", "category", "attention, mlp, all_reduce, send, h2d, …"),
    Column("ready_ns", "int64", "when its dependencies and its stream let it go [ns]"),
    Column("start_ns", "int64", "when it started to work [ns]"),
    Column("end_ns", "int64", "when it ended [ns]"),
    Column("wait_ns", "int64", "start - ready: waiting for other ranks, or for a pool [ns]"),
    Column("cause", "int64", "index label (in the run's trace) of the op whose end let it start; -1: the launch"),
    Column("pool", "category", "pool that was short and that it waited for, '' where it waited for none"),
    Column("bound", "category", "what set its duration: tensor, vector, hbm, launch, latency, or a resource"),
    Column("nbytes", "int64", "payload of a collective or copy, HBM traffic of a kernel [B]"),
    Column("flops", "int64", "floating-point operations [FLOP]"),
    Column("group", "category", "axis/family/number of the process group of a collective, '' otherwise"),
    Column("micro_batch", "int32", "-1 where it does not apply"),
    Column("stage", "int32", "virtual pipeline stage (model chunk), -1 where it does not apply"),
    Column("layer", "int32", "-1 where it does not apply"),
    Column("phase", "category", "forward, backward, optimizer, …"),
)
