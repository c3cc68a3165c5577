"""Links, ports and switches that have failed: what is left, and which way traffic goes then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.topology.cluster_router import ClusterRouter, MixedRouter
from clustersim.topology.topology import Topology

__all__ = ["without_links"]

KEY = "perturb.failed_links"


@dataclass(kw_only=True, slots=True)
class _Damage:
    """What has failed so far.

    Attributes
    ----------
    left : dict[int, float]
        row -> share of its capacity that is left
    gone : dict[int, str]
        row that carries nothing -> the name that it was lost by
    """

    left: dict[int, float] = field(default_factory=dict)
    gone: dict[int, str] = field(default_factory=dict)

    def add(self, name: str, rows: Iterable[int], share: float) -> None:
        """Take ``share`` of the capacity of ``rows``."""
        for row in rows:
            self.left[row] = self.left.get(row, 1.0) * (1 - share)
            if share >= 1:
                self.gone.setdefault(row, name)


def without_links(topology: Topology, names: Iterable[str]) -> Topology:
    """``topology`` after failures; see :meth:`clustersim.topology.topology.Topology.without_links`."""
    damage, faults = _Damage(), []
    for name, count in Counter(names).items():
        faults += _fail(topology, name, count, damage)
    ports, links, lost = _sorted(topology, damage)
    router, in_network, notes = topology.router, topology.in_network, topology.notes
    if lost:
        faults += [
            Fault(
                key=KEY,
                value=name,
                rule=f"leaves no route: {num_links} of {num_links} parallel links failed",
                nearest=f"slow_links of {name}",
            )
            for name, num_links in lost.items()
        ]
    elif damage.gone and isinstance(router, ClusterRouter | MixedRouter):
        try:
            router = router.without(ports, links)
            if in_network is not None and len(ports) and isinstance(in_network.router, ClusterRouter | MixedRouter):
                in_network = replace(in_network, router=in_network.router.without(ports, links[:0]))
        except BadInput as refused:
            faults += refused.faults
        notes += _told(router, damage, ports)
    if faults:
        raise BadInput(faults)
    factors = {topology.resources.name(row): left for row, left in damage.left.items() if left > 0}
    return replace(topology.with_capacity(factors), router=router, in_network=in_network, notes=notes)


def _fail(topology: Topology, name: str, count: int, damage: _Damage) -> list[Fault]:
    """Add what fails with ``name``, a resource, a network port of a node, or a switch."""
    resources = topology.resources
    found = [row for row in (_row(topology, name + end) for end in ("", ".tx", ".rx")) if row is not None]
    if found:
        num_links = resources.block(found[0]).num_links
        if count > num_links:
            rule = f"leaves no route: {count} of {num_links} parallel links failed"
            return [Fault(key=KEY, value=name, rule=rule, nearest=f"slow_links of {name}")]
        damage.add(name, found, 1.0 if count == num_links else count / num_links)
        return []
    router = topology.router
    outage = router.outage(name, count) if isinstance(router, ClusterRouter | MixedRouter) else None
    if outage is None:
        rule = f"is not a resource of {topology.name}, a port of a node or a switch"
        return [Fault(key=KEY, value=name, rule=rule, nearest=resources.nearest(name))]
    if count >= outage.num_switches > 1 or count > outage.num_switches:
        rule = f"leaves no route: {count} of {outage.num_switches} switches failed"
        return [Fault(key=KEY, value=name, rule=rule, nearest=outage.num_switches - 1 or None)]
    damage.add(name, outage.rows.tolist(), outage.share)
    engine = _row(topology, f"{name}/reduce")
    if engine is not None and outage.num_switches > 1:
        damage.add(name, [engine], count / outage.num_switches)
    return []


def _row(topology: Topology, name: str) -> int | None:
    try:
        return topology.resources.find(name)
    except KeyError:
        return None


def _sorted(topology: Topology, damage: _Damage) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, int]]:
    """What carries nothing any more.

    Returns
    -------
    ports : NDArray[int64], shape (n, 2)
        (node, port)
    links : NDArray[int64], shape (k,)
        rows of single links of bundles
    lost : dict[str, int]
        name -> number of links, of what no route can do without
    """
    ports: set[tuple[int, ...]] = set()
    links: list[int] = []
    lost: dict[str, int] = {}
    for row, name in damage.gone.items():
        block, index = topology.resources.block(row), topology.resources.index(row)
        if not isinstance(topology.router, ClusterRouter | MixedRouter):
            lost.setdefault(name, block.num_links)
        elif block.kind == "nic" and len(index) == 2:
            ports.add(index)
        elif block.num_links == 1 and block.label.endswith("[{}]"):
            links.append(row)
        else:
            lost.setdefault(name, block.num_links)
    down = np.array(sorted(ports), dtype=np.int64).reshape(-1, 2)
    return down, np.array(sorted(links), dtype=np.int64), lost


def _told(router: ClusterRouter | MixedRouter, damage: _Damage, ports: NDArray[np.int64]) -> tuple[str, ...]:
    """One note a name: which way its traffic goes."""
    crossing = (router if isinstance(router, ClusterRouter) else router.ways).crossing
    relayed = crossing is not None and crossing.relay_rails
    way = "the next rail's port, at both ends" if relayed else "the next port of its node, through the host"
    rows = len(damage.gone) - 2 * len(ports)
    return tuple(
        f"{name} failed: its traffic goes over {'the links left, by hash' if rows > 0 and not len(ports) else way}"
        for name in dict.fromkeys(damage.gone.values())
    )
