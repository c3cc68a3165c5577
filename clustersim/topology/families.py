"""The families by the short names that cards use.

A card may name any other callable instead, as ``"my_package.fabrics:butterfly"``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clustersim.topology.fabric import Fabric
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.node import Node
from clustersim.topology.nvswitch import nvswitch
from clustersim.topology.rail_optimized import rail_optimized

__all__ = ["FABRICS", "NODES"]

NODES: Mapping[str, Callable[..., Node]] = {
    "nvswitch": nvswitch,
}
"""Node builders: (gpu, host, …) -> Node."""

FABRICS: Mapping[str, Callable[..., Fabric]] = {
    "fat_tree": fat_tree,
    "rail_optimized": rail_optimized,
}
"""Fabric builders: (ports, switch, num_nodes, …) -> Fabric."""
