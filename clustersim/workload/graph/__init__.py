"""Any data-flow graph as a training step: ops from a table, spread over the devices of a worker, replicated."""

from __future__ import annotations

from clustersim.workload.graph.estimate import Estimate
from clustersim.workload.graph.graph import Graph, GraphOp
from clustersim.workload.graph.step import graph_step

__all__ = ["Estimate", "Graph", "GraphOp", "graph_step"]
