"""A rail-optimised fabric: equal ports of the nodes of a group hang on one leaf."""

from __future__ import annotations

from clustersim.faults import BadInput, Fault
from clustersim.hardware.switch import Switch
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.tree import Tree

__all__ = ["rail_optimized"]


def rail_optimized(
    *,
    ports: Ports,
    switch: Switch,
    num_nodes: int,
    oversubscription: float = 1.0,
    levels: int | None = None,
    radix: int | None = None,
    ecmp: str = "ideal",
    ecmp_seed: int = 0,
    sharp: bool = False,
    rails: int | None = None,
    pxn: bool = True,
) -> Fabric:
    """Traffic between ports of one rail in one group of nodes crosses one switch; the rest climbs to the spines.

    Leaf ``group · rails + rail`` is called ``leaf{}``, with ``up`` and ``down``; above it ``pod{}`` and ``zone{}``.

    Parameters
    ----------
    ports : Ports
        of each node
    switch : Switch
        every switch
    num_nodes : int
        nodes
    oversubscription, levels, radix, ecmp, ecmp_seed, sharp
        see :class:`~clustersim.topology.tree.Tree`; levels are at least 2 unless set: rails are built with a spine
    rails : int, optional
        leaves beside each other in a group; port p hangs on leaf p modulo this. One for each port when left out; a rack
        of many trays has one for each GPU of a tray
    pxn : bool
        traffic to another rail goes over NVLink to the GPU of that rail on its own node first and so stays off the
        spine, as NCCL does since 2.12 (PXN)

    Raises
    ------
    BadInput
        when a value is out of range, the nodes do not fit, or rails without a spine are asked for without ``pxn``
    """
    tree = Tree(
        ports=ports,
        switch=switch,
        num_nodes=num_nodes,
        rails=ports.count if rails is None else rails,
        oversubscription=oversubscription,
        levels=levels,
        radix=radix,
        ecmp=ecmp,
        ecmp_seed=ecmp_seed,
        sharp=sharp,
        min_levels=2,
    )
    if tree.num_levels == 1 and not pxn and tree.rails > 1:
        rule = "leaves no way between rails without fabric.pxn"
        raise BadInput([Fault(key="fabric.levels", value=levels, rule=rule, nearest=2)])
    tiers = tree.tiers()
    notes: tuple[str, ...] = ()
    if oversubscription > 1 and (not tiers or (num_nodes <= tiers[0].nodes and (pxn or tree.rails == 1))):
        notes = ("fabric.oversubscription: no effect: no traffic leaves its leaf",)
    return tree.fabric(relay_rails=tree.rails if pxn else 0, notes=notes)
