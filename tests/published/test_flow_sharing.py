"""How flows share links, in the textbook cases that flow models of TCP are held to, end times to the nanosecond.

Velho, Schnorr, Casanova and Legrand, "On the validity of flow-level TCP network models for grid and cloud simulations",
ACM TOMACS 23 (2013), compare max-min sharing with packet-level simulation on a dumbbell and on cross traffic; Bertsekas
and Gallager, *Data Networks*, 2nd ed., 1992, section 6.5.2, has the line of links; the single switch and the shared
backbone are the two clusters of SimGrid's platform descriptions.

A flow is a message between two GPUs of a graph. Links carry 1 B a nanosecond for each GB/s, and each launch takes less
than a nanosecond, so that n flows of S bytes on one link of C B/ns end after n·S/C ns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import ModuleType

import networkx as nx
import numpy as np
import pytest

import clustersim as cs

S = 1_200_000
"""Bytes of a message: a whole number of nanoseconds at every rate below."""


def ends(
    star: ModuleType, links: Iterable[tuple[str, str, int]], flows: Iterable[tuple[str, str, int]], latency_ns: int = 0
) -> list[int]:
    """When each of ``flows`` (from, to, bytes) ends [ns] on a graph of ``links`` (one end, other end, GB/s)."""
    graph: nx.Graph[str] = nx.Graph()
    for one, other, bandwidth in links:
        graph.add_edge(one, other, bandwidth=f"{bandwidth} GB/s", latency=f"{latency_ns} ns")
    for vertex in graph:
        graph.nodes[vertex]["role"] = "switch" if vertex.startswith("s") else "gpu"
    gpus = [vertex for vertex in graph if not vertex.startswith("s")]
    cluster = cs.Topology.from_networkx(graph, gpu=replace(star.CARD, memory_bandwidth=1e15), cpu=star.HOST)
    programs: dict[str, cs.Program] = {gpu: cs.Program(gpu) for gpu in gpus}
    families = []
    for k, (source, destination, nbytes) in enumerate(flows):
        slots = f"out{k}", f"in{k}"
        for end, kind, slot in zip((source, destination), ("send", "recv"), slots, strict=True):
            op = cs.Collective(name=f"flow {k}", kind=kind, slot=slot, nbytes=nbytes, axis="pp")
            programs[end].add(op, stream=slot)
        members = np.array([[gpus.index(source), gpus.index(destination)]])
        families.append(cs.GroupFamily(name=f"flow{k}", members=members, slots=slots))
    job = cs.Job(
        name="flows", programs=tuple(programs.values()), program_of=np.arange(len(gpus)), families=tuple(families)
    )
    trace = cs.simulate(cluster, job).trace
    end_ns = trace[trace["kind"] == "send"].set_index("name")["end_ns"]
    return [int(end_ns[f"flow {k}"]) for k in range(len(families))]


@pytest.mark.parametrize("num_senders", [1, 2, 3, 8])
def test_senders_to_one_receiver_through_a_switch(star: ModuleType, num_senders: int) -> None:
    """The receiver's link is shared: 1/n each."""
    senders = [f"a{k}" for k in range(num_senders)]
    links = [("s", gpu, 1) for gpu in (*senders, "to")]
    assert ends(star, links, [(gpu, "to", S) for gpu in senders]) == [num_senders * S] * num_senders


@pytest.mark.parametrize("num_pairs", [1, 2, 6])
def test_pairs_through_a_switch_do_not_meet(star: ModuleType, num_pairs: int) -> None:
    """Disjoint pairs have the full rate, in both directions at once: a switch has no capacity of its own."""
    pairs = [(f"a{k}", f"b{k}") for k in range(num_pairs)]
    links = [("s", gpu, 1) for pair in pairs for gpu in pair]
    flows = [(one, other, S) for a, b in pairs for one, other in ((a, b), (b, a))]
    assert ends(star, links, flows) == [S] * (2 * num_pairs)


