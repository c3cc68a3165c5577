"""The buffers and locks that offloaded state passes through."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.workload.job import Pool
from clustersim.workload.offload.policy import OffloadPolicy

__all__ = ["BUFFERS", "STAGING", "STATES", "pools"]

STATES = ("weights", "momentum", "variance")
"""What Adam keeps in fp32, 4 bytes a parameter each."""

BUFFERS, STAGING = "host buffers", "staging"


def pools(policy: OffloadPolicy) -> Mapping[str, Pool]:
    """Of a job with this policy: host buffers for subgroups on drives, room on the GPU for one state, locks of a node.

    Parameters
    ----------
    policy : OffloadPolicy
    """
    found = {BUFFERS: Pool(capacity=policy.buffers)}
    found |= {f"{STAGING} {state}": Pool(capacity=policy.staging) for state in STATES}
    if policy.lock:
        ways = [(tier, way) for tier in ("nvme", "file_system") for way in ("read", "write")]
        found |= {f"{tier} {way} lock": Pool(capacity=1, scope="node") for tier, way in ways}
    return found
