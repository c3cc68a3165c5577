"""The buffers and locks that offloaded state passes through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clustersim.workload.job import Pool
from clustersim.workload.offload.place import DRIVES
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.program import Program

__all__ = ["BUFFERS", "STAGING", "STATES", "pools"]

STATES = ("weights", "momentum", "variance")
"""What Adam keeps in fp32, 4 bytes a parameter each."""

BUFFERS, STAGING = "buffers", "staging"


def pools(policy: OffloadPolicy | None, programs: Sequence[Program]) -> Mapping[str, Pool]:
    """Of a job with this policy: host buffers for each kind of drive, room on the GPU for one state, locks.

    Those that no op takes are left out: a lock of a node would tell ranks apart that are alike.

    Parameters
    ----------
    policy : OffloadPolicy, optional
    programs : Sequence[Program]
        of the job
    """
    if policy is None:
        return {}
    found = {f"{tier} {BUFFERS}": Pool(capacity=policy.buffers) for tier in DRIVES}
    found |= {f"{STAGING} {state}": Pool(capacity=policy.staging) for state in STATES}
    if policy.lock:
        ways = [(tier, way) for tier in DRIVES for way in ("read", "write")]
        found |= {f"{tier} {way} lock": Pool(capacity=1, scope="node") for tier, way in ways}
    taken = {name for program in programs for name in program.arrays().pools}
    return {name: pool for name, pool in found.items() if name in taken}