@pytest.mark.parametrize("backbone", [1, 2, 6, 12])
@pytest.mark.parametrize("num_flows", [1, 2, 3, 4, 6])
def test_a_shared_backbone(star: ModuleType, num_flows: int, backbone: int) -> None:
    """n flows with own links of B over one link of C: min(B, C/n) each."""
    own = 2
    links = [("s1", "s2", backbone)]
    links += [("s1", f"a{k}", own) for k in range(num_flows)] + [("s2", f"b{k}", own) for k in range(num_flows)]
    expected = max(S // own, num_flows * S // backbone)
    assert ends(star, links, [(f"a{k}", f"b{k}", S) for k in range(num_flows)]) == [expected] * num_flows


@pytest.mark.parametrize("num_links", [1, 2, 3, 7])
def test_a_line_of_links(star: ModuleType, num_links: int) -> None:
    """One flow over all links against a short one on each: max-min gives 1/2 to every one of them, however long.

    Proportional fairness would give the long flow 1/(k+1).
    """
    line = [(f"s{k}", f"s{k + 1}", 1) for k in range(num_links)]
    links = [*line, ("s0", "from", 100), (f"s{num_links}", "to", 100)]
    links += [(f"s{k}", f"a{k}", 100) for k in range(num_links)]
    links += [(f"s{k + 1}", f"b{k}", 100) for k in range(num_links)]
    flows = [("from", "to", S), *((f"a{k}", f"b{k}", S) for k in range(num_links))]
    assert ends(star, links, flows) == [2 * S] * (num_links + 1)


def test_what_ends_early_leaves_its_share(star: ModuleType) -> None:
    """Two flows on one link, one of half the size: it ends at S with half of the other done; the rest goes alone."""
    links = [("s1", "s2", 1), *((s, f"{x}{k}", 9) for s, x in (("s1", "a"), ("s2", "b")) for k in range(2))]
    assert ends(star, links, [("a0", "b0", S), ("a1", "b1", S // 2)]) == [S + S // 2, S]


def test_cross_traffic(star: ModuleType) -> None:
    """Every link carries 1 B/ns. a -> b meets c -> b on its last two links; c -> d meets only the latter, on c's own.

    Both shared links are halved, so c -> d is no faster for having a link to itself: max-min freezes it with the flow
    that it shares c's link with. Without c -> b nobody meets anybody.
    """
    links = [("s1", "s2", 1), ("s2", "s3", 1), ("s1", "a", 1), ("s3", "b", 1), ("s2", "c", 1), ("s2", "d", 1)]
    assert ends(star, links, [("a", "b", S), ("c", "b", S), ("c", "d", S)]) == [2 * S, 2 * S, 2 * S]
    assert ends(star, links, [("a", "b", S), ("c", "d", S)]) == [S, S]


def test_reverse_traffic_is_free(star: ModuleType) -> None:
    """The two directions of a link are two links; TCP's acknowledgements, against the data, are not modelled."""
    links = [("s1", "s2", 1), *((s, f"{x}{k}", 9) for s, x in (("s1", "a"), ("s2", "b")) for k in range(2))]
    assert ends(star, links, [("a0", "b0", S), ("b1", "a1", S)]) == [S, S]


def test_a_flow_with_a_tighter_bottleneck_leaves_its_share_to_the_other(star: ModuleType) -> None:
    """A backbone of 4: one flow comes over a link of 1 and takes that, the other gets the 3 that are left, not 2."""
    links = [("s1", "s2", 4), ("s1", "a0", 1), ("s1", "a1", 9), ("s2", "b0", 9), ("s2", "b1", 9)]
    assert ends(star, links, [("a0", "b0", S), ("a1", "b1", S)]) == [S, S // 3]
    # with three on the backbone, the two free ones get 3/2 each
    links += [("s1", "a2", 9), ("s2", "b2", 9)]
    flows = [("a0", "b0", S), ("a1", "b1", S), ("a2", "b2", S)]
    assert ends(star, links, flows) == [S, S * 2 // 3, S * 2 // 3]


@pytest.mark.parametrize("latency_ns", [0, 1000, 1_000_000])
def test_latency_is_paid_once_a_link_and_does_not_bias_the_shares(star: ModuleType, latency_ns: int) -> None:
    """One flow alone ends after its links' latencies and S/C; beside others its latency is part of its work.

    A flow of latency L and S bytes runs at an even speed over L + S/C, so n of them ask the link for n·S/(L + S/C).
    """
    links = [("s", "a", 1), ("s", "b", 1), ("s", "to", 1)]
    alone = 2 * latency_ns + S
    assert ends(star, links, [("a", "to", S)], latency_ns) == [alone]
    assert ends(star, links, [("a", "to", S), ("b", "to", S)], latency_ns) == [max(alone, 2 * S)] * 2
