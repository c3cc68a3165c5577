"""How parts are wired and where ranks sit: nodes and fabrics by family, routing, a user's own graph."""

from clustersim.topology.check import check
from clustersim.topology.cluster import connect
from clustersim.topology.families import FABRICS, NODES
from clustersim.topology.resources import Block, ResourceTable
from clustersim.topology.topology import LocalPath, Topology

__all__ = ["FABRICS", "NODES", "Block", "LocalPath", "ResourceTable", "Topology", "check", "connect"]
