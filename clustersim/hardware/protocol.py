"""Protocols: the ways in which a communication library sends the data of one algorithm, each with its own overhead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from clustersim.units import Unit

__all__ = ["LONGEST_PIPELINE", "MESSAGES_AT_ONCE", "TEXTBOOK", "Demand", "Protocol"]

LONGEST_PIPELINE = 20
"""k: in units of the fill F, the longest time on the links over which chunks still grow. Assumed: of 20, 50 and
no bound the one under which 266 collectives on one node of A100, H100 and B200 came out best, by 2 % at most."""

MESSAGES_AT_ONCE = 8
"""Messages that share the threads of a block, as many each way; others wait for these (code: NCCL,
NCCL_MAX_DEV_WORK_P2P_PER_BATCH, ``src/include/device.h``)."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Demand:
    """What one collective asks of n equal groups, before a protocol: steps, and time on the links at full speed.

    Parameters
    ----------
    launch_ns, route_ns : NDArray[int64], shape (n,)
        the GPU's own launch; the latency of all steps' routes [ns]
    inside_steps, between_steps : int or NDArray[int64], shape (n,)
        serial steps inside nodes and over the network
    inside, between, whole : NDArray[float64], shape (n,)
        time of the busiest resource by the flows inside nodes, by those between them, and by all together [s]
    own_nbytes : int or NDArray[int64], shape (n,)
        what a member copies from its own send buffer to its own receive buffer [B]
    num_messages : int or NDArray[int64], shape (n,)
        that a member sends side by side, its own block among them
    over_pcie : NDArray[bool], shape (n,)
        whether flows inside nodes cross PCIe or a host
    pipelined : bool
        whether chunks of all phases overlap; else ``inside`` and ``between`` are sums over phases one after another
    """

    launch_ns: NDArray[np.int64]
    route_ns: NDArray[np.int64]
    inside_steps: int | NDArray[np.int64]
    between_steps: int | NDArray[np.int64]
    inside: NDArray[np.float64]
    between: NDArray[np.float64]
    whole: NDArray[np.float64]
    own_nbytes: int | NDArray[np.int64]
    num_messages: int | NDArray[np.int64]
    over_pcie: NDArray[np.bool_]
    pipelined: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Protocol:
    """What sending costs beside the links.

    Parameters
    ----------
    name : str
        ``LL``, ``LL128``, ``Simple``
    launch_latency : float
        from the call to the first step; it takes the place of a GPU's own launch latency where that is shorter [s]
    inside_latency, between_latency : float
        of a step over links inside a node, and over the network, beside the latency of its route [s]
    inside_fraction, between_fraction : float
        of the links' bandwidth that carries data, inside a node and over the network, in (0, 1]
    copy_bandwidth : float
        at which a member copies its own block, which no link carries [B/s]
    chunked : bool
        whether the steps' latency is paid by every chunk of a pipeline, see :meth:`ns`
    pairwise : bool
        whether every flow is a message of its own, that no member passes on
    in_order : bool
        whether it needs links inside nodes that keep 128 bytes together, see :meth:`runs`

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    name: str
    launch_latency: Annotated[float, Unit("s")] = 0.0
    inside_latency: Annotated[float, Unit("s")] = 0.0
    between_latency: Annotated[float, Unit("s")] = 0.0
    inside_fraction: float = 1.0
    between_fraction: float = 1.0
    copy_bandwidth: Annotated[float, Unit("B/s")] = float("inf")
    chunked: bool = False
    pairwise: bool = False
    in_order: bool = False

    def __post_init__(self) -> None:
        for name in ("launch_latency", "inside_latency", "between_latency"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: {getattr(self, name)} must be zero or positive, and finite [s]")
        for name in ("inside_fraction", "between_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name}: {getattr(self, name)} must be a fraction in (0, 1]")
        if not self.copy_bandwidth > 0:
            raise ValueError(f"copy_bandwidth: {self.copy_bandwidth} must be positive [B/s]")

    def runs(self, demand: Demand) -> NDArray[np.bool_]:
        """Whether a library takes it for each of the n groups unless a user asks for another, shape (n,).

        LL128 tells new data from old by a flag in every 128 bytes, which NVLink and xGMI keep together and PCIe does
        not: NCCL leaves it out where GPUs of a node reach each other by anything but NVLink (code: NCCL,
        ``src/graph/tuning.cc``, typeIntra <= PATH_NVB).
        """
        return ~demand.over_pcie if self.in_order else np.ones_like(demand.over_pcie)

    def ns(self, demand: Demand) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Duration of a collective, and the part of it that no bandwidth would shorten.

        With F = (steps inside) · inside_latency + (steps between) · between_latency, the fill, and
        W = (busiest time on the links) / fraction + own_nbytes / copy_bandwidth::

            T = launch + routes + F + W                         not chunked
            T = launch + routes + F + W + 2 √(G · min(W, k·G))  chunked and pipelined

        Where chunks are passed on, G = F. That is a pipeline of D steps with overhead o a step and chunk, cut into the
        best number of chunks: (m + D - 1) · (o + W/m) is least at m = √((D-1)·W/o), where it is (√((D-1)·o) + √W)²; F
        stands for (D-1)·o. Pipelines of that kind: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005). NCCL's buffers
        bound the chunks, so from W = k·G on (:data:`LONGEST_PIPELINE`) the fill of the pipeline grows no more, and what
        each further chunk costs is in the fraction.

        A message that goes alone to its receiver has one step, so G = 0. Of m messages side by side each has fewer of
        the threads that they share: G = F · √((min(m, 8) - 1) / 7), with F as between 8 (:data:`MESSAGES_AT_ONCE`).
        The root is assumed: of no growth, the root and growth in proportion the one under which 42 all-to-alls and
        sends from 1 MiB between 2 to 8 A100, H100 and Blackwell came out best, 6.3 % off (RMS of ln) against 8.1 and
        6.5 %.

        Parameters
        ----------
        demand : Demand

        Returns
        -------
        ns, latency_ns : NDArray[int64], shape (n,)
        """
        fill = np.multiply(demand.inside_steps, self.inside_latency) + np.multiply(
            demand.between_steps, self.between_latency
        )
        inside, between = demand.inside / self.inside_fraction, demand.between / self.between_fraction
        seconds = np.maximum(np.maximum(inside, between) if demand.pipelined else inside + between, demand.whole)
        seconds = seconds + demand.own_nbytes / self.copy_bandwidth
        if self.chunked and demand.pipelined:
            filling = fill * _beside(demand.num_messages) if self.pairwise else fill
            seconds = seconds + 2 * np.sqrt(filling * np.minimum(seconds, LONGEST_PIPELINE * filling))
        launch_ns = np.maximum(demand.launch_ns, round(self.launch_latency * 1e9))
        latency_ns = demand.route_ns + launch_ns + np.rint(fill * 1e9).astype(np.int64)
        # less what floats round up, far inside the 2^-40 of head-room that shared resources keep
        return latency_ns + np.ceil(seconds * 1e9 * (1 - 2**-46)).astype(np.int64), latency_ns


def _beside(num_messages: int | NDArray[np.int64]) -> NDArray[np.float64]:
    """What a chunk costs beside other messages, as a part of that between as many as share a block."""
    beside: NDArray[np.float64] = np.sqrt((np.minimum(num_messages, MESSAGES_AT_ONCE) - 1) / (MESSAGES_AT_ONCE - 1))
    return beside


TEXTBOOK = Protocol(name="")
"""Latency and bandwidth of the links alone."""
