"""Where a run came from: its settings and every file behind them, with one hash over all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clustersim.faults import BadInput
from clustersim.library.card import KINDS, Card, is_file, read_card
from clustersim.library.graph import graph_files
from clustersim.library.job import TABLES, JobSetup
from clustersim.library.keys import KEYS, workload_of
from clustersim.topology.topology import Topology
from clustersim.workload.job import Job

__all__ = ["FOLDERS", "cards_of", "provenance"]

FOLDERS = {**KINDS, "table": "workloads/tables", "ops": KINDS["graph"]}
"""Kind of file behind a run -> the folder of its copy."""

_PARTS = tuple(kind for kind, folder in KINDS.items() if "/parts/" in folder)

_NAMED = {"node": "communication", "network": "transport"}
"""Key of a table of communication -> the kind of its card."""

_CALLABLES = ("plan.schedule", "plan.sharding")
"""Settings that may name a callable of the user's own: a run is repeated from the name that was given."""


def provenance(setup: JobSetup, topology: Topology, job: Job, *, steps: int) -> dict[str, Any]:
    """What a run was made from, as plain data.

    Parameters
    ----------
    setup : JobSetup
    topology : Topology
        what it became
    job : Job
        what it became
    steps : int
        optimizer steps of the run

    Returns
    -------
    dict
        ``job``; ``settings``, all that have a value, those that were left open as they were resolved; ``cards``
        {kind/name: sha256}; and ``sha256`` over settings and cards
    """
    cards = cards_of(setup)
    asked = [key for key in KEYS if workload_of(key) in ("", setup.workload)]
    settings = {key: _plain(setup.value(key)) for key in asked if setup.value(key) is not None}
    if setup.workload == "graph":
        resolved = {"graph.replicas": job.plan["dp"]}
    else:
        resolved = {f"plan.{name}": value for name, value in job.plan.items() if value is not None}
    settings |= {key: value for key, value in resolved.items() if key in KEYS}
    settings |= {key: setup.values[key] for key in _CALLABLES if key in setup.values}
    settings |= {"nodes": topology.num_nodes, "steps": steps}
    # Where a file lies does not change a run, what stands in it does.
    # The first topology is the run's; others are those of a mix.
    settings |= {card.kind: card.name for card in reversed(cards) if card.kind in settings}
    files = {key: text for key, text in settings.items() if isinstance(text, str)}
    settings |= {
        key: Path(text).stem for key, text in files.items() if is_file(text) or text.endswith(TABLES.get(key, ()))
    }
    ordered = {key: settings[key] for key in KEYS if key in settings}
    hashes = {f"{card.kind}/{card.name}": card.sha256 for card in cards}
    content = json.dumps([ordered, hashes], sort_keys=True).encode()
    return {"job": setup.name, "settings": ordered, "cards": hashes, "sha256": hashlib.sha256(content).hexdigest()}


def cards_of(setup: JobSetup) -> list[Card]:
    """The files behind a run, each once: model or graph, topology and those of its mix, parts, tables of one's own."""
    found: dict[tuple[str, str], Card] = {}
    model = setup.value("model")
    if setup.workload == "graph":
        found |= {(card.kind, card.name): card for card in graph_files(setup.value("graph"))}
    elif str(model).endswith(".json"):
        path = Path(model).expanduser()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        found["model", path.stem] = Card(kind="model", name=path.stem, path=path, sha256=digest, data={})
    else:
        found["model", model] = read_card("model", model)
    if setup.value("profile") is not None:
        profile = read_card("profile", setup.value("profile"))
        found["profile", profile.name] = profile
    topology = read_card("topology", setup.value("topology"))
    found["topology", topology.name] = topology
    tables = ("fabric.", "node.", "host.", "storage.", "communication.")
    given = {key: value for key, value in setup.values.items() if key.startswith(tables)}
    for part in (*_parts(topology.data, topology.path), *_parts(given, None)):
        found.setdefault((part.kind, part.name), part)
    for key, suffixes in TABLES.items():
        text = setup.value(key)
        if isinstance(text, str) and text.endswith(suffixes):
            path = Path(text).expanduser()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found["table", path.stem] = Card(kind="table", name=path.stem, path=path, sha256=digest, data={})
    return list(found.values())


def _parts(data: Mapping[str, Any], path: Path | None) -> Iterator[Card]:
    """Cards named in tables of the card at ``path``, or by the caller, and those named in them.

    A text counts that is the name of a part.
    """
    for key, text in _texts({name: value for name, value in data.items() if name not in ("sources", "notes")}):
        if key == "topology":
            other = read_card("topology", text, beside=path)
            yield other
            yield from _parts(other.data, other.path)
            continue
        likely = sorted(_PARTS, key=lambda kind: (kind != _NAMED.get(key), kind not in key))
        for kind in likely:
            try:
                part = read_card(kind, text, beside=path)
            except BadInput:
                continue
            yield part
            if kind in ("superchip", "gpu"):
                yield from _parts(part.data, part.path)
            break


def _texts(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(last part of the key, text) of everything in a table but what describes it."""
    for name, value in table.items():
        key = name.rpartition(".")[2]
        if isinstance(value, Mapping):
            yield from _texts(value)
        elif isinstance(value, list | tuple):
            for item in value:
                yield from _texts(item) if isinstance(item, Mapping) else ()
        elif isinstance(value, str) and " " not in value and key not in ("build", "name", "description", "kind"):
            yield key, value


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value
