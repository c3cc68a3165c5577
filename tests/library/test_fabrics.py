"""Fabrics from cards and settings: the machines that have them, overrides with units, every family in the keys."""

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.library.keys import KEYS
from clustersim.library.settings import read_settings
from clustersim.library.topologies import load_topology
from clustersim.topology.families import FABRICS


def test_the_keys_name_every_family():
    assert all(name in KEYS["fabric"].value.legal for name in FABRICS)


def test_frontier_tapers_its_global_links():
    """A group injects 512 ports and has 4 links to each of 73 others: 292, so 1.75 to 1."""
    topology = load_topology("frontier", nodes=256)
    table = topology.resources
    path = topology.router.crossing.path
    assert (path.groups, path.used, path.routers * path.nodes_per_router // path.rails) == (74, 2, 128)
    across = table.kind == table.kinds.index("global")
    per_group = table.capacity[across].sum() / path.used
    injected = table.capacity[table.find("node0/nic0.tx")] * 4 * 128
    assert injected / per_group == pytest.approx(1.753, abs=1e-3)


def test_the_wan_of_two_sites_is_a_setting():
    values, faults = read_settings(["fabric.wan_latency=20 ms", "fabric.wan_bandwidth=1.6 Tb/s", "fabric.sites=3"])
    assert not faults
    one, other = load_topology("two-sites-h100", nodes=6), load_topology("two-sites-h100", nodes=6, **values)
    for topology, latency, bandwidth, sites in ((one, 103, 1e11, 2), (other, 20, 2e11, 3)):
        row = topology.resources.find("site0/peer0/wan")
        assert topology.resources.latency_ns[row] // 10**6 == latency
        assert topology.resources.capacity[row] == bandwidth
        assert topology.resources.block(row).shape == (sites, sites - 1)


def test_any_card_may_get_another_fabric():
    values, _ = read_settings(["fabric=torus", "fabric.link=ethernet-400g", "fabric.dims=[4, 2]"])
    topology = load_topology("dgx-h100", nodes=8, **values)
    assert topology.router.crossing.path.dims == (4, 2)
    assert any("fabric.switch" in note for note in topology.notes)
    for name in ("dragonfly", "dragonfly_plus", "fat_tree"):
        device = np.arange(8 * 8)
        rows = load_topology("dgx-h100", nodes=8, fabric=name).route(device, device[::-1].copy())
        assert (rows[:, 0] >= 0).all()


def test_sides_that_do_not_fit_are_the_callers_fault():
    with pytest.raises(BadInput) as error:
        load_topology("torus-h100", nodes=64, **{"fabric.dims": (4, 4, 3)})
    (fault,) = error.value.faults
    assert (fault.key, fault.nearest, fault.file) == ("fabric.dims", [4, 4, 4], "")


def test_a_missing_part_is_named():
    with pytest.raises(BadInput, match=r"fabric\.link: None must be given"):
        load_topology("dgx-h100", nodes=8, fabric="ring")
