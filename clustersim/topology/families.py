"""The families by the short names that cards use.

A card may name any other callable instead, as ``"my_package.fabrics:butterfly"``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clustersim.topology.dragonfly import dragonfly
from clustersim.topology.dragonfly_plus import dragonfly_plus
from clustersim.topology.fabric import Fabric
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.fully_connected import fully_connected
from clustersim.topology.grid import mesh, ring, torus
from clustersim.topology.mesh import hybrid_cube_mesh, nvlink_mesh, xgmi_mesh
from clustersim.topology.node import Node
from clustersim.topology.nvlink_pairs import nvlink_pairs
from clustersim.topology.nvswitch import nvswitch
from clustersim.topology.pcie_tree import pcie_tree
from clustersim.topology.rail_optimized import rail_optimized
from clustersim.topology.superchip import superchip
from clustersim.topology.two_sites import two_sites

__all__ = ["FABRICS", "NODES"]

NODES: Mapping[str, Callable[..., Node]] = {
    "hybrid_cube_mesh": hybrid_cube_mesh,
    "nvlink_mesh": nvlink_mesh,
    "nvlink_pairs": nvlink_pairs,
    "nvswitch": nvswitch,
    "pcie_tree": pcie_tree,
    "superchip": superchip,
    "xgmi_mesh": xgmi_mesh,
}
"""Node builders: (parts, numbers, …) -> Node; those with a ``host`` take it as a part."""

FABRICS: Mapping[str, Callable[..., Fabric]] = {
    "dragonfly": dragonfly,
    "dragonfly_plus": dragonfly_plus,
    "fat_tree": fat_tree,
    "fully_connected": fully_connected,
    "mesh": mesh,
    "rail_optimized": rail_optimized,
    "ring": ring,
    "torus": torus,
    "two_sites": two_sites,
}
"""Fabric builders: (ports, num_nodes, …) -> Fabric; those with switches take one, the others a link, as a part."""
