"""The host side: sockets, PCIe switches, C2C, drives."""

import pytest

from clustersim.faults import BadInput
from clustersim.topology.host import Host


def path_names(topology, kind, device):
    rows = topology.local[kind].rows[device]
    return topology.resources.names(rows[rows >= 0])


def test_copies_cross_lanes_and_the_memory_of_the_own_socket(make):
    topology = make(2)
    assert path_names(topology, "h2d", 11) == ["node1/cpu0/dram", "node1/gpu3/pcie.down"]
    assert path_names(topology, "d2h", 12) == ["node1/gpu4/pcie.up", "node1/cpu1/dram"]
    assert path_names(topology, "hbm", 12) == ["node1/gpu4/hbm"]
    assert path_names(topology, "dram", 4) == ["node0/cpu1/dram"]
    dram = topology.resources.find("node0/cpu1/dram")
    assert topology.resources.capacity[dram] == 100_000_000_000  # 200 GB/s at 0.5
    assert topology.tier_bytes == {"host": 2 * 10**12}


def test_gpus_behind_one_pcie_switch_share_its_uplink_to_the_host_but_not_to_their_nic(make, names, parts):
    host = Host(cpu=parts.cpu, num_sockets=2, link=parts.pcie, pcie_switch_of=(0, 0, 1, 1, 2, 2, 3, 3))
    topology = make(2, nics_per_node=4, host=host)
    assert path_names(topology, "d2h", 3) == ["node0/gpu3/pcie.up", "node0/pcie1/up", "node0/cpu0/dram"]
    assert path_names(topology, "h2d", 2) == ["node0/cpu0/dram", "node0/pcie1/down", "node0/gpu2/pcie.down"]
    assert names(topology, 3, 11) == [
        "node0/gpu3/pcie.up",
        "node0/nic1.tx",
        "node1/nic1.rx",
        "node1/gpu3/pcie.down",
    ]


def test_a_nic_behind_another_switch_is_reached_over_both_uplinks_and_between_the_sockets(make, names, parts):
    host = Host(
        cpu=parts.cpu,
        num_sockets=2,
        link=parts.pcie,
        pcie_switch_of=(0, 0, 1, 1, 2, 2, 3, 3),
        socket_link=parts.pcie,
        root_complex=parts.pcie,
    )
    topology = make(2, nics_per_node=1, host=host)
    assert names(topology, 3, 8) == [
        "node0/gpu3/pcie.up",
        "node0/pcie1/up",
        "node0/cpu0/root.up",
        "node0/cpu0/root.down",
        "node0/pcie0/down",
        "node0/nic0.tx",
        "node1/nic0.rx",
        "node1/gpu0/pcie.down",
    ]
    assert names(topology, 0, 15)[-4:] == [
        "node1/pcie0/up",
        "node1/cpu0/socket.out",
        "node1/pcie3/down",
        "node1/gpu7/pcie.down",
    ]


def test_drives_are_one_half_duplex_array(make, parts):
    host = Host(cpu=parts.cpu, num_sockets=1, link=parts.pcie, drive=parts.drive, num_drives=4)
    topology = make(2, host=host)
    read, write = topology.local["nvme_read"], topology.local["nvme_write"]
    assert path_names(topology, "nvme_read", 9) == ["node1/nvme", "node1/cpu0/dram"]
    assert (read.rows == write.rows).all()
    array = topology.resources.find("node1/nvme")
    assert topology.resources.capacity[array] / read.per_byte[0] == pytest.approx(20e9)  # 4 drives of 5 GB/s
    assert topology.resources.capacity[array] / write.per_byte[0] == pytest.approx(8e9)
    assert read.per_byte[1] == 1
    assert read.latency == 50e-6
    assert topology.tier_bytes["nvme"] == 4 * 10**12


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"num_sockets": 0}, "host.num_sockets"),
        ({"num_drives": 2}, "host.num_drives"),
        ({"socket_of": (0, 0, 0, 0, 1, 1, 1, 2)}, "host.socket_of"),
        ({"process_socket_of": (0, 0, 0, 0, 1, 1, 1, 2)}, "host.process_socket_of"),
        ({"pcie_switch_of": (-1,) * 8}, "host.pcie_switch_of"),
    ],
)
def test_what_does_not_go_together_is_refused(parts, wrong, key):
    with pytest.raises(BadInput) as error:
        Host(**{"cpu": parts.cpu, "num_sockets": 2, "link": parts.pcie, **wrong})
    assert key in [fault.key for fault in error.value.faults]


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"socket_of": (0, 1)}, "host.socket_of"),
        ({"process_socket_of": (0, 1)}, "host.process_socket_of"),
        ({"process_socket_of": (1,) * 8, "sockets_per_system": 1}, "host.process_socket_of"),
        ({"pcie_switch_of": (0, 1)}, "host.pcie_switch_of"),
        ({"pcie_switch_of": (0, 1, 2, 3, 3, 4, 5, 6)}, "host.pcie_switch_of"),
    ],
)
def test_lists_must_fit_the_gpus(make, parts, wrong, key):
    with pytest.raises(BadInput, match=key):
        make(1, host=Host(cpu=parts.cpu, num_sockets=2, link=parts.pcie, **wrong))


