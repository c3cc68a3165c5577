"""A topology in full: its parts, and its resources by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clustersim.cli.fields import dotted_lines
from clustersim.cli.output import WIDTH, pairs

__all__ = ["shown_topology", "topology_text"]

_TIMES = dict.fromkeys(("drive", "cores"), "its time")
"""What resources have that are asked for time and not for bytes."""


def shown_topology(name: str, settings: Sequence[str] = ()) -> dict[str, Any]:
    """What ``show topology --json`` prints.

    Parameters
    ----------
    name : str
        a card or a file
    settings : Sequence[str]
        KEY=VALUE

    Raises
    ------
    BadInput
        with every fault of the card and of the settings
    """
    import numpy as np

    from clustersim.cli.cluster import load_cluster
    from clustersim.topology.naming import listing, pattern_of
    from clustersim.topology.numa import cpu_numa_nodes
    from clustersim.units import show as with_unit

    topology = load_cluster(name, settings)
    blocks = topology.resources.blocks
    return {
        "name": topology.name,
        "num_nodes": topology.num_nodes,
        "num_gpus": topology.num_devices,
        "gpus": {topology.gpus[k].name: int(n) for k, n in enumerate(np.bincount(topology.gpu_of)) if n},
        "cpus": [cpu.name for cpu in topology.cpus],
        "cpu_numa_nodes": cpu_numa_nodes(topology),
        "num_resources": len(topology.resources),
        "names": [
            {
                "names": listed.names,
                "count": listed.count,
                "num_names": listed.num_names,
                "kind": listed.kind,
                "capacity_text": _TIMES.get(listed.kind) or with_unit(listed.capacity, "B/s"),
                "latency_text": with_unit(listed.latency, "s"),
                "num_links": listed.num_links,
            }
            for listed in listing(topology.resources)
        ],
        "resources": {
            pattern_of(block)[0]: {
                "kind": block.kind,
                "count": block.count,
                "capacity": block.capacity,
                "latency_s": block.latency,
                "num_links": block.num_links,
            }
            for block in blocks
        },
        "tier_bytes": dict(topology.tier_bytes),
        "notes": list(topology.notes),
        "sources": dict(topology.sources),
    }


def topology_text(answer: Mapping[str, Any]) -> str:
    """What :func:`shown_topology` gives, for people: what it is, then its resources by the names that settings, traces
    and tables of links give them."""
    from clustersim.analysis.report import table

    rows = [("count", "kind", "capacity", "latency", "links")]
    for listed in answer["names"]:
        of = f" of {listed['num_names']:,}" if listed["num_names"] > listed["count"] else ""
        rows.append(
            (
                f"{listed['count']:,}{of}",
                listed["kind"],
                listed["capacity_text"],
                listed["latency_text"],
                f"{listed['num_links']:,}",
            )
        )
    names = ["names", *(listed["names"] for listed in answer["names"])]
    lines = _behind(names, table(rows, indent="", right=(0, 2, 3, 4)).splitlines())
    about = {key: value for key, value in answer.items() if key not in ("names", "resources", "notes", "sources")}
    after = {key: answer[key] for key in ("notes", "sources")}
    return "\n".join(
        [
            pairs(dotted_lines(about)),
            "",
            *lines,
            "",
            pairs(dotted_lines(after)),
        ]
    )


def _behind(names: Sequence[str], lines: Sequence[str]) -> Iterator[str]:
    """Lines behind the names that they are about; a name that leaves its line no room stands above it."""
    room = WIDTH - 2 - max(map(len, lines))
    column = max((len(name) for name in names if len(name) <= room), default=0)
    for name, line in zip(names, lines, strict=True):
        if len(name) > column:
            yield name
        yield f"{name if len(name) <= column else '':<{column}}  {line}"
