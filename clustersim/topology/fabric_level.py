"""One level of a fabric, told from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clustersim.topology.node_outline import Tie
from clustersim.topology.resources import Block

__all__ = ["Level", "shown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """One level of a fabric: nodes, or groups of switches.

    Parameters
    ----------
    name : str
        of one: ``node``, ``leaf``, ``pod``, ``core``, ``router``, ``group``, ``site``
    count : int
        how many
    parents : tuple[tuple[int, ...], ...], optional
        for the first, the second, the third and the last of them: those of the level above that it hangs on
    up : Tie, optional
        one of the links, or bundles of them, from one of them to the level above
    num_up : int
        of these
    at_most : bool
        whether some of them carry less
    peers : Tie, optional
        between two of them
    peers_within : str
        among which of them: ``"a group"``; empty for all
    num_switches : int
        switches that one group of the level stands for
    """

    name: str
    count: int
    parents: tuple[tuple[int, ...], ...] = ()
    up: Tie | None = None
    num_up: int = 1
    at_most: bool = False
    peers: Tie | None = None
    peers_within: str = ""
    num_switches: int = 1

    @property
    def drawn(self) -> tuple[int, ...]:
        """Those that ``parents`` is of."""
        return shown(self.count)

    @classmethod
    def under(
        cls,
        name: str,
        count: int,
        parents: Callable[[int], list[int]],
        up: Block,
        num_up: int = 1,
        num_switches: int = 1,
    ) -> Level:
        """A level below another.

        Parameters
        ----------
        name, count, num_up, num_switches
            as of the level
        parents : callable
            number of one of this level -> numbers of those above that it is joined to, in any order
        up : Block
            one of its links upwards
        """
        return cls(
            name=name,
            count=count,
            parents=tuple(tuple(sorted(set(parents(k)))) for k in shown(count)),
            up=Tie.of(up),
            num_up=num_up,
            num_switches=num_switches,
        )


def shown(count: int) -> tuple[int, ...]:
    """The first three and the last, as far as there are so many."""
    return tuple(sorted({*range(min(3, count)), count - 1}))
