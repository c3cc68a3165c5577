"""Rows of a source whose jobs stand as cards in the library: the card, with the row's own batch and degrees."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from clustersim.faults import BadInput
from clustersim.library.card import list_cards
from clustersim.library.job import load_job
from clustersim.readers.step_rows import StepRow
from clustersim.study.point import Point, prepare
from clustersim.study.steps.refusal import RefusedError
from clustersim.workload.case import Case
from clustersim.workload.model import Model

__all__ = ["CardJob", "card_job"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cards:
    """Cards of a source.

    Parameters
    ----------
    words : tuple[str, ...]
        all of them are in the row's source, model, offloading, notes or id, in lower case
    card : str
        name of the job's card; ``{model}`` stands for the row's model
    other : tuple[str, str], optional
        card of a job, and name of the model that takes the place of its own, for models without a job of their own
    values : Mapping[str, Any]
        settings in place of the card's
    """

    words: tuple[str, ...]
    card: str
    other: tuple[str, str] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


_MLP = "mlp-offload-{model}"
_DOS = "deep-optimizer-states-{model}"
_CARDS: tuple[_Cards, ...] = (
    _Cards(
        words=("mlp-offload artifact", "(mlp-offload)", "nosp"),
        card=_MLP,
        other=("mlp-offload-70b", _MLP),
        values={"plan.offload.lock": False},
    ),
    _Cards(words=("mlp-offload artifact", "(mlp-offload)"), card=_MLP, other=("mlp-offload-70b", _MLP)),
    _Cards(
        words=("mlp-offload artifact", "zero-3 default"),
        card="zero-infinity-{model}",
        other=("zero-infinity-70b", _MLP),
    ),
    _Cards(
        words=("deep optimizer states artifact", "vanilla"),
        card="zero-3-offload-{model}",
        other=("zero-3-offload-7b", _DOS),
    ),
    _Cards(words=("deep optimizer states artifact",), card=_DOS, other=("deep-optimizer-states-7b", _DOS)),
    _Cards(words=("superoffload blog", "qwen3-14b"), card="superoffload-qwen3-14b"),
    *(_Cards(words=(words,), card="deepseek-v3-2048") for words in ("deepseek-v3 technical report", "2412.19437")),
)
"""The first that fits. What the artefact's logs call ``nosp`` is MLP-Offload without the locks around drives."""

_OWN = {
    "nodes": "nodes",
    "seq_len": "seq_len",
    "micro_batch": "micro_batch",
    "global_batch": "global_batch",
    "tp": "plan.tp",
    "pp": "plan.pp",
    "dp": "plan.dp",
}
"""Columns of a row -> settings of its job."""

_SHAPE = {
    "layers": "num_layers",
    "hidden": "hidden",
    "heads": "num_heads",
    "kv_heads": "num_kv_heads",
    "ffn": "ffn_hidden",
    "vocab": "vocab",
}
_DECIDES = ("layers", "hidden", "heads")

_SUBGROUP = re.compile(r"sub-group (\d+)m\b")


@dataclass(frozen=True, kw_only=True, slots=True)
class CardJob:
    """The job of a row.

    Parameters
    ----------
    name : str
        of its card
    case : Case
    topology : str
        card of the cluster
    nodes, num_ranks : int
    assumptions : tuple[str, ...]
    """

    name: str
    case: Case
    topology: str
    nodes: int
    num_ranks: int
    assumptions: tuple[str, ...]


def card_job(row: StepRow) -> CardJob | None:
    """The job of a row whose source's jobs are cards; None for rows of other sources.

    Raises
    ------
    RefusedError
        where the library has no card of that model, or the row's shape or batch is not that of the card
    """
    text = "|".join((row.source, row.model, row.offload, row.notes, row.id)).lower()
    found = next((cards for cards in _CARDS if all(word in text for word in cards.words)), None)
    if found is None:
        return None
    name, values = _named(found, row.model)
    values |= {key: value for column, key in _OWN.items() if (value := getattr(row, column)) is not None}
    size = _SUBGROUP.search(row.offload.lower())
    if size is not None:
        values["plan.offload.subgroup_size"] = int(size[1]) * 1_000_000
    point = _prepared(name, tuple(sorted(values.items())))
    case, topology = point.case, point.topology
    if case is None:
        raise RefusedError("method", f"job {name} trains a graph")
    if row.gpus not in (None, topology.num_devices):
        raise RefusedError("numbers", f"{row.gpus} GPUs, job {name} has {topology.num_devices}")
    assumptions = [f"job: {name}, with the row's batch and degrees", *_differing(row, case.model)]
    return CardJob(
        name=name,
        case=case,
        topology=point.setup.value("topology"),
        nodes=topology.num_nodes,
        num_ranks=topology.num_devices,
        assumptions=tuple(assumptions),
    )


def _named(found: _Cards, model: str) -> tuple[str, dict[str, Any]]:
    """Name and settings of the job of a model."""
    name = found.card.format(model=model.lower())
    if name in _names("job"):
        return name, dict(found.values)
    if found.other is not None:
        other, template = found.other
        own = template.format(model=model.lower())
        if own in _names("model"):
            return other, {**found.values, "model": own}
    raise RefusedError("model", f"model {model!r}: the library has no job {name}")


def _differing(row: StepRow, model: Model) -> list[str]:
    """Columns in which the card's shape, which is that of the source's scripts, is not the row's."""
    pairs = {column: (getattr(row, column), getattr(model, name)) for column, name in _SHAPE.items()}
    other = {column: pair for column, pair in pairs.items() if pair[0] not in (None, pair[1])}
    wrong = [column for column in _DECIDES if column in other]
    if wrong:
        told = ", ".join(f"{column} {other[column][0]}, the card's is {other[column][1]}" for column in wrong)
        raise RefusedError("numbers", f"model {row.model!r}: {told}")
    return [f"model: {model.name} has {column} {own}; published as {read}" for column, (read, own) in other.items()]


@cache
def _names(kind: str) -> frozenset[str]:
    return frozenset(name for name, _ in list_cards()[kind])


@cache
def _prepared(name: str, values: tuple[tuple[str, Any], ...]) -> Point:
    try:
        return prepare(load_job(name).with_values(dict(values)))
    except BadInput as refusal:
        told = "; ".join(f"{fault.key} {fault.value} {fault.rule}" for fault in refusal.faults)
        raise RefusedError("plan", told) from None
