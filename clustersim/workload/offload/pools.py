"""The buffers and locks that offloaded state passes through."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.workload.job import Pool
from clustersim.workload.offload.policy import DRIVES, OffloadPolicy

__all__ = ["BUFFERS", "STAGING", "STATES", "pools"]

STATES = ("weights", "momentum", "variance")
"""What Adam keeps in fp32, 4 bytes a parameter each."""

BUFFERS, STAGING = "buffers", "staging"


def pools(policy: OffloadPolicy) -> Mapping[str, Pool]:
    """Of a job with this policy: host buffers for each kind of drive, room on the GPU for one state, locks.

    Parameters
    ----------
    policy : OffloadPolicy
    """
    found = {f"{tier} {BUFFERS}": Pool(capacity=policy.buffers) for tier in DRIVES}
    found |= {f"{STAGING} {state}": Pool(capacity=policy.staging) for state in STATES}
    if policy.lock:
        ways = [(tier, way) for tier in DRIVES for way in ("read", "write")]
        found |= {f"{tier} {way} lock": Pool(capacity=1, scope="node") for tier, way in ways}
    return found
