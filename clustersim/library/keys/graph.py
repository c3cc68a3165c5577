"""The settings of a job that trains a data-flow graph."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.library.keys.key import DEGREE, MUST, Key
from clustersim.library.values import Bytes, Name, Whole, Wholes

__all__ = ["GRAPH_KEYS"]

GRAPH_KEYS: Mapping[str, Key] = {
    "graph": Key(
        Name("a graph card, or a table of ops as .csv or .parquet"),
        "what is trained instead of a model",
        otherwise=MUST,
    ),
    "graph.batch": Key(Whole(1, 2**24), "samples of one worker in a step", otherwise=MUST, unit="sample", usual=64),
    "graph.devices": Key(DEGREE, "GPUs of one worker, which its ops are spread over", 1),
    "graph.replicas": Key(DEGREE, "workers", otherwise="what fills the GPUs"),
    "graph.placement": Key(
        Name("column, list or my_package.module:function"),
        "which GPU of a worker each op sits on: as the table says, or by list scheduling with estimated times",
        "column",
    ),
    "graph.gpu_order": Key(
        Wholes(0, 1023, 1024), "GPUs of a node in the order in which workers take them", otherwise="in order"
    ),
    "graph.bucket_bytes": Key(Bytes(), "a bucket is reduced once gradients fill it", 25 * 2**20, unit="B"),
    "graph.update_bytes": Key(
        Whole(0, 1024), "HBM traffic of the update, for a parameter; 20: SGD with momentum in fp32", 20, unit="B"
    ),
}
"""By dotted name."""
