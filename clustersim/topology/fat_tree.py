"""A fat tree: all ports of a node hang on one leaf, with its neighbours in number."""

from __future__ import annotations

from clustersim.hardware.switch import Switch
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.tree import Tree

__all__ = ["fat_tree"]


def fat_tree(
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
) -> Fabric:
    """Traffic within a leaf's nodes crosses one switch; the rest climbs as high as it must.

    Parameters
    ----------
    ports : Ports
        of each node
    switch : Switch
        every switch
    num_nodes : int
        nodes
    oversubscription, levels, radix, ecmp, ecmp_seed, sharp
        see :class:`~clustersim.topology.tree.Tree`; an over-subscribed tree has at least two levels unless set

    Raises
    ------
    BadInput
        when a value is out of range, or the nodes do not fit
    """
    tree = Tree(
        ports=ports,
        switch=switch,
        num_nodes=num_nodes,
        rails=1,
        oversubscription=oversubscription,
        levels=levels,
        radix=radix,
        ecmp=ecmp,
        ecmp_seed=ecmp_seed,
        sharp=sharp,
    )
    tiers = tree.tiers()
    notes: tuple[str, ...] = ()
    if oversubscription > 1 and (not tiers or num_nodes <= tiers[0].nodes):
        notes = ("fabric.oversubscription: no effect: no traffic leaves its leaf",)
    return tree.fabric(notes=notes)
