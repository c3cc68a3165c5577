"""Which numbers of chunks and micro-batches a named schedule can take, and which are nearest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from clustersim.faults import Fault

__all__ = ["LIMITS", "Limits", "legal"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a schedule asks of its three numbers.

    Parameters
    ----------
    num_virtual : tuple[int, int | None]
        fewest and most chunks a stage; None: as many as the model can be cut into
    stages_multiple : int
        of what the stages must be a multiple
    multiple, multiple_of_stages : int
        the micro-batches must be a multiple of ``multiple + multiple_of_stages * num_stages``
    least_of_stages : int
        micro-batches must be at least this many times the stages
    """

    num_virtual: tuple[int, int | None] = (1, 1)
    stages_multiple: int = 1
    multiple: int = 0
    multiple_of_stages: int = 0
    least_of_stages: int = 0

    def unit(self, num_stages: int) -> int:
        """Number that the micro-batches must be a multiple of."""
        return self.multiple + self.multiple_of_stages * num_stages or 1

    def nearest(self, num_stages: int, num_micro_batches: int) -> int:
        """Legal number of micro-batches closest to the given one; of two equally close ones the larger."""
        unit = self.unit(num_stages)
        least = -(-max(1, self.least_of_stages * num_stages) // unit) * unit
        return max(least, (num_micro_batches + unit // 2) // unit * unit)


LIMITS: Mapping[str, Limits] = MappingProxyType(
    {
        "gpipe": Limits(),
        "1f1b": Limits(),
        "interleaved": Limits(num_virtual=(2, None), multiple_of_stages=1),
        "interleaved-overlapped": Limits(num_virtual=(1, None), multiple_of_stages=1),
        "interleaved-zb": Limits(num_virtual=(2, None), multiple_of_stages=1),
        "breadth-first": Limits(num_virtual=(1, None)),
        "zb-h1": Limits(),
        "zb-h2": Limits(),
        "zb-v": Limits(num_virtual=(2, 2)),
        "v-half": Limits(num_virtual=(2, 2)),
        "v-min": Limits(num_virtual=(2, 2)),
        "dualpipe": Limits(num_virtual=(2, 2), stages_multiple=2, multiple=2, least_of_stages=2),
        "dualpipev": Limits(num_virtual=(2, 2), least_of_stages=2),
    }
)
"""By name in ``SCHEDULES``."""


def legal(name: str, num_stages: int, num_virtual: int, num_micro_batches: int) -> tuple[Fault, ...]:
    """What a named schedule cannot take, each with the nearest legal value; empty when it can.

    Parameters
    ----------
    name : str
        of ``SCHEDULES``
    num_stages, num_virtual, num_micro_batches : int

    Returns
    -------
    tuple[Fault, ...]
        keys ``plan.pp``, ``plan.vpp`` and ``num_micro_batches``

    Raises
    ------
    KeyError
        when there is no such name
    """
    limits = LIMITS[name]
    faults = []
    if num_stages % limits.stages_multiple:
        rule = f"must be a multiple of {limits.stages_multiple} for {name}"
        up = -(-num_stages // limits.stages_multiple) * limits.stages_multiple
        faults.append(Fault(key="plan.pp", value=num_stages, rule=rule, nearest=up))
    least, most = limits.num_virtual
    if num_virtual < least or (most is not None and num_virtual > most):
        rule = f"must be {least if most == least else f'at least {least}'} for {name}"
        faults.append(Fault(key="plan.vpp", value=num_virtual, rule=rule, nearest=least))
    unit, floor = limits.unit(num_stages), limits.least_of_stages * num_stages
    if num_micro_batches % unit or num_micro_batches < max(1, floor):
        wants = [f"a multiple of {unit}"] if unit > 1 else []
        wants += [f"at least {floor}"] if floor else []
        rule = f"micro-batches must be {' and '.join(wants) or 'at least 1'} for {name} on {num_stages} stages"
        nearest = limits.nearest(num_stages, num_micro_batches)
        faults.append(Fault(key="num_micro_batches", value=num_micro_batches, rule=rule, nearest=nearest))
    return tuple(faults)
