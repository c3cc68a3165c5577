"""What copies, storage and host work take alone, and what they ask of the host around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clustersim.engine.cost.transfer_cost import transfer_cost
from clustersim.engine.simulate import simulate
from clustersim.faults import BadInput
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU, Efficiency
from clustersim.hardware.link import Link
from clustersim.hardware.nic import NIC
from clustersim.hardware.storage import Drive
from clustersim.hardware.work_rate import WorkRate
from clustersim.topology.cluster import NodeKind, connect, connect_mixed
from clustersim.topology.fabric import Ports
from clustersim.topology.fully_connected import fully_connected
from clustersim.topology.host import Host
from clustersim.topology.pcie_tree import pcie_tree
from clustersim.topology.storage import SharedStorage
from clustersim.topology.topology import Topology
from clustersim.trace.result import Result
from clustersim.workload.job import Job, Pool
from clustersim.workload.op import Copy, HostWork, Op, Storage
from clustersim.workload.program import Program

GB = 10**9
CARD = GPU(
    name="gpu",
    memory_bytes=80 * GB,
    memory_bandwidth=2e12,
    tensor_flop_per_s={"bf16": 1e15},
    vector_flop_per_s=5e13,
    num_sms=100,
    launch_latency=1e-6,
    efficiency=Efficiency(
        gemm_peak=1.0,
        gemm_half_flops=0.0,
        attention_peak=1.0,
        attention_half_flops=0.0,
        memory_peak=1.0,
        memory_half_bytes=0.0,
    ),
)
SOCKET = CPU(
    name="cpu",
    num_cores=16,
    memory_bytes=10**12,
    memory_bandwidth=200e9,
    memory_efficiency=0.8,
    core_bandwidth=16e9,
    vector_flop_per_s=1.6e12,
    pageable_bandwidth=4e9,
    work={"adam": WorkRate(efficiency=0.4), "slow": WorkRate(efficiency=0.8, core_bandwidth=1e9, latency=0.5)},
)
PCIE = Link(name="pcie", bandwidth=40e9, latency=0.0)
BETWEEN = Link(name="between", bandwidth=25e9, latency=0.0)
NIC_CARD = NIC(name="nic", bandwidth=20e9, latency=0.0)
DRIVE = Drive(name="drive", capacity_bytes=10**12, read_bandwidth=5e9, write_bandwidth=2e9, latency=0.0)


def box(num_gpus: int = 2, **host: Any) -> Topology:
    """One node of two sockets; GPUs spread over them."""
    settings = {"cpu": SOCKET, "num_sockets": 2, "link": PCIE, "socket_link": BETWEEN, **host}
    return connect(pcie_tree(gpu=CARD, num_gpus=num_gpus, host=Host(**settings)), None, name="box", num_nodes=1)


def run(topology: Topology, *ops: Op | Sequence[Op], devices: Sequence[int] | None = None, **job: Any) -> Result:
    """Each rank its ops, each on a stream of its own."""
    programs = []
    for mine in ops:
        program = Program()
        for i, op in enumerate(mine if isinstance(mine, Sequence) else [mine]):
            program.add(op, stream=f"stream {i}", takes=job.get("takes"), gives=job.get("takes"))
        programs.append(program)
    of = np.arange(len(programs))
    pools = {name: Pool(capacity=1, scope="node") for name in job.get("takes", {})}
    at = of if devices is None else np.array(devices)
    return simulate(topology, Job(name="job", programs=tuple(programs), program_of=of, devices=at, pools=pools))


def seconds(result: Result) -> list[float]:
    """Longest op of each rank [s]."""
    lanes = [result.record.lanes[lane] for lane in result.record.lane_of[0]]
    return [float(lane.end_ns.max() - lane.start_ns.min()) / 1e9 for lane in lanes]


def work(kind: str, nbytes: int, **fields: Any) -> HostWork:
    return HostWork(name=kind, kind=kind, nbytes=nbytes, **fields)


def copy(kind: str, nbytes: int, **fields: Any) -> Copy:
    return Copy(name=kind, kind=kind, nbytes=nbytes, **fields)  # type: ignore[arg-type]


def stored(kind: str, nbytes: int, **fields: Any) -> Storage:
    return Storage(name=kind, kind=kind, nbytes=nbytes, **fields)  # type: ignore[arg-type]


def local_loads(op: Copy) -> dict[str, int]:
    """What an op asks of the paths around GPU 0 of a box."""
    return dict(transfer_cost(op, SOCKET, 0, box(4)).loads)


class TestHostWork:
    @pytest.mark.parametrize(
        ("op", "expected"),
        [
            (work("stream", 160 * GB, threads=16), 1.0),  # all cores: 0.8 of the DRAM
            (work("stream", 160 * GB, threads=5), 2.0),  # of 16 GB/s each
            (work("adam", 80 * GB, threads=16), 1.0),  # 0.4 of the DRAM
            (work("adam", 80 * GB, threads=2), 5.0),  # half as fast as streaming on each core, too
            (work("slow", 8 * GB, threads=4), 2.5),  # 4 x 1 GB/s after half a second
            (work("slow", 8 * GB, threads=4000), 1.0),  # the socket has 16 cores
            (work("stream", 0, flops=1_600 * GB, threads=4), 4.0),
        ],
    )
    def test_alone_the_longer_of_its_threads_and_its_ceiling(self, op: HostWork, expected: float) -> None:
        assert seconds(run(box(), op)) == [pytest.approx(expected, rel=1e-6)]

    def test_without_a_number_it_has_an_even_share_of_the_cores(self) -> None:
        slow = work("slow", 8 * GB)
        assert seconds(run(box(2), slow)) == [pytest.approx(1.0)]  # the socket's one GPU has 16
        assert seconds(run(box(16), slow)) == [pytest.approx(4.5)]  # 2 of them
        assert seconds(run(box(16), *[slow] * 16)) == [pytest.approx(4.5)] * 16  # which all have at once

    def test_in_nodes_of_several_kinds_shares_differ(self) -> None:
        """The same socket under one GPU and under eight: ranks of one program that no fold may take for one."""
        kinds = []
        for num_gpus in (2, 16):
            host = Host(cpu=SOCKET, num_sockets=2, link=PCIE)
            ports = Ports.spread(nic=NIC_CARD, nics_per_node=1, num_gpus=num_gpus)
            kinds.append(NodeKind(node=pcie_tree(gpu=CARD, num_gpus=num_gpus, host=host), count=1, ports=ports))
        fabric = fully_connected(ports=kinds[0].ports, num_nodes=2, link=BETWEEN)
        topology = connect_mixed(kinds, fabric, name="mixed")
        program = Program()
        program.add(work("slow", 8 * GB), stream="host")
        job = Job(name="job", programs=(program,), program_of=np.zeros(18, dtype=np.int64))
        for fold in (True, False):
            found = seconds(simulate(topology, job, fold=fold))
            assert found == [pytest.approx(1.0)] * 2 + [pytest.approx(4.5)] * 16

    def test_cores_are_shared(self) -> None:
        slow = work("slow", 8 * GB, threads=16)
        assert seconds(run(box(4), slow, slow)) == [pytest.approx(2.0, rel=1e-6)] * 2
        assert seconds(run(box(4), slow, slow, devices=(0, 2))) == [pytest.approx(1.0)] * 2  # on sockets of their own
        few = work("slow", 8 * GB, threads=8)
        assert seconds(run(box(4), few, few)) == [pytest.approx(1.5)] * 2

    def test_one_socket_full_of_adam_reaches_its_own_ceiling_and_not_more(self) -> None:
        adam = work("adam", 40 * GB)
        assert seconds(run(box(8), *[adam] * 4, devices=range(4))) == [pytest.approx(2.0, rel=1e-6)] * 4

    def test_beside_dma_it_shares_the_dram(self) -> None:
        """The copy takes 40 of the DRAM's 160 GB/s, of which Adam fills all when it is alone."""
        adam, down = work("adam", 80 * GB, threads=16), copy("d2h", 40 * GB)
        result = run(box(4), adam, down, devices=(0, 1))
        times = seconds(result)
        assert times[1] == pytest.approx(1.0)
        assert times[0] == pytest.approx(1.25, rel=1e-6)  # three quarters of its speed for a second
        assert result.record.bounds[result.record.lanes[result.record.lane_of[0][0]].bound[0]] == "node0/cpu0/dram"

    def test_spread_memory_has_the_dram_of_both_sockets_and_the_link_between_them(self) -> None:
        threads = {"threads": 16}
        near, spread, far = (
            seconds(run(box(), work("adam", 80 * GB, memory=memory, **threads)))[0]  # type: ignore[arg-type]
            for memory in ("near", "spread", "far")
        )
        assert near == pytest.approx(1.0)
        assert spread == pytest.approx(0.8)  # a quarter of 80 GB goes each way over 25 GB/s
        assert far == pytest.approx(1.6)  # a half
        wide = box(socket_link=None)
        assert seconds(run(wide, work("adam", 80 * GB, memory="spread", **threads))) == [pytest.approx(0.625)]  # cores
        assert seconds(run(wide, work("adam", 80 * GB, memory="far", **threads))) == [pytest.approx(1.0)]

    def test_what_both_sockets_spread_meets_on_the_link(self) -> None:
        adam = work("adam", 80 * GB, threads=16, memory="spread")
        assert seconds(run(box(), adam, adam)) == [pytest.approx(1.6, rel=1e-6)] * 2

    def test_one_socket_has_no_other(self) -> None:
        alone = box(num_sockets=1)
        assert seconds(run(alone, work("adam", 80 * GB, memory="spread", threads=16))) == [pytest.approx(1.0)]
        with pytest.raises(BadInput, match=r"adam\.memory: 'dram\.far' is no path of box: its nodes have one socket"):
            run(alone, work("adam", 1, memory="far"))


