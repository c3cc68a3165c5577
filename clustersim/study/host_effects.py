"""Settings of a node's host that changed nothing: where no op of a job uses hosts, and no route crosses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clustersim.faults import BadInput
from clustersim.library.keys import KEYS
from clustersim.library.topologies import load_topology
from clustersim.study.given_setting import GivenSetting
from clustersim.study.routes import pairs_apart, same_ways
from clustersim.workload.op import Copy, HostLaunch, HostWork, Storage

__all__ = ["HOST_RULES"]

_OF_A_CLUSTER = ("nodes", "nics_per_node")
_TABLES = ("fabric", "node.", "host.", "storage.", "communication.")


def _unused(case: GivenSetting) -> str | None:
    """Hosts issue kernels, update, keep and copy; peers on PCIe reach each other through them."""
    if any(isinstance(op, Copy | HostLaunch | HostWork | Storage) for op in case.ops):
        return None
    pairs = pairs_apart(case.topology, case.job, by_node=False)
    if pairs is None:
        return None
    given = case.setup.values
    keys = [
        key for key in KEYS if (key in _OF_A_CLUSTER or key.startswith(_TABLES)) and key in given and key != case.key
    ]
    try:
        plain = load_topology(case.setup.value("topology"), **{key: given[key] for key in keys})
    except BadInput:  # the others need it
        return None
    if not same_ways(case.topology, plain, pairs):
        return None
    return "no op uses a host, and the routes of every process group are the same without it"


def _holds_nothing(case: GivenSetting) -> str | None:
    held = {key for program in case.job.programs for key in program.arrays().resident}
    held |= {key for program in case.job.programs for key in program.arrays().memory_keys}
    held |= {pool.memory for pool in case.job.pools.values()}
    return None if any(key.startswith("host") for key in held) else "nothing is held on a host"


HOST_RULES: Mapping[str, Callable[[GivenSetting], str | None]] = {
    **{f"host.{name}": _unused for name in ("cpu", "link", "uplink", "socket_link", "num_socket_links")},
    "host.memory_bytes": _holds_nothing,
}
"""By key: the reason why a value did nothing in a job, or None where it may have acted."""
