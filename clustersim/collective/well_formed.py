"""Flows are looked at before they are believed: an algorithm may be anyone's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.traffic import Phase, Traffic
from clustersim.faults import BadInput, Fault

__all__ = ["require_well_formed"]

_MOST_BYTES, _MOST = 1 << 49, 1 << 32
"""Of bytes, the largest payload; of all else that is counted: as many steps of a second are nanoseconds in 63 bits."""


def require_well_formed(traffic: Traffic, kind: str, num_members: int) -> Traffic:
    """``traffic``, if its flows join different members of the group and carry whole bytes.

    Parameters
    ----------
    traffic : Traffic
    kind : str
        of the collective, for the message
    num_members : int
        n

    Raises
    ------
    BadInput
        with every array that has another shape, no whole numbers, or numbers out of range, and every negative count
    """
    n, key = num_members, f"{traffic.algorithm}.{kind}"
    faults = [*_counts(f"{key}.memory_nbytes", traffic.memory_nbytes, (n,))]
    for name, least, most in (("num_sms", 0, _MOST), ("num_flows", 1, _MOST), ("own_nbytes", 0, _MOST_BYTES)):
        faults += _count(f"{key}.{name}", getattr(traffic, name), least, most)
    for k, phase in enumerate(traffic.phases):
        faults += _count(f"{key}.phases[{k}].num_steps", phase.num_steps, 0, _MOST)
        faults += _flows(f"{key}.phases[{k}]", phase, n)
    if faults:
        raise BadInput(faults)
    return traffic


def _flows(key: str, phase: Phase, n: int) -> Iterator[Fault]:
    shape = np.shape(phase.source)
    wrong = [
        *_counts(f"{key}.source", phase.source, shape, below=n),
        *_counts(f"{key}.destination", phase.destination, shape, below=n),
        *_counts(f"{key}.nbytes", phase.nbytes, shape),
    ]
    yield from wrong
    if not wrong and (phase.source == phase.destination).any():
        member = int(phase.source[phase.source == phase.destination][0])
        yield Fault(key=f"{key}.destination", value=member, rule="must be another member than the source")
    if phase.tree is not None:
        wrong = [*_counts(f"{key}.tree", phase.tree, shape)]
        yield from wrong
        if not wrong and len(set(zip(phase.tree.tolist(), phase.nbytes.tolist(), strict=True))) > len(set(phase.tree)):
            yield Fault(key=f"{key}.nbytes", value="unequal", rule="must be the same for all flows of one tree")


def _count(key: str, number: int, least: int, most: int) -> Iterator[Fault]:
    """One whole number that later sums can hold: a negative one would make time run backwards."""
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not whole or not least <= number <= most:
        rule = f"must be a whole number from {least} to {most}"
        yield Fault(key=key, value=number, rule=rule, nearest=min(max(number, least), most) if whole else least)


def _counts(key: str, numbers: NDArray[np.int64], shape: tuple[int, ...], below: int | None = None) -> Iterator[Fault]:
    """Whole numbers from 0, in an array of ``shape``."""
    if not isinstance(numbers, np.ndarray) or numbers.shape != shape or len(shape) != 1:
        yield Fault(key=key, value=np.shape(numbers), rule=f"must be an array of shape {shape if shape else '(n,)'}")
    elif numbers.dtype.kind not in "iu":
        yield Fault(key=key, value=str(numbers.dtype), rule="must be whole numbers", nearest="int64")
    elif len(numbers) and not 0 <= numbers.min() <= numbers.max() < (below or np.inf):
        worst = int(numbers.min()) if numbers.min() < 0 else int(numbers.max())
        rule = "must not be negative" if below is None else f"must be a position in the group, 0 to {below - 1}"
        yield Fault(key=key, value=worst, rule=rule, nearest=0 if worst < 0 or below is None else below - 1)
