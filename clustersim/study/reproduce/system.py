"""A published system: its paper and the quantities that a simulation is held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from clustersim.study.reproduce.runs import Runs

__all__ = ["NOT_YET", "Grade", "Quantity", "Relation", "System"]

Grade = Literal["S", "M-high", "M-med", "M-low", "D"]
"""Where a published number is from: S, read from the source; M, recalled from it, with how sure that is; D, arithmetic
on such numbers."""

Relation = Literal["=", "<", ">"]
"""How the simulated number must stand to the published one."""

NOT_YET = "not simulated yet"

_REPORTED_ONLY = ("M-med", "M-low")


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """One published number of a system.

    Parameters
    ----------
    name : str
        what it is and of which set-up, up to some 60 characters
    published : float
        in ``unit``
    unit : str
        ``s``, ``TFLOP/s``, ``x`` (a ratio), ``%``; or empty
    relation : str
        ``=``, within ``tolerance``; ``<`` or ``>``, where a source publishes an order and no number
    grade : str
        see :data:`Grade`
    tolerance : float, optional
        most that :meth:`error` may be; None where the number is reported and not held against anything, as always with
        the grades M-med and M-low
    job : str
        the job card that it is simulated with; empty where cards of a job cannot say it
    simulated : callable, optional
        the number from runs, in ``unit``; a function of a module, so that processes can be given it. None: not
        simulated, for ``reason``
    reason : str
        why it is off by more than the tolerance, or not simulated, or not held; empty where it is within

    Raises
    ------
    ValueError
        when a grade that is only reported has a tolerance, an order has one, or what is not simulated has no reason
    """

    name: str
    published: float
    unit: str = ""
    relation: Relation = "="
    grade: Grade
    tolerance: float | None = None
    job: str = ""
    simulated: Callable[[Runs], float] | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.grade not in get_args(Grade) or self.relation not in get_args(Relation):
            raise ValueError(f"grade or relation of {self.name!r}: {self.grade!r}, {self.relation!r} are not known")
        if self.tolerance is not None and (self.grade in _REPORTED_ONLY or self.relation != "="):
            raise ValueError(f"tolerance of {self.name!r}: a {self.relation} of grade {self.grade} has none")
        if self.simulated is None and not self.reason:
            raise ValueError(f"reason of {self.name!r}: must say why it is not simulated")

    @property
    def held(self) -> bool:
        """Whether a simulated number must be within something."""
        if self.simulated is None or self.grade in _REPORTED_ONLY:
            return False
        return self.relation != "=" or self.tolerance is not None

    def error(self, simulated: float) -> float | None:
        """simulated / published - 1; of percentages their difference, 0.01 a point; None of an order."""
        if self.relation != "=":
            return None
        return (simulated - self.published) / 100 if self.unit == "%" else simulated / self.published - 1

    def within(self, simulated: float) -> bool | None:
        """Whether a number is where it must be; None where nothing is held."""
        if not self.held:
            return None
        error = self.error(simulated)
        if error is not None and self.tolerance is not None:
            return abs(error) <= self.tolerance
        return simulated < self.published if self.relation == "<" else simulated > self.published


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """A published system or study.

    Parameters
    ----------
    number : str
        ``1`` to ``20``; baselines ``B1`` to ``B5``
    name : str
        short, for the command line
    paper : str
        its title
    year : int
        of the version cited; 0 where the paper is not known
    arxiv : str
        number there; empty where there is none
    quantities : tuple[Quantity, ...]
        empty: :data:`NOT_YET`
    slow : bool
        more than ten seconds of processor time
    """

    number: str
    name: str
    paper: str
    year: int
    arxiv: str
    quantities: tuple[Quantity, ...] = ()
    slow: bool = False
