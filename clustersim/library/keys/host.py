"""The settings of a node's host and of the file system that all nodes share: keys of a topology card."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.library.keys.key import TOPOLOGY, Key
from clustersim.library.values import Bytes, Name, Quantity, Value, Whole, Word

__all__ = ["HOST_KEYS"]

_ROWS: tuple[tuple[str, Value, str, str], ...] = (
    ("host.cpu", Name("a CPU card"), "of each socket", ""),
    ("host.link", Name("a link card"), "from a GPU towards its host", ""),
    ("host.uplink", Name("a link card"), "from a PCIe switch to its socket", ""),
    ("host.socket_link", Name("a link card"), "one link between two sockets", ""),
    ("host.num_socket_links", Whole(1, 2**10), "parallel links between each two sockets", ""),
    ("host.memory_bytes", Bytes(), "DRAM of one socket", "B"),
    ("host.drive", Name("a drive card"), "one data drive", ""),
    ("host.num_drives", Whole(1, 2**10), "data drives of a node, striped", ""),
    ("host.drive_uplink", Name("a link card"), "that all drives of a node share", ""),
    ("host.request_bytes", Bytes(), "in which the I/O library reads and writes", "B"),
    ("host.queue_depth", Whole(1, 2**20), "requests that the I/O library has in flight", ""),
    ("storage.read_bandwidth", Quantity("B/s", "100 GB/s"), "of the shared file system, for all nodes together", "B/s"),
    (
        "storage.write_bandwidth",
        Quantity("B/s", "100 GB/s"),
        "of the shared file system, for all nodes together",
        "B/s",
    ),
    ("storage.node_read_bandwidth", Quantity("B/s", "5 GB/s"), "of it that one node's client reaches", "B/s"),
    ("storage.node_write_bandwidth", Quantity("B/s", "5 GB/s"), "of it that one node's client reaches", "B/s"),
    ("storage.latency", Quantity("s", "1 ms"), "of a request to its servers", "s"),
    ("storage.metadata_latency", Quantity("s", "1 ms"), "of opening a file on it", "s"),
    ("storage.capacity_bytes", Bytes(), "that it holds", "B"),
    ("storage.nic", Name("a NIC card"), "what a node reaches it through", ""),
)

HOST_KEYS: Mapping[str, Key] = {
    **{name: Key(value, meaning, otherwise=TOPOLOGY, unit=unit) for name, value, meaning, unit in _ROWS},
    "storage.over": Key(
        Word(("own", "compute")), "network that it is reached over", otherwise="the topology's own, or one of its own"
    ),
}
"""By dotted name; a node that lays out its own host, as superchips do, refuses those of the host."""
