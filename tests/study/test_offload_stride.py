"""The stride of Deep Optimizer States: the closed form from rates, and the search by simulation."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

import clustersim as cs
from clustersim.hardware.link import Link
from clustersim.library.job import JobSetup, load_job
from clustersim.study.offload_stride import UpdateRates, balanced_stride, search_stride, update_rates
from clustersim.topology.cluster import connect
from clustersim.topology.host import Host
from clustersim.topology.pcie_tree import pcie_tree
from clustersim.workload.offload import DeepOptimizerStates

POLICY = DeepOptimizerStates()
EVEN = {
    "num_layers": 48,
    "hidden": 2048,
    "num_heads": 16,
    "num_kv_heads": 16,
    "head_dim": 128,
    "ffn_hidden": 8192,
    "vocab": 16,
    "max_seq_len": 2048,
}


@pytest.fixture
def even(tmp_path: Path) -> JobSetup:
    """A job whose subgroups all have 67 million weights, one a layer."""
    card = tmp_path / "even.toml"
    lines = ['name = "even"', 'description = "equal layers"', "gated_mlp = true", 'norm = "rmsnorm"']
    lines += ['positions = "rope"', "tied_embeddings = false", *(f"{key} = {value}" for key, value in EVEN.items())]
    card.write_text("\n".join([*lines, "[sources]", *(f'{key} = "assumed"' for key in EVEN)]))
    values = {"model": str(card), "seq_len": 128, "plan.launch": "none", "plan.offload.subgroup_size": 67_000_000}
    return load_job("deep-optimizer-states-7b").with_values(values)


def machine(*, cpu: float, link: float, gpu: float = 25e9) -> cs.Topology:
    """One GPU and a socket that update so many weights a second; what else the CPU does takes no time."""
    card, host = cs.load_part("gpu", "a100-sxm-40gb"), cs.load_part("cpu", "epyc-7543p")
    faster = gpu / update_rates(cs.load_topology("polaris-1gpu"), POLICY).gpu
    work = {"adam": replace(host.work["adam"], efficiency=1.0, core_bandwidth=28 * cpu)}
    fast = replace(host, num_cores=1, memory_bandwidth=1e15, memory_efficiency=1.0, core_bandwidth=1e15, work=work)
    gpu_card = replace(card, memory_bytes=10**12, memory_bandwidth=faster * card.memory_bandwidth)
    sides = Host(cpu=replace(fast, memory_bytes=10**13), num_sockets=1, link=Link(name="x", bandwidth=link, latency=0))
    return connect(pcie_tree(gpu=gpu_card, num_gpus=1, host=sides), None, name="machine", num_nodes=1)


def fastest(setup: JobSetup, topology: cs.Topology, strides: range) -> int:
    found = search_stride(setup, strides, topology=topology)
    return min(found, key=lambda stride: found[stride])


def test_rates_are_those_of_the_cards() -> None:
    rates = update_rates(machine(cpu=1.5e9, link=25e9), POLICY)
    assert rates.cpu == pytest.approx(1.5e9, rel=1e-4)
    assert rates.gpu == pytest.approx(25e9, rel=0.01)  # the launches of kernels do not get faster
    assert (rates.d2h, rates.h2d) == pytest.approx((25e9, 25e9), rel=1e-4)


def test_ranks_of_a_socket_share_its_memory() -> None:
    """28 B an update, 8 a scaling, at the 45 and 80 % of 204.8 GB/s that four ranks share."""
    rates = update_rates(cs.load_topology("polaris"), POLICY)
    assert 4 * rates.cpu == pytest.approx(1 / (28 / (0.45 * 204.8e9) + 8 / (0.8 * 204.8e9)), rel=1e-4)
    assert rates.cast == pytest.approx(20e9 / 6, rel=1e-3)  # one thread


def test_nothing_to_cast_where_the_update_does_it_in_passing() -> None:
    assert update_rates(cs.load_topology("polaris"), replace(POLICY, cast_weights="update")).cast == inf


@pytest.mark.parametrize(("link", "stride"), [(55e9, 2), (25e9, 3)])
def test_the_two_worked_cases(even: JobSetup, link: float, stride: int) -> None:
    """1.5e9 weights a second by the CPU, 25e9 by the GPU; PCIe 5.0 and 4.0."""
    assert balanced_stride(UpdateRates(cpu=1.5e9, gpu=25e9, d2h=link, h2d=link)) == stride
    topology = machine(cpu=1.5e9, link=link)
    assert balanced_stride(update_rates(topology, POLICY)) == stride
    assert fastest(even, topology, range(2, 6)) == stride


@pytest.mark.parametrize(
    ("cpu", "gpu", "link"),
    [
        (0.7e9, 5e9, 16e9),
        (1.5e9, 25e9, 12e9),
        (3e9, 25e9, 64e9),
        (3e9, 5e9, 25e9),
        (6e9, 25e9, 32e9),
        (12e9, 5e9, 64e9),
    ],
)
def test_the_search_is_next_to_the_closed_form(even: JobSetup, cpu: float, gpu: float, link: float) -> None:
    topology = machine(cpu=cpu, link=link, gpu=gpu)
    stride = balanced_stride(update_rates(topology, POLICY))
    found = fastest(even, topology, range(max(2, stride - 2), stride + 3))
    assert abs(found - stride) <= 1


def test_a_slower_link_and_a_faster_cpu_leave_the_gpu_less() -> None:
    rates = UpdateRates(cpu=1.5e9, gpu=25e9, d2h=20e9, h2d=20e9)
    assert [balanced_stride(replace(rates, d2h=link, h2d=link)) for link in (60e9, 20e9, 10e9)] == [2, 3, 4]
    assert [balanced_stride(replace(rates, cpu=cpu)) for cpu in (0.7e9, 1.5e9, 6e9)] == [2, 3, 6]


def test_a_slow_cast_is_the_cpus_time_too() -> None:
    rates = UpdateRates(cpu=3e9, gpu=25e9, d2h=20e9, h2d=20e9)
    assert (balanced_stride(rates), balanced_stride(replace(rates, cast=1e9))) == (4, 2)


def test_ways_beside_each_other_give_the_gpu_more() -> None:
    rates = UpdateRates(cpu=1.5e9, gpu=25e9, d2h=20e9, h2d=20e9)
    assert (balanced_stride(rates), balanced_stride(rates, duplex=True)) == (3, 2)
