"""Rows that tell neither tensor- nor pipeline-parallel degrees: the fewest GPUs a replica that hold the model."""

from __future__ import annotations

from dataclasses import replace

from clustersim.faults import BadInput
from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.fewest_passes import with_fewest_passes
from clustersim.study.steps.fits import fits
from clustersim.study.steps.job_card import card_job
from clustersim.study.steps.recipes import recipe_of
from clustersim.study.steps.refusal import RefusedError
from clustersim.study.steps.step_job import MeasuredStep, place

__all__ = ["placed"]

_TP = (1, 2, 4, 8)
"""Tensor parallelism stays within a node of eight, and divides the heads."""


def placed(row: StepRow) -> MeasuredStep:
    """The job of a row.

    Where neither its degrees nor a recipe are published, and its job is no card, that of the smallest tp x pp that fits
    in memory, of equal products the one with more tensor parallelism; first without recomputation, then, where none
    fits and the row does not tell, with all of it.

    Raises
    ------
    RefusedError
        with a reason of the closed list
    """
    known = recipe_of(row)[0]
    told = known.tp is not None or known.pp is not None or known.gpus in (None, 1)
    if told or card_job(row) is not None:
        return with_fewest_passes(row, place(row))
    first: RefusedError | None = None
    illegal: RefusedError | None = None
    full = False
    for recompute in [row.recompute] if row.recompute else ["no", "full"]:
        for degrees in _degrees(known):
            try:
                tp, pp = degrees
                chosen = replace(row, recompute=recompute, cp=row.cp or 1, tp=tp, pp=pp)
                measured = place(chosen)
                if fits(measured):
                    text = f"layout: tp {tp}, pp {pp}, recompute {recompute}: the fewest GPUs a replica that hold it"
                    chosen_step = replace(measured, row=row, assumptions=(*measured.assumptions, text), published=False)
                    return with_fewest_passes(chosen, chosen_step)
                full = True
            except RefusedError as refusal:
                first = first or refusal
            except BadInput as bad:
                rules = "; ".join(f"{fault.key} {fault.value} {fault.rule}" for fault in bad.faults)
                illegal = illegal or RefusedError("plan", rules)
    room = RefusedError("layout", f"{row.gpus} GPUs without tp and pp, and no tp x pp has room in their memory")
    raise first or (room if full or illegal is None else illegal)


def _degrees(row: StepRow) -> list[tuple[int, int]]:
    """tp and pp whose product divides the row's GPUs, the smallest first; stages have equally many layers."""
    gpus, layers = row.gpus or 1, row.layers or 1
    found = [
        (tp, pp)
        for tp in _TP
        for pp in range(1, layers + 1)
        if layers % pp == 0 and gpus % (tp * pp * (row.cp or 1)) == 0
    ]
    return sorted(found, key=lambda degrees: (degrees[0] * degrees[1], -degrees[0]))
