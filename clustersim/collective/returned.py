"""Returned: the exchange that brings back what another one took there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clustersim.collective.traffic import Algorithm, GroupShape, Phase, Traffic

__all__ = ["Returned"]


@dataclass(frozen=True, slots=True)
class Returned:
    """The flows of an all-to-all turned round, the last phase first, as a mixture's combine undoes its dispatch.

    What a member sent it now receives, so the bytes that it reads and writes stay what they were.

    Parameters
    ----------
    there : Algorithm
        of all_to_all; ``nbytes`` is the payload that it took there

    Raises
    ------
    BadInput
        when called, as ``there``
    """

    there: Algorithm

    def __call__(self, kind: str, nbytes: int, shape: GroupShape) -> Traffic:
        """Flows; see the class."""
        traffic = self.there(kind, nbytes, shape)
        return replace(traffic, phases=tuple(_turned(phase) for phase in reversed(traffic.phases)))


def _turned(phase: Phase) -> Phase:
    return replace(phase, source=phase.destination, destination=phase.source)
