"""A job by name: what is trained, on what, and how it is spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clustersim.faults import BadInput, Fault
from clustersim.library.card import Card, is_file, read_card
from clustersim.library.keys import KEYS, workload_of
from clustersim.library.settings import read_values

__all__ = ["TABLES", "JobSetup", "load_job"]

TABLES = {
    "seq_lens": (".csv",),
    "plan.token_imbalance": (".csv",),
    "plan.schedule": (".csv", ".toml"),
    "kernel_table": (".csv", ".parquet"),
}
"""Settings that may be the path of a table, and its suffixes."""

_ABOUT = ("name", "kind", "description", "sources")
_FILES = ("model", "graph", "topology", "profile")
_SUFFIXES = (".json", ".csv", ".parquet")
_PARTS = ("fabric.", "node.", "host.", "storage.", "communication.")
"""Settings that may be files, suffixes of those that are no cards, and tables whose texts may be files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSetup:
    """Settings of a run: those given, checked one by one; whether they go together is seen when it is prepared.

    Parameters
    ----------
    name : str
        of the job in results
    values : Mapping[str, Any]
        by the keys of :data:`clustersim.library.keys.KEYS`
    description : str
        one line
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``
    card : Card, optional
        the file it came from
    changed : frozenset[str]
        keys that are not as in the card: set on the command line or in a call
    """

    name: str
    values: Mapping[str, Any]
    description: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    card: Card | None = None
    changed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, name: str = "", **values: Any) -> JobSetup:
        """Settings without a card; a dotted key as ``**{"plan.tp": 8}``.

        Raises
        ------
        BadInput
            with every unknown key and every value that is not legal by itself
        """
        return cls(name=name, values={}).with_values(values)

    def with_values(self, values: Mapping[str, Any]) -> JobSetup:
        """The same with other values for some keys.

        Raises
        ------
        BadInput
            with every unknown key and every value that is not legal by itself
        """
        checked, faults = read_values(values)
        if faults:
            raise BadInput(faults)
        return replace(self, values={**self.values, **checked}, changed=self.changed | set(checked))

    @property
    def workload(self) -> str:
        """``graph`` or ``model``: what is trained."""
        graph = "graph" in self.values or ("model" not in self.values and any(map(_is_of_graph, self.values)))
        return "graph" if graph else "model"

    def value(self, key: str) -> Any:
        """What was given, else the key's default; None where it has none."""
        return self.values.get(key, KEYS[key].default)

    def file(self, key: str) -> str:
        """The card that gave the value of ``key``; empty for the command line or a call."""
        return str(self.card.path) if self.card and key in self.values and key not in self.changed else ""


def load_job(name_or_path: str | Path) -> JobSetup:
    """Load a job.

    Parameters
    ----------
    name_or_path : str or Path
        a card, as in :func:`clustersim.library.find_card`, or the folder of an earlier run, which is then repeated

    Raises
    ------
    BadInput
        when there is no such card, or with every fault of its keys

    Examples
    --------
    >>> load_job("llama-2-7b-tp8-dp2").values["plan.tp"]
    8
    """
    name = str(name_or_path)
    if (Path(name) / "job.toml").is_file():
        name = str(Path(name) / "job.toml")
    card = read_card("job", name)
    file = str(card.path)
    given = dict(_flat({key: value for key, value in card.data.items() if key not in _ABOUT}))
    for key, value in given.items():
        if not isinstance(value, str):
            continue
        whole = key in _FILES and ("/" in value or value.endswith(_SUFFIXES))
        whole = whole or value.endswith(TABLES.get(key, ()))
        if whole or (key.startswith((*_FILES, *_PARTS)) and is_file(value)):
            given[key] = str(card.path.parent / Path(value).expanduser())
    values, faults = read_values(given, file)
    sources = dict(_flat(card.data.get("sources", {})))
    for key, source in sources.items():
        if not isinstance(source, str) or not any(k == key or k.startswith(f"{key}.") for k in given):
            rule = "must be the source of a key that the card gives, as a text"
            faults.append(Fault(file=file, key=f"sources.{key}", value=source, rule=rule))
    if faults:
        raise BadInput(faults)
    return JobSetup(
        name=str(card.data.get("name", card.name)),
        values=values,
        description=card.description,
        sources=sources,
        card=card,
    )


def _is_of_graph(key: str) -> bool:
    return workload_of(key) == "graph"


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """(dotted key, value) of a card's tables; a mapping that is itself the value of a key stays whole."""
    leaves: list[tuple[str, Any]] = []
    for key, value in table.items():
        dotted = f"{prefix}{key}"
        if isinstance(value, Mapping) and dotted not in _MAPPINGS:
            leaves += _flat(value, f"{dotted}.")
        else:
            leaves.append((dotted, value))
    return leaves


_MAPPINGS = ("perturb.slow_ranks", "perturb.slow_links")
