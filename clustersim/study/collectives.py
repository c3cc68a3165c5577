"""One collective over a range of sizes on a cluster, from what a user typed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from clustersim.collective.explanation import Explanation
from clustersim.collective.explanations import call_faults, explain_sizes
from clustersim.faults import BadInput, Fault
from clustersim.library.sizes import read_sizes
from clustersim.library.values import Refused
from clustersim.study.cluster import cluster_of, unread
from clustersim.topology.topology import Topology

__all__ = ["collective_sweep", "read_ranks"]

_RANKS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*,?")


def collective_sweep(
    kind: str,
    topology: str,
    *,
    settings: Mapping[str, Any],
    faults: Sequence[Fault] = (),
    sizes: str = "8..8G",
    factor: float = 2,
    ranks: str = "all",
    algorithm: str | None = None,
    protocol: str | None = None,
) -> tuple[Topology, list[Explanation]]:
    """Explain a collective at several sizes.

    Parameters
    ----------
    kind : str
    topology : str
        a card or a file
    settings : Mapping[str, Any]
        of the cluster, by key
    faults : Sequence[Fault]
        of settings that were refused one by one already
    sizes : str
        as :func:`clustersim.library.sizes.read_sizes` reads them
    factor : float
        between the sizes of a range; whole
    ranks : str
        as :func:`read_ranks` reads them
    algorithm, protocol : str, optional
        pinned

    Returns
    -------
    Topology, list[Explanation]
        the cluster, and one explanation a size

    Raises
    ------
    BadInput
        with ``faults`` and every other
    """
    found = [*faults, *unread(settings)]
    payloads: list[int] = []
    devices: Sequence[int] | None = None
    cluster: Topology | None = None
    try:
        if not float(factor).is_integer():
            raise Refused("must be a whole number", max(2, round(factor)) if isfinite(factor) else 2)
        payloads = read_sizes(sizes, int(factor))
    except Refused as refused:
        wrong = factor < 2 or not float(factor).is_integer()
        key, value = ("factor", factor) if wrong else ("sizes", sizes)
        found.append(Fault(key=key, value=value, rule=refused.rule, nearest=refused.nearest))
    try:
        cluster = cluster_of(topology, settings)
    except BadInput as error:
        found += [*error.faults, *call_faults(kind, algorithm, protocol)]
    else:
        try:
            devices = read_ranks(ranks, cluster)
        except Refused as refused:
            found.append(Fault(key="ranks", value=ranks, rule=refused.rule, nearest=refused.nearest))
    if cluster is None:
        raise BadInput(found)
    if kind == "send_recv" and devices is not None and len(devices) != 2:
        rule = f"are {len(devices)}: a send_recv is between 2; their numbers as 0,8, or 2 for the first two"
        found.append(Fault(key="ranks", value=ranks, rule=rule, nearest=2))
        devices = None
    explained: list[Explanation] = []
    try:
        explained = explain_sizes(
            kind, payloads if devices is not None else [], cluster, devices, algorithm=algorithm, protocol=protocol
        )
    except BadInput as error:
        typed = {"nbytes": "sizes", "devices": "ranks"}
        found += [replace(fault, key=typed.get(fault.key, fault.key)) for fault in error.faults]
    if found:
        raise BadInput(found)
    return cluster, explained


def read_ranks(text: str, topology: Topology) -> Sequence[int]:
    """Members of a group.

    Parameters
    ----------
    text : str
        ``all``; how many, from the first on: ``16``; or which: ``0,8``, ``0-3,8-11``, ``5,`` for one
    topology : Topology

    Returns
    -------
    sequence of int
        device numbers

    Raises
    ------
    Refused
        when it is none of these, or there are not as many
    """
    n = topology.num_devices
    given = text.strip()
    if given == "all":
        return range(n)
    if given.isdecimal():
        if not 1 <= int(given) <= n:
            raise Refused(f"must be from 1 to the {n} of {topology.name}", min(max(int(given), 1), n))
        return range(int(given))
    if not _RANKS.fullmatch(given):
        raise Refused("must be how many, all, or numbers as 0,8 and 0-3,8-11", "all")
    devices: list[int] = []
    for part in given.strip(",").split(","):
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if not first <= last < n:
            raise Refused(f"must be numbers from 0 to {n - 1}, the lower one first", "all")
        devices += range(first, last + 1)
    return devices
