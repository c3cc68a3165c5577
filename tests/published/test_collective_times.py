"""Collectives alone on their links take the time of the textbook, to the nanosecond.

α is the latency of a route, β the bandwidth of a link, S the payload of a rank, n the number of ranks; a kernel is
launched once. Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69
(2009), section 3; Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
IJHPCA 19 (2005), section 4.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from clustersim.engine.simulate import simulate

ALPHA, BETA, LAUNCH = 3000, 100, 5000  # [ns], [B/ns], [ns]


def duration(star: ModuleType, kind: str, nbytes: int, num_ranks: int) -> int:
    card = replace(star.CARD, launch_latency=LAUNCH / 1e9)
    link_latency = ALPHA / 2 / 1e9  # a route is two links
    cluster = star.cluster(1, num_ranks, nvlink=BETA * 1e9, latency=link_latency, gpus=(card,))
    programs = [star.program(star.collective(kind, nbytes)) for _ in range(num_ranks)]
    run = simulate(cluster, star.job(*programs, families=(star.groups("dp", range(num_ranks)),)))
    start, end = star.times(run, 0)[kind]
    assert start == 0
    return int(end)


@pytest.mark.parametrize("num_ranks", [2, 4, 8, 16])
@pytest.mark.parametrize("nbytes", [0, 16_000, 160_000_000])
def test_ring_all_reduce(star: ModuleType, num_ranks: int, nbytes: int) -> None:
    """2(n-1)/n · S/β + 2(n-1) · α."""
    n = num_ranks
    expected = 2 * (n - 1) * nbytes / n / BETA + 2 * (n - 1) * ALPHA + LAUNCH
    assert duration(star, "all_reduce", nbytes, n) == expected


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter"])
@pytest.mark.parametrize("num_ranks", [2, 4, 8])
def test_ring_all_gather_and_reduce_scatter(star: ModuleType, kind: str, num_ranks: int) -> None:
    """(n-1)/n · S/β + (n-1) · α."""
    n, nbytes = num_ranks, 8_000_000
    assert duration(star, kind, nbytes, n) == (n - 1) * nbytes / n / BETA + (n - 1) * ALPHA + LAUNCH


@pytest.mark.parametrize("num_ranks", [2, 4, 8])
def test_pairwise_all_to_all(star: ModuleType, num_ranks: int) -> None:
    """Each rank sends (n-1)/n · S; all its peers are served at once, so α counts once."""
    n, nbytes = num_ranks, 8_000_000
    assert duration(star, "all_to_all", nbytes, n) == (n - 1) * nbytes / n / BETA + ALPHA + LAUNCH


def test_all_reduce_is_reduce_scatter_and_all_gather(star: ModuleType) -> None:
    parts = [duration(star, kind, 8_000_000, 8) - LAUNCH for kind in ("reduce_scatter", "all_gather")]
    assert duration(star, "all_reduce", 8_000_000, 8) == sum(parts) + LAUNCH
