"""A data-flow graph by name: a card of the library, a card of the user's own, or a table of ops."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from clustersim.faults import BadInput, Fault
from clustersim.library.build import build
from clustersim.library.card import Card, read_card
from clustersim.readers import graph_table
from clustersim.workload.convergence import Convergence
from clustersim.workload.graph.graph import Graph

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["graph_files", "load_convergence", "load_graph"]

_TABLES = (".csv", ".parquet")


@dataclass(frozen=True, kw_only=True, slots=True)
class _GraphCard:
    """What a graph's card says.

    Parameters
    ----------
    name : str
    table : str
        file of the ops, beside the card
    convergence : Convergence, optional
        epochs that training needs
    sources : Mapping[str, str]
    """

    name: str
    table: str
    convergence: Convergence | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


def load_graph(table: str | Path | pd.DataFrame) -> Graph:
    """Load a data-flow graph.

    Parameters
    ----------
    table : str, Path or DataFrame
        a ``.csv`` or ``.parquet`` file or a DataFrame is a table of ops, see
        :func:`clustersim.readers.graph_table.read`; anything else a card, as in :func:`clustersim.library.find_card`

    Raises
    ------
    BadInput
        when there is no such card or file, or with every fault of it

    Examples
    --------
    >>> load_graph("inception-v3")
    Graph(inception-v3: 215 ops, 23,834,568 parameters)
    """
    if not isinstance(table, str | Path):
        return graph_table.read(table)
    name = str(table)
    if name.endswith(_TABLES):
        return graph_table.read(Path(name).expanduser())
    card, about = _read(name)
    return graph_table.read(card.path.parent / about.table, name=about.name, sources=about.sources)


def graph_files(name_or_path: str) -> tuple[Card, ...]:
    """The files that a graph is read from: its card, of kind ``graph``, and its table, of kind ``ops``.

    A table without a card is itself of kind ``graph``.

    Raises
    ------
    BadInput
        when there is no such card, or with every fault of it
    OSError
        when the table cannot be read
    """
    if name_or_path.endswith(_TABLES):
        return (_file("graph", Path(name_or_path).expanduser()),)
    card, about = _read(name_or_path)
    return card, _file("ops", card.path.parent / about.table)


def load_convergence(name_or_path: str | Path) -> Convergence:
    """Load what a graph's card says of the epochs that its training needs.

    Raises
    ------
    BadInput
        when there is no such card, it has faults, or it says nothing of them
    """
    card, about = _read(str(name_or_path))
    if about.convergence is None:
        raise BadInput([Fault(file=str(card.path), key="convergence", value=None, rule="must be given")])
    return about.convergence


def _read(name: str) -> tuple[Card, _GraphCard]:
    card = read_card("graph", name)
    about = build(card, _GraphCard)
    if Path(about.table).name != about.table:
        rule, near = "must be the name of a file beside the card", Path(about.table).name
        raise BadInput([Fault(file=str(card.path), key="table", value=about.table, rule=rule, nearest=near)])
    return card, about


def _file(kind: str, path: Path) -> Card:
    return Card(kind=kind, name=path.stem, path=path, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), data={})
