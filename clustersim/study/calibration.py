"""The numbers of a communication library from measured collectives: least squares on the logarithm of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.communication import LL128_FRACTION, Communication, Transport
from clustersim.study.measured import Measured
from clustersim.study.trials import Trials

__all__ = ["Calibration", "calibrate", "errors"]

Card = TypeVar("Card", Communication, Transport)

_PULL = 0.3
"""Weight of a number's departure from its start by a factor e, against a row off by a factor e: what no row determines
stays where it was, and what few rows determine does not go far. Of 0.07, 0.2 and 0.3 the one under which groups that
were left out came out best on the whole."""

_TRUST = {"high": 1.0, "medium": 0.35, "low": 0.25}
"""Weight of rows below 1 MiB by the confidence that their collector has in them, 1 where none is given: programs and
versions of NCCL differ most there. Larger ones weigh 1, of low confidence 0.25."""

_NUM_STARTS, _SCATTER = 5, 0.3

_REACH = 4.0
"""Farthest that a number goes from its start, as a logarithm: a factor of 55."""

_FELT = 1e-4
"""Least change of a row's time that counts, as a fraction."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Calibration:
    """Cards by name.

    Parameters
    ----------
    nodes : Mapping[str, Communication]
    networks : Mapping[str, Transport]
    determined : Mapping[str, frozenset[str]]
        numbers of each card that some row depends on; the others are as they were at the start
    """

    nodes: Mapping[str, Communication]
    networks: Mapping[str, Transport]
    determined: Mapping[str, frozenset[str]] = field(default_factory=dict)


def calibrate(rows: Sequence[Measured], start: Calibration) -> Calibration:
    """Find the numbers under which the times of the rows come out best.

    First each node's card from the rows on one node of its kind, then each network's from rows over several nodes,
    with the nodes' numbers as found. The sum of soft-L1 errors of log(predicted / measured) is least, with a scale of
    10 %, so that rows far off count linearly; each number is held near its start with a small weight.

    Parameters
    ----------
    rows : sequence of Measured
    start : Calibration
        the cards that the rows' topologies name

    Raises
    ------
    ImportError
        when scipy is not installed
    """
    nodes, networks, determined = dict(start.nodes), dict(start.networks), dict[str, frozenset[str]]()
    for name in sorted({row.node for row in rows}):
        alone = [row for row in rows if row.node == name and row.topology.num_nodes == 1]
        if alone:
            network = next(iter(networks.values()))  # one node: none of its numbers is used
            nodes[name], determined[name] = _best(nodes[name], alone, partial(_inside, Trials.of(alone), network))
    for name in sorted({row.network for row in rows}):
        apart = [row for row in rows if row.network == name and row.topology.num_nodes > 1 and row.between.known]
        if apart:
            networks[name], determined[name] = _best(networks[name], apart, _over(apart, nodes))
    return Calibration(nodes=nodes, networks=networks, determined=determined)


def errors(rows: Sequence[Measured], cards: Calibration) -> NDArray[np.float64]:
    """Predicted over measured time, less 1, of each row, shape (num_rows,)."""
    found = np.empty(len(rows))
    for (node, network), index in _by(rows, "node", "network"):
        part = [rows[i] for i in index]
        seconds = Trials.of(part).seconds(cards.nodes[node], cards.networks[network])
        found[index] = seconds * 1e6 / np.array([row.row.time_us for row in part]) - 1
    return found


def _inside(trials: Trials, network: Transport, node: Communication) -> NDArray[np.float64]:
    return trials.seconds(node, network)


def _over(rows: Sequence[Measured], nodes: Mapping[str, Communication]) -> Callable[[Transport], NDArray[np.float64]]:
    """Times of rows on several kinds of node as a function of what their network costs."""
    parts = [(nodes[node], index, Trials.of([rows[i] for i in index])) for (node,), index in _by(rows, "node")]

    def seconds(network: Transport) -> NDArray[np.float64]:
        times = np.empty(len(rows))
        for node, index, trials in parts:
            times[index] = trials.seconds(node, network)
        return times

    return seconds


def _best(
    start: Card, rows: Sequence[Measured], seconds: Callable[[Card], NDArray[np.float64]]
) -> tuple[Card, frozenset[str]]:
    """The card under which the rows come out best, and those of its numbers that some row depends on."""
    from scipy.optimize import least_squares

    free = [item.name for item in fields(start) if item.name not in ("name", "residual", "sources")]
    origin = np.log([getattr(start, name) for name in free])
    least = origin - _REACH
    most = np.minimum(origin + _REACH, [_most(name) for name in free])
    measured = np.log([row.row.time_us / 1e6 for row in rows])
    weight = np.array([_weight(row) for row in rows])

    def card(x: NDArray[np.float64]) -> Card:
        return replace(start, **dict(zip(free, np.exp(np.minimum(x, most)).tolist(), strict=True)))

    def residuals(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([weight * (np.log(seconds(card(x))) - measured), _PULL * (x - origin)])

    # which protocol is fastest makes valleys: the search begins at several places around the start, always the same
    shifts = np.random.default_rng(0).normal(scale=_SCATTER, size=(_NUM_STARTS, len(origin)))
    shifts[0] = 0.0
    tries = [
        least_squares(
            residuals,
            np.clip(origin + shift, least + 1e-6, most - 1e-6),
            bounds=(least, most),
            loss="soft_l1",
            f_scale=0.1,
            diff_step=[1e-3] * len(origin),
        )
        for shift in shifts
    ]
    best = min(tries, key=lambda found: found.cost)
    # a number that no row feels goes back to its start, unless there it would make another protocol the fastest
    x, times = np.array(best.x), seconds(card(best.x))
    for k in range(len(free)):
        back = x.copy()
        back[k] = origin[k]
        if np.allclose(seconds(card(back)), times, rtol=_FELT):
            x = back
    return card(x), frozenset(name for name, moved in zip(free, (x != origin).tolist(), strict=True) if moved)


def _weight(row: Measured) -> float:
    large = row.row.nbytes >= 2**20 and row.row.confidence != "low"
    return 1.0 if large else _TRUST.get(row.row.confidence, 1.0)


def _most(name: str) -> float:
    """Logarithm of the largest value that a number may have."""
    if name == "ll128_fraction":
        return float(np.log(LL128_FRACTION))
    return 0.0 if name.endswith("_fraction") else np.inf


def _by(rows: Iterable[Measured], *names: str) -> Iterator[tuple[tuple[str, ...], list[int]]]:
    """Positions of the rows that have the same attributes."""
    found: dict[tuple[str, ...], list[int]] = {}
    for index, row in enumerate(rows):
        found.setdefault(tuple(getattr(row, name) for name in names), []).append(index)
    yield from found.items()
