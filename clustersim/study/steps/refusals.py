"""All that refuses a row, not just what is met first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.job_card import card_job
from clustersim.study.steps.layout import layout_of
from clustersim.study.steps.metric import metric_faults
from clustersim.study.steps.number_format import dtype_of
from clustersim.study.steps.offload import offload_of
from clustersim.study.steps.possible import check_numbers
from clustersim.study.steps.recipes import recipe_of
from clustersim.study.steps.refusal import RefusedError
from clustersim.study.steps.shape import model_of
from clustersim.study.steps.software import profile_of

__all__ = ["refusals"]


def refusals(row: StepRow) -> Iterator[RefusedError]:
    """What is refused of the parts of a row, each looked at alone.

    Metric, hardware with nodes and rates, number format, offloading, model, and layout where degrees are told. Of rows
    whose jobs are cards only the metric: a card says the rest.
    """
    checks: list[Callable[[], object]] = [lambda: metric_faults(row)]
    try:
        by_card = card_job(row) is not None
    except RefusedError as refusal:
        yield refusal
        by_card = True
    if not by_card:
        profile, _ = profile_of(row)
        known, switches, *_ = recipe_of(row)
        checks += [
            lambda: check_numbers(row),
            lambda: dtype_of(known, profile),
            lambda: offload_of(known),
            lambda: model_of(known, known.seq_len or 1),
        ]
        if known.tp is not None or known.pp is not None:
            checks.append(lambda: layout_of(known, profile, switches))
    for check in checks:
        try:
            check()
        except RefusedError as refusal:
            yield refusal
