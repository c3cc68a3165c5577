"""The settings of the simulation itself: own kernel times, what is slow or has failed, when to stop."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.library.keys.key import Key
from clustersim.library.values import Factors, Name, Names, Number, Whole

__all__ = ["SIMULATION_KEYS"]

SIMULATION_KEYS: Mapping[str, Key] = {
    "kernel_table": Key(
        Name("a .csv or .parquet of measured kernels"), "own measurements, which stand before the GPU's kernel models"
    ),
    "perturb.slow_ranks": Key(Factors("rank"), "rank: factor on the time of what it computes"),
    "perturb.slow_links": Key(Factors("link"), "link: factor on its bandwidth"),
    "perturb.failed_links": Key(
        Names("names: [leaf0/up, node3/nic1, leaf2, pod0, rail1]"),
        "links that lose one of their parallel links; ports, switches and rails that fail",
    ),
    "perturb.jitter": Key(Number(0, 1), "spread (standard deviation of the logarithm) of each kernel's time", 0.0),
    "limits.num_events": Key(Whole(1, 2**63 - 1), "instants to simulate at most"),
    "limits.simulated_s": Key(Number(0, above=True), "simulated time at most", unit="s"),
    "limits.wall_s": Key(Number(0, above=True), "real time at most", unit="s"),
}
"""By dotted name."""
