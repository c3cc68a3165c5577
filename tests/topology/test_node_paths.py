"""Paths of all devices: laid out when asked for, the same as if they had been from the start."""

import numpy as np
import pytest

from clustersim.topology.host import Host
from clustersim.topology.numa import cpu_numa_nodes
from clustersim.topology.topology import LocalPath


@pytest.fixture
def topology(make, parts):
    return make(3, host=Host(cpu=parts.cpu, num_sockets=2, link=parts.pcie, drive=parts.drive, num_drives=1))


def test_every_device_has_the_resources_of_its_own_node(topology):
    for name, path in topology.local.items():
        assert len(path.rows) == 24
        for device in (0, 7, 8, 23):
            names = topology.resources.names(path.rows[device])
            assert all(found.startswith(f"node{device // 8}/") for found in names), name


def test_names_are_known_before_anything_is_laid_out(topology):
    local = topology.local
    assert "h2d" in local
    assert "fs_read" not in local
    assert len(local) == len(list(local)) > 10
    with pytest.raises(KeyError):
        local["fs_read"]


def test_other_paths_stand_beside_them(topology):
    own = LocalPath(rows=np.zeros((24, 1), dtype=np.int64), per_byte=np.ones(1))
    joined = topology.local.joined({"mine": own, "h2d": own})
    assert joined["mine"] is joined["h2d"] is own
    assert set(joined) == {*topology.local, "mine"}
    assert (joined["d2h"].rows == topology.local["d2h"].rows).all()


def test_some_devices_alone(topology):
    some = np.array([3, 23])
    few = topology.local.of(some)
    assert set(few) == set(topology.local)
    for name, path in few.items():
        assert (path.rows == topology.local[name].rows[some]).all()


def test_numa_nodes_with_cores(topology):
    assert cpu_numa_nodes(topology) == 2
