"""How much of a run rests on measurements, and which ones are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clustersim.hardware.kernel import Kernel
from clustersim.trace.timed_work import TimedWork

__all__ = ["Coverage"]

_CAUSAL = 0.75
"""Of all pairs of queries and keys: a mask that leaves fewer is called causal."""


class Coverage(dict[str, float]):
    """Fractions of op time that are measured, interpolated, modelled and assumed; they sum to 1.

    Parameters
    ----------
    fractions : Mapping[str, float]
    timed : Sequence[TimedWork]
        what the op time is made of
    """

    def __init__(self, fractions: Mapping[str, float], timed: Sequence[TimedWork] = ()) -> None:
        super().__init__(fractions)
        self._timed = tuple(timed)

    @property
    def missing(self) -> dict[str, list[dict[str, Any]]]:
        """What is worth measuring, the largest share of op time first, and equal ones in the order of their columns.

        Returns
        -------
        dict
            ``kernels`` in the columns of a table of one's own measurements (:mod:`clustersim.readers.kernel_table`),
            all but ``time_us``, and ``collectives`` by kind, payload [B], ranks and nodes; each with its ``share`` of
            op time and the ``provenance`` that it has now. Kernels without a shape are left out: no table holds them
        """
        total = sum(work.seconds for work in self._timed)
        kernels: dict[tuple[Any, ...], dict[str, Any]] = {}
        collectives: dict[tuple[Any, ...], dict[str, Any]] = {}
        for work in self._timed:
            if work.provenance == "measured" or not total:
                continue
            if work.kernel is not None:
                row, into = _kernel(work), kernels
            elif work.category == "communication":
                row, into = _collective(work), collectives
            else:
                continue
            if row is None:
                continue
            known = into.setdefault(tuple(row.values()), {**row, "share": 0.0})
            known["share"] += work.seconds / total
            known["provenance"] = work.provenance
        return {
            name: sorted(rows.values(), key=lambda row: (-row["share"], str(row)))
            for name, rows in (("kernels", kernels), ("collectives", collectives))
        }


def _kernel(work: TimedWork) -> dict[str, Any] | None:
    """Columns of a row that measures it; None where it has no shape."""
    kernel = work.kernel
    assert kernel is not None
    row: dict[str, Any] = {"device": work.device, "kind": kernel.kind, "dtype": kernel.dtype}
    if kernel.kind == "memory":
        return row | {"form": kernel.form, "nbytes": kernel.nbytes} | _flops(kernel)
    if not (kernel.m and kernel.n and kernel.k):
        return None
    row |= {"m": kernel.m, "n": kernel.n, "k": kernel.k, "batch": kernel.batch, "form": kernel.form}
    if kernel.kind == "gemm":
        return row  # of one shape some add to what they write: a measurement stands for all
    whole = (10 if kernel.backward else 4) * kernel.batch * kernel.m * kernel.n * kernel.k
    row |= {"backward": int(kernel.backward), "causal": int(kernel.flops < _CAUSAL * whole)}
    return row | {"dropout": int(kernel.dropout)} | _flops(kernel)


def _flops(kernel: Kernel) -> dict[str, int]:
    """A cell that is empty of a kernel that computes nothing, as the table has it."""
    return {"flops": kernel.flops} if kernel.flops else {}


def _collective(work: TimedWork) -> dict[str, Any]:
    return {
        "collective": work.kind,
        "nbytes": work.nbytes,
        "ranks": work.num_members,
        "nodes": work.num_nodes,
        "axis": work.axis,
    }