@pytest.mark.parametrize(
    ("op", "key"),
    [
        (work("adam", 1, threads=0), "program.adam.threads"),
        (stored("nvme_read", 1, files=-1), "program.nvme_read.files"),
    ],
)
def test_nobody_to_do_it_and_less_than_nothing_to_open(op: Op, key: str) -> None:
    with pytest.raises(BadInput) as error:
        run(box(drive=DRIVE, num_drives=1), op)
    assert [fault.key for fault in error.value.faults] == [key]


class TestCopies:
    def test_both_ways_are_servers_of_their_own(self) -> None:
        both = [copy("h2d", 40 * GB), copy("d2h", 40 * GB)]
        assert seconds(run(box(), both)) == [pytest.approx(1.0)]
        twice = [copy("h2d", 40 * GB), copy("h2d", 40 * GB)]
        assert seconds(run(box(), twice)) == [pytest.approx(2.0)]

    def test_the_way_back_may_be_narrower(self) -> None:
        topology = box(link=replace(PCIE, return_efficiency=0.5))
        assert seconds(run(topology, copy("h2d", 40 * GB))) == [pytest.approx(1.0)]
        assert seconds(run(topology, copy("d2h", 40 * GB))) == [pytest.approx(2.0)]
        assert topology.notes == ()

    @pytest.mark.parametrize("limit", ["pcie_switch_of", "root_complex"])
    def test_gpus_behind_one_uplink_share_it(self, limit: str) -> None:
        host = {"pcie_switch_of": (0, 0, 1, 1)} if limit == "pcie_switch_of" else {limit: PCIE}
        down = copy("d2h", 40 * GB)
        assert seconds(run(box(4, **host), down, down)) == [pytest.approx(2.0, rel=1e-6)] * 2
        assert seconds(run(box(4, **host), down, down, devices=(0, 2))) == [pytest.approx(1.0)] * 2
        assert seconds(run(box(4, **host), down, copy("h2d", 40 * GB))) == [pytest.approx(1.0)] * 2
        assert seconds(run(box(4), down, down)) == [pytest.approx(1.0)] * 2

    def test_a_copy_costs_a_fixed_time(self) -> None:
        topology = box(link=replace(PCIE, copy_latency=1e-3, latency=1e-4))
        for nbytes in (0, 4 * 10**6, 40 * GB):
            assert seconds(run(topology, copy("h2d", nbytes))) == [pytest.approx(1.1e-3 + nbytes / 40e9)]

    def test_far_memory_is_reached_over_the_link_between_sockets(self) -> None:
        near, spread, far = (
            seconds(run(box(), copy("h2d", 40 * GB, memory=memory)))[0] for memory in ("near", "spread", "far")
        )
        assert (near, spread, far) == (pytest.approx(1.0), pytest.approx(1.0), pytest.approx(1.6))
        slow = box(socket_link=replace(BETWEEN, bandwidth=10e9))
        assert seconds(run(slow, copy("h2d", 40 * GB, memory="spread"))) == [pytest.approx(2.0)]  # half of it crosses

    def test_copies_to_and_from_the_other_socket_cross_different_ways(self) -> None:
        there, back = copy("d2h", 25 * GB, memory="far"), copy("h2d", 25 * GB, memory="far")
        assert seconds(run(box(), [there, back])) == [pytest.approx(1.0)]
        # out of socket 0: what GPU 0 writes there and what GPU 1 reads here
        assert seconds(run(box(), there, back)) == [pytest.approx(2.0, rel=1e-6)] * 2

    def test_between_two_of_several_sockets_an_op_has_the_links_of_the_pair(self) -> None:
        four = box(4, num_sockets=4)
        assert seconds(run(four, copy("h2d", 40 * GB, memory="far"))) == [pytest.approx(1.6)]
        assert seconds(run(four, copy("h2d", 40 * GB, memory="spread"))) == [pytest.approx(1.0)]
        pairs = box(4, num_sockets=4, sockets_per_system=2)
        assert seconds(run(pairs, copy("h2d", 40 * GB, memory="far"), devices=[3])) == [pytest.approx(1.6)]
        rows = pairs.local["dram.far"].rows[:, 0]
        assert pairs.resources.names(rows) == [f"node0/cpu{s}/dram" for s in (1, 0, 3, 2)]

    def test_ranks_that_take_turns_wait_for_each_other_and_do_not_share(self) -> None:
        own = copy("d2h", 10 * GB, turns=4.0)
        for host in ({}, {"pcie_switch_of": (0, 0, 1, 1)}, {"pcie_switch_of": (0, 0, 0, 0), "num_sockets": 1}):
            assert seconds(run(box(4, **host), *[own] * 4)) == [pytest.approx(1.0, rel=1e-6)] * 4
        unpinned = replace(own, pageable=True)
        assert seconds(run(box(4), unpinned)) == [pytest.approx(10.0)]
        assert local_loads(unpinned)["cores"] == pytest.approx(2.5e9, rel=1e-6)  # a thread works in its own turn

    def test_memory_that_is_not_pinned(self) -> None:
        unpinned = copy("d2h", 40 * GB, pageable=True)
        assert seconds(run(box(), unpinned)) == [pytest.approx(10.0)]
        assert seconds(run(box(), copy("d2d", 40 * GB, pageable=True))) == [pytest.approx(0.04)]
        # its thread takes a core of the 16 that the other has
        other = work("slow", 16 * 19 * GB, threads=16)
        assert seconds(run(box(), [unpinned, other]))[0] > 19.5
        with pytest.raises(BadInput, match=r"d2h\.pageable: True cannot be told: cpu has no pageable_bandwidth"):
            run(box(cpu=replace(SOCKET, pageable_bandwidth=None)), unpinned)


