"""What is wrong with a cluster today: slow ranks, slow links, failed links, jitter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.topology.topology import Topology

__all__ = ["Perturbation", "perturbed"]

LARGEST = 1e6
"""Largest factor, and the inverse of the smallest: beyond, a slip of the keyboard and times that no clock holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Perturbation:
    """Departures from the cards.

    Parameters
    ----------
    slow_ranks : Mapping[int, float]
        rank -> factor on the time of what it computes: 1.3 is 30 % slower
    slow_links : Mapping[str, float]
        resource name -> factor on its bandwidth: 0.5 halves it
    failed_links : tuple[str, ...]
        resource names that lose one of their parallel links; a name given twice loses two
    jitter : float
        standard deviation of the natural logarithm of a random factor of mean 1 on each kernel and each piece of host
        work; it makes every rank a class of its own
    """

    slow_ranks: Mapping[int, float] = field(default_factory=dict)
    slow_links: Mapping[str, float] = field(default_factory=dict)
    failed_links: tuple[str, ...] = ()
    jitter: float = 0.0

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Perturbation:
        """From a mapping as ``--set perturb.*`` gives it.

        Parameters
        ----------
        given : Mapping[str, Any]
            ``slow_ranks``, ``slow_links``: rank or link -> factor; ``failed_links``: names; ``jitter``: a number

        Raises
        ------
        BadInput
            with every name that is no perturbation, and every value that is none of it
        """
        faults = [
            Fault(
                key=f"perturb.{key}",
                value=given[key],
                rule="is no perturbation",
                nearest=nearest_name(key, cls.__dataclass_fields__),
            )
            for key in given
            if key not in cls.__dataclass_fields__
        ]
        ranks: dict[int, float] = {}
        links: dict[str, float] = {}
        for key, into in (("slow_ranks", ranks), ("slow_links", links)):
            mapping = given.get(key, {})
            if not isinstance(mapping, Mapping):
                faults.append(
                    Fault(key=f"perturb.{key}", value=mapping, rule="must map names to factors", nearest="{37: 1.3}")
                )
                continue
            for name, factor in mapping.items():
                place = f"perturb.{key}.{name}"
                is_rank = isinstance(name, int) and not isinstance(name, bool)
                if key == "slow_ranks" and not is_rank and not str(name).isdecimal():
                    faults.append(Fault(key=place, value=name, rule="must be the number of a rank"))
                    continue
                is_number = isinstance(factor, Real) and not isinstance(factor, bool)
                if not is_number or not 0 < factor < float("inf"):
                    rule = "must be a positive, finite factor"
                    faults.append(Fault(key=place, value=factor, rule=rule, nearest=1.0))
                    continue
                beyond = factor > LARGEST and key == "slow_ranks"  # a link's is held against its own bandwidth
                if beyond or factor < 1 / LARGEST:
                    rule = f"must be a factor from {1 / LARGEST:g} to {LARGEST:g}"
                    nearest = LARGEST if factor > 1 else 1 / LARGEST
                    faults.append(Fault(key=place, value=factor, rule=rule, nearest=nearest))
                # TOML and JSON keys are text
                into[int(name) if key == "slow_ranks" else str(name)] = float(factor)  # type: ignore[index]
        failed = given.get("failed_links", ())
        listed = isinstance(failed, Iterable) and not isinstance(failed, str)
        if not listed or not all(isinstance(name, str) for name in failed):
            faults.append(Fault(key="perturb.failed_links", value=failed, rule="must be a list of link names"))
        jitter = given.get("jitter", 0.0)
        if isinstance(jitter, bool) or not isinstance(jitter, int | float) or not 0 <= jitter <= 1:
            faults.append(Fault(key="perturb.jitter", value=jitter, rule="must be a number from 0 to 1", nearest=0.0))
        if faults:
            raise BadInput(faults)
        return cls(slow_ranks=ranks, slow_links=links, failed_links=tuple(failed), jitter=float(jitter))

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for the run folder."""
        return {
            "slow_ranks": {str(rank): factor for rank, factor in self.slow_ranks.items()},
            "slow_links": dict(self.slow_links),
            "failed_links": list(self.failed_links),
            "jitter": self.jitter,
        }


def perturbed(topology: Topology, perturbation: Perturbation) -> Topology:
    """The cluster with slow and failed links.

    Raises
    ------
    BadInput
        for names that are no link of the topology, with the nearest one, and for a link whose loss leaves no route
    """
    faults: list[Fault] = []
    for name in perturbation.slow_links:
        try:
            topology.resources.find(name)
        except KeyError:
            rule, nearest = f"must be a resource of {topology.name}", topology.resources.nearest(name)
            faults.append(Fault(key="perturb.slow_links", value=name, rule=rule, nearest=nearest))
    try:
        topology = topology.without_links(perturbation.failed_links)
    except BadInput as refused:
        faults += refused.faults
    if faults:
        raise BadInput(faults)
    try:
        return topology.with_capacity(perturbation.slow_links)
    except ValueError as error:
        given = dict(perturbation.slow_links)
        raise BadInput([Fault(key="perturb.slow_links", value=given, rule=str(error), nearest=1.0)]) from None
