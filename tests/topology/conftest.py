"""Parts in round numbers, so that what a test expects can be worked out by hand."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU, Efficiency
from clustersim.hardware.link import Link
from clustersim.hardware.nic import NIC
from clustersim.hardware.storage import Drive
from clustersim.hardware.superchip import Superchip
from clustersim.hardware.switch import Switch
from clustersim.topology.cluster import connect
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.host import Host
from clustersim.topology.nvswitch import nvswitch
from clustersim.topology.rail_optimized import rail_optimized
from clustersim.topology.topology import Topology


@dataclass(frozen=True)
class Parts:
    """One of each kind."""

    gpu = GPU(
        name="gpu",
        memory_bytes=80 * 10**9,
        memory_bandwidth=2e12,
        tensor_flop_per_s={"bf16": 1e15},
        vector_flop_per_s=5e13,
        num_sms=100,
        launch_latency=1e-6,
        efficiency=Efficiency(
            gemm_peak=0.8,
            gemm_half_flops=1e9,
            attention_peak=0.6,
            attention_half_flops=1e9,
            memory_peak=0.9,
            memory_half_bytes=1e6,
        ),
    )
    cpu = CPU(
        name="cpu",
        num_cores=64,
        memory_bytes=10**12,
        memory_bandwidth=200e9,
        memory_efficiency=0.5,
        vector_flop_per_s=4e12,
    )
    nvlink = Link(name="nvlink", bandwidth=25e9, efficiency=0.8, latency=200e-9)
    pcie = Link(name="pcie", bandwidth=30e9, latency=300e-9)
    c2c = Link(name="c2c", bandwidth=400e9, latency=100e-9)
    nvswitch = Switch(name="nvswitch", radix=64, port_bandwidth=25e9, latency=100e-9)
    nic = NIC(name="nic", bandwidth=50e9, efficiency=0.9, latency=1000e-9)
    switch = Switch(name="switch", radix=64, port_bandwidth=50e9, latency=400e-9)
    drive = Drive(name="drive", capacity_bytes=10**12, read_bandwidth=5e9, write_bandwidth=2e9, latency=50e-6)

    @property
    def superchip(self) -> Superchip:
        """One GPU, one CPU."""
        return Superchip(name="superchip", gpu=self.gpu, cpu=self.cpu, link=self.c2c)

    @property
    def host(self) -> Host:
        """Two sockets, no PCIe switches."""
        return Host(cpu=self.cpu, num_sockets=2, link=self.pcie)


@pytest.fixture
def parts() -> Parts:
    """One of each kind of part."""
    return Parts()


@pytest.fixture
def make(parts: Parts) -> Callable[..., Topology]:
    """Nodes of 8 GPUs on NVSwitch, joined by a fabric: (num_nodes, fabric, nics_per_node, host, **fabric arguments)."""

    def build(
        num_nodes: int,
        fabric: Callable[..., Fabric] = rail_optimized,
        *,
        nics_per_node: int = 8,
        host: Host | None = None,
        **arguments: object,
    ) -> Topology:
        node = nvswitch(
            gpu=parts.gpu, num_gpus=8, link=parts.nvlink, num_links=10, switch=parts.nvswitch, host=host or parts.host
        )
        ports = Ports.spread(nic=parts.nic, nics_per_node=nics_per_node, num_gpus=8)
        joined = fabric(ports=ports, switch=parts.switch, num_nodes=num_nodes, **arguments)
        return connect(node, joined, name="test", num_nodes=num_nodes)

    return build


@pytest.fixture
def wire(parts: Parts) -> Callable[..., Topology]:
    """Nodes of few GPUs with a port each: (fabric, num_nodes, num_gpus, **arguments); a link or a switch as needed."""

    def build(fabric: Callable[..., Fabric], num_nodes: int, *, num_gpus: int = 1, **arguments: object) -> Topology:
        node = nvswitch(
            gpu=parts.gpu, num_gpus=num_gpus, link=parts.nvlink, num_links=1, switch=parts.nvswitch, host=parts.host
        )
        ports = Ports.spread(nic=parts.nic, nics_per_node=num_gpus, num_gpus=num_gpus)
        part = {"link": parts.c2c} if "link" in inspect.signature(fabric).parameters else {"switch": parts.switch}
        joined = fabric(ports=ports, num_nodes=num_nodes, **{**part, **arguments})
        return connect(node, joined, name="test", num_nodes=num_nodes)

    return build


@pytest.fixture
def names() -> Callable[[Topology, int, int], list[str]]:
    """Resources on the way from one device to another, by name."""

    def route(topology: Topology, source: int, destination: int) -> list[str]:
        rows = topology.route(np.array([source]), np.array([destination]))[0]
        return topology.resources.names(rows[rows >= 0])

    return route
