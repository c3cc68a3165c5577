"""The settings of a run: one table that drives parsing, job cards, ``clustersim show keys`` and the faults."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.library.keys.checkpoint import CHECKPOINT_KEYS
from clustersim.library.keys.communication import COMMUNICATION_KEYS
from clustersim.library.keys.experts import EXPERT_KEYS
from clustersim.library.keys.fabric import FABRIC_KEYS
from clustersim.library.keys.graph import GRAPH_KEYS
from clustersim.library.keys.host import HOST_KEYS
from clustersim.library.keys.job import JOB_KEYS
from clustersim.library.keys.kernels import KERNEL_KEYS
from clustersim.library.keys.key import Key
from clustersim.library.keys.launch import LAUNCH_KEYS
from clustersim.library.keys.mesh import MESH_KEYS
from clustersim.library.keys.offload import OFFLOAD_KEYS
from clustersim.library.keys.pipeline import PIPELINE_KEYS
from clustersim.library.keys.recompute import RECOMPUTE_KEYS
from clustersim.library.keys.replicas import REPLICA_KEYS
from clustersim.library.keys.simulation import SIMULATION_KEYS

__all__ = ["KEYS", "Key", "workload_of"]

KEYS: Mapping[str, Key] = {
    **JOB_KEYS,
    **GRAPH_KEYS,
    **MESH_KEYS,
    **PIPELINE_KEYS,
    **REPLICA_KEYS,
    **EXPERT_KEYS,
    **RECOMPUTE_KEYS,
    **KERNEL_KEYS,
    **LAUNCH_KEYS,
    **OFFLOAD_KEYS,
    **CHECKPOINT_KEYS,
    **FABRIC_KEYS,
    **HOST_KEYS,
    **COMMUNICATION_KEYS,
    **SIMULATION_KEYS,
}
"""Every setting by its dotted name."""


def workload_of(key: str) -> str:
    """``model`` or ``graph``: what is trained by the jobs that a setting is for; empty where by both."""
    if key in ("model", "global_batch", "micro_batch", "dtype", "profile") or key.startswith(("seq_", "plan.")):
        return "model"
    return "graph" if key == "graph" or key.startswith("graph.") else ""
