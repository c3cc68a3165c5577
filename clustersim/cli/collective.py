"""``clustersim collective``: the time of a collective over a range of sizes, as nccl-tests prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from clustersim.cli.output import OK, WIDTH, print_json

if TYPE_CHECKING:
    from clustersim.collective.explanation import Explanation
    from clustersim.topology.topology import Topology

__all__ = ["collective"]

_LINK, _ALGORITHM = 16, 16
"""Columns that a link's name has at least, and an algorithm's at most."""


def collective(
    kind: str,
    /,
    *,
    topology: str,
    settings: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    sizes: str | None = None,
    factor: float = 2,
    ranks: str = "all",
    algorithm: str | None = None,
    protocol: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    explain: bool = False,
) -> int:
    """Time a collective over a range of sizes.

    Parameters
    ----------
    kind
        all_reduce, all_gather, reduce_scatter, all_to_all, gather, scatter, broadcast, reduce, send_recv, barrier
    topology
        a topology card or a .toml file
    settings
        KEY=VALUE of the cluster: nodes, nics_per_node, fabric.KEY, node.KEY, perturb.slow_links, perturb.failed_links
    sizes
        8..8G, 1M,4M or 1G, as in nccl-tests: 1G is 2^30 bytes, of the largest buffer of one rank; 8..8G when left out,
        1G with --explain
    factor
        between the sizes of a range
    ranks
        how many, all, or which: 0,8 or 0-3,8-11
    algorithm
        ring, tree, nvls …, or with a protocol, ring/LL128; the fastest when left out
    protocol
        LL, LL128, Simple; the fastest when left out
    as_json
        print one JSON object
    explain
        a page for each size: steps, bytes on every kind of link, the least time of any algorithm
    """
    from clustersim.library.settings import read_settings
    from clustersim.study.collectives import collective_sweep

    values, faults = read_settings(settings)
    default = "0" if kind == "barrier" else "1G" if explain else "8..8G"
    cluster, explained = collective_sweep(
        kind,
        topology,
        settings=values,
        faults=faults,
        sizes=default if sizes is None else sizes,
        factor=factor,
        ranks=ranks,
        algorithm=algorithm,
        protocol=protocol,
    )
    if as_json:
        print_json(_answer(kind, cluster, explained, with_links=explain))
    elif explain:
        print("\n\n".join([*map(str, explained), *(["\n".join(_notes(cluster))] if cluster.notes else [])]))
    else:
        print("\n".join([_table(explained), *(f"# {line}" for line in _notes(cluster))]))
    return OK


def _notes(cluster: Topology) -> list[str]:
    """What the cluster approximates, as ``run`` tells it."""
    import textwrap

    return [line for note in cluster.notes for line in textwrap.wrap(f"warning: {note}", 78, subsequent_indent="  ")]


def _answer(kind: str, cluster: Topology, explained: Sequence[Explanation], *, with_links: bool) -> dict[str, Any]:
    rows = []
    for why in explained:
        row = _row(why)
        if with_links:
            row |= {"num_steps": why.num_steps, "latency_us": why.latency_seconds * 1e6}
            row |= {"bounded_by": why.bounded_by, "achieved": why.achieved, "bytes_per_link": why.bytes_per_link}
        rows.append(row)
    return {
        "collective": kind,
        "topology": cluster.name,
        "num_ranks": explained[0].num_ranks,
        "num_nodes": explained[0].num_nodes,
        "warnings": list(cluster.notes),
        "rows": rows,
    }


def _row(why: Explanation) -> dict[str, Any]:
    busiest = why.busiest
    return {
        "nbytes": why.nbytes,
        "time_us": why.seconds * 1e6,
        "algbw_GBps": why.algbw / 1e9,
        "busbw_GBps": why.busbw / 1e9,
        "algorithm": why.algorithm,
        "protocol": why.protocol,
        "num_channels": why.num_channels,
        "busiest_link": None if busiest is None else busiest.name,
        "lower_bound_us": why.lower_bound * 1e6,
        "reason": why.reason,
    }


def _table(explained: Sequence[Explanation]) -> str:
    from clustersim.analysis.report import table

    first = explained[0]
    ranks = f"{first.num_ranks:,} rank{'s' * (first.num_ranks != 1)}"
    nodes = f"{first.num_nodes:,} node{'s' * (first.num_nodes != 1)}"
    rows: list[tuple[str, ...]] = [
        ("size", "time", "algbw", "busbw", "algorithm", "protocol"),
        ("(B)", "(us)", "(GB/s)", "(GB/s)", "", ""),
    ]
    links = ["busiest link", ""]
    for why in explained:
        row = _row(why)
        figures = (_figure(row[name]) for name in ("time_us", "algbw_GBps", "busbw_GBps"))
        rows.append((f"{why.nbytes}", *figures, why.algorithm[:_ALGORITHM], why.protocol or "-"))
        links.append(row["busiest_link"] or "-")
    columns = table(rows, indent=" ", right=(0, 1, 2, 3)).splitlines()
    columns[:2] = [f"#{line[1:]}" for line in columns[:2]]
    start = max(map(len, columns)) + 2
    room = max(WIDTH - start, _LINK)
    shown = (name if len(name) <= room else f"{name[: room - 3]}..." for name in links)
    lines = [f"{line:<{start}}{name}".rstrip() for line, name in zip(columns, shown, strict=True)]
    return "\n".join([f"# {first.kind} on {first.topology}: {ranks} on {nodes}", *lines])


def _figure(number: float) -> str:
    """Two decimals, fewer where that is too wide."""
    if number < 1e4:
        return f"{number:.2f}"
    return f"{number:.0f}" if number < 1e8 else f"{number:.2e}"