class TestStorage:
    def test_a_drive_reads_or_writes(self) -> None:
        topology = box(drive=DRIVE, num_drives=2)
        read, write = stored("nvme_read", 10 * GB), stored("nvme_write", 4 * GB)
        assert seconds(run(topology, read)) == seconds(run(topology, write)) == [pytest.approx(1.0)]
        assert seconds(run(topology, [read, write])) == [pytest.approx(2.0, rel=1e-6)]

    def test_a_file_system_leaves_a_part_of_the_rates(self) -> None:
        topology = box(drive=replace(DRIVE, efficiency=0.5), num_drives=2)
        assert seconds(run(topology, stored("nvme_read", 10 * GB))) == [pytest.approx(2.0)]

    def test_small_requests_wait_for_answers(self) -> None:
        """Eight requests of 1 MB every 8 ms are 1 GB/s, whatever the drives could do."""
        late = box(drive=replace(DRIVE, latency=8e-3), num_drives=2, request_bytes=10**6)
        assert seconds(run(late, stored("nvme_read", 10 * GB, files=0))) == [pytest.approx(10.008)]
        deep = box(drive=replace(DRIVE, latency=8e-3), num_drives=2, request_bytes=10**6, queue_depth=800)
        assert seconds(run(deep, stored("nvme_read", 10 * GB, files=0))) == [pytest.approx(1.008)]
        assert seconds(run(deep, stored("nvme_read", 4096, files=0))) == [pytest.approx(8e-3, rel=1e-3)]
        assert seconds(run(deep, stored("nvme_read", 10 * GB, files=100))) == [pytest.approx(1.808)]

    def test_drives_behind_an_uplink(self) -> None:
        topology = box(drive=DRIVE, num_drives=32, drive_uplink=PCIE)
        read, write = stored("nvme_read", 40 * GB), stored("nvme_write", 32 * GB)
        assert seconds(run(topology, read)) == [pytest.approx(1.0)]  # not 160 GB/s
        assert seconds(run(box(drive=DRIVE, num_drives=32), read)) == [pytest.approx(0.25)]
        both = seconds(run(topology, [read, write]))[0]  # the drives need 0.25 and 0.5 s of them
        assert both == pytest.approx(1.0)

    def test_past_the_host(self) -> None:
        topology = box(drive=DRIVE, num_drives=32)
        op = stored("nvme_read", 40 * GB, direct=True)
        assert seconds(run(topology, op)) == [pytest.approx(1.0)]  # the GPU's lanes
        assert seconds(run(topology, [op, copy("h2d", 40 * GB)])) == [pytest.approx(2.0)]
        assert seconds(run(topology, [op, work("stream", 160 * GB, threads=16)])) == [pytest.approx(1.0)]  # no DRAM
        with pytest.raises(BadInput, match=r"fs_read\.direct: 'fs_read\.direct' is no path of box"):
            run(topology, stored("fs_read", 1, direct=True))

    def test_a_lock_is_a_pool_of_one(self) -> None:
        topology = box(drive=DRIVE, num_drives=2)
        reads = [stored("nvme_read", 10 * GB)] * 2
        assert seconds(run(topology, *reads)) == [pytest.approx(2.0, rel=1e-6)] * 2
        turns = run(topology, *reads, takes={"lock": 1})
        ends = sorted(float(lane.end_ns.max()) / 1e9 for lane in turns.record.lanes)
        assert ends == [pytest.approx(1.0), pytest.approx(2.0)]

    def test_a_parallel_file_system_has_servers_and_clients(self) -> None:
        servers = {"read_bandwidth": 8e9, "write_bandwidth": 6e9}
        plain = SharedStorage(**servers, nic=NIC_CARD).join(box())
        assert seconds(run(plain, stored("fs_read", 8 * GB))) == [pytest.approx(1.0)]
        few = SharedStorage(
            **servers, nic=NIC_CARD, node_read_bandwidth=2e9, node_write_bandwidth=3e9, metadata_latency=0.1
        )
        narrow = few.join(box())
        assert seconds(run(narrow, stored("fs_read", 8 * GB, files=5))) == [pytest.approx(4.5)]
        assert seconds(run(narrow, stored("fs_write", 6 * GB, files=0))) == [pytest.approx(2.0)]
        two = [stored("fs_read", 8 * GB, files=0)] * 2
        assert seconds(run(narrow, *two)) == [pytest.approx(8.0, rel=1e-6)] * 2  # of one node
        assert "file_system" not in narrow.tier_bytes
        assert replace(few, capacity_bytes=7).join(box()).tier_bytes["file_system"] == 7