def test_a_process_may_be_on_another_socket_than_its_gpu(make, parts):
    """DeepSpeed's launcher deals out cores in order: of two GPUs on the first socket the second has the other's."""
    away = {"socket_of": (0,) * 8, "process_socket_of": (0, 0, 0, 0, 1, 1, 1, 1), "pcie_switch_of": (0,) * 8}
    host = Host(cpu=parts.cpu, num_sockets=2, link=parts.pcie, socket_link=parts.pcie, num_socket_links=3, **away)
    topology = make(1, host=host)
    lanes = ["node0/pcie0/down", "node0/gpu6/pcie.down"]
    assert path_names(topology, "h2d", 0) == ["node0/cpu0/dram", "node0/pcie0/down", "node0/gpu0/pcie.down"]
    assert path_names(topology, "h2d", 6) == ["node0/cpu1/socket.out", "node0/cpu1/dram", *lanes]
    back = ["node0/gpu6/pcie.up", "node0/pcie0/up"]
    assert path_names(topology, "d2h", 6) == [*back, "node0/cpu0/socket.out", "node0/cpu1/dram"]
    assert path_names(topology, "cores", 6) == ["node0/cpu1/cores"]
    assert path_names(topology, "dram", 6) == ["node0/cpu1/dram"]
    # what is far from its process is beside its GPU
    assert path_names(topology, "h2d.far", 6) == ["node0/cpu0/dram", *lanes]
    assert path_names(topology, "d2h.far", 6) == [*back, "node0/cpu0/dram"]
    assert path_names(topology, "socket.spread", 6) == ["node0/cpu1/socket.out", "node0/cpu0/socket.out"]


def test_memory_of_other_sockets_is_reached_over_the_links_between(make, parts):
    host = Host(cpu=parts.cpu, num_sockets=2, link=parts.pcie, socket_link=parts.pcie, num_socket_links=3)
    topology = make(1, host=host)
    assert path_names(topology, "h2d.spread", 1) == [
        "node0/cpu1/socket.out",
        "node0/cpu0/dram",
        "node0/cpu1/dram",
        "node0/gpu1/pcie.down",
    ]
    assert topology.local["h2d.spread"].per_byte.tolist() == [0.5, 0.5, 0.5, 1]
    assert path_names(topology, "d2h.far", 6) == ["node0/gpu6/pcie.up", "node0/cpu1/socket.out", "node0/cpu0/dram"]
    assert path_names(topology, "socket.spread", 6) == ["node0/cpu1/socket.out", "node0/cpu0/socket.out"]
    assert topology.local["socket.spread"].per_byte.tolist() == [0.25, 0.25]
    out = topology.resources.find("node0/cpu0/socket.out")
    assert topology.resources.capacity[out] == 90e9


def test_one_socket_has_all_memory_near(make, parts):
    topology = make(1, host=Host(cpu=parts.cpu, num_sockets=1, link=parts.pcie, socket_link=parts.pcie))
    assert (topology.local["h2d.spread"].rows == topology.local["h2d"].rows).all()
    assert not {"h2d.far", "dram.far", "socket.spread", "socket.far"} & set(topology.local)
    assert not any("socket" in name for name in topology.resources.names())


def test_cores_of_a_socket_are_one_resource_of_time(make, parts):
    topology = make(1)
    assert path_names(topology, "cores", 7) == ["node0/cpu1/cores"]
    assert topology.resources.capacity[topology.resources.find("node0/cpu1/cores")] == 64e9  # core-ns a second


def test_memory_beside_the_cards(make, parts):
    topology = make(1, host=Host(cpu=parts.cpu, num_sockets=2, link=parts.pcie, memory_bytes=10**9))
    assert topology.tier_bytes["host"] == 2 * 10**9


@pytest.mark.parametrize(
    ("wrong", "key", "nearest"),
    [
        ({"num_sockets": 4, "sockets_per_system": 3}, "host.sockets_per_system", 2),
        ({"drive_uplink": True}, "host.drive_uplink", None),
        ({"queue_depth": 0}, "host.queue_depth", 1),
        ({"request_bytes": 0}, "host.request_bytes", 1),
        ({"memory_bytes": 0}, "host.memory_bytes", 1),
        ({"num_socket_links": 0}, "host.num_socket_links", 1),
    ],
)
def test_numbers_out_of_range_have_a_nearest(parts, wrong, key, nearest):
    if "drive_uplink" in wrong:
        wrong = {"drive_uplink": parts.pcie}
    with pytest.raises(BadInput) as error:
        Host(**{"cpu": parts.cpu, "num_sockets": 2, "link": parts.pcie, **wrong})
    assert [(fault.key, fault.nearest) for fault in error.value.faults] == [(key, nearest)]
