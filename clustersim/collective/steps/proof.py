"""Proof that a schedule does what its kind promises, by playing it with sets of contributions instead of numbers."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from clustersim.collective.steps.schedule import Schedule

__all__ = ["moved", "prove"]


def prove(schedule: Schedule) -> None:
    """Raise :class:`AssertionError` that says what is wrong unless the schedule is right.

    1. What members hold before and want after is what the kind says.
    2. Played in its order, every member ends with every chunk that it wants, made of the contribution of each member
       that held it before, each exactly once; and no member sends what it does not have.
    3. No other order that the transfers' waits allow could give another result: of two transfers that touch the same
       chunk of the same member, one waits for the other, by however many transfers between, unless both only read it
       or both add to it.

    Parameters
    ----------
    schedule : Schedule
    """
    _promise(schedule)
    _play(schedule)
    _no_races(schedule)


def moved(schedule: Schedule) -> Counter[tuple[int, int]]:
    """Bytes from each member to each other, over all transfers [B]."""
    total: Counter[tuple[int, int]] = Counter()
    for transfer, nbytes in zip(schedule.transfers, schedule.nbytes().tolist(), strict=True):
        total[transfer.source, transfer.destination] += nbytes
    return total


def _promise(schedule: Schedule) -> None:
    held, wanted, n = schedule.held, schedule.wanted, schedule.num_members
    root = np.arange(n) == 0
    by_one = {"all_gather": held, "all_to_all": held, "gather": held, "reduce_scatter": wanted, "scatter": wanted}
    by_one_too = {"all_to_all": wanted}
    for of in (by_one, by_one_too):
        if schedule.kind in of:
            _say((of[schedule.kind].sum(axis=0) == 1).all(), "a chunk belongs to several members or none")
            own = of[schedule.kind] @ schedule.chunk_nbytes
            spread = int(own.max() - own.min())
            _say(spread <= len(schedule.chunk_nbytes), f"members' shares differ by {spread} B")
    everybody_holds = schedule.kind in ("all_reduce", "reduce_scatter", "reduce")
    everybody_wants = schedule.kind in ("all_reduce", "all_gather", "broadcast")
    if everybody_holds:
        _say(bool(held.all()), "a member does not contribute to a chunk")
    if everybody_wants:
        _say(bool(wanted.all()), "a member does not want a chunk")
    if schedule.kind in ("broadcast", "scatter"):
        _say(bool((held == root[:, None]).all()), "only the root holds something before")
    if schedule.kind in ("reduce", "gather"):
        _say(bool((wanted == root[:, None]).all()), "only the root wants something")


def _play(schedule: Schedule) -> None:
    has = [[Counter({i: 1}) if own else Counter() for own in row] for i, row in enumerate(schedule.held.tolist())]
    for number, t in enumerate(schedule.transfers):
        for chunk in t.chunks:
            sent = has[t.source][chunk]
            _say(bool(sent), f"transfer {number}: member {t.source} sends chunk {chunk} without having it")
            has[t.destination][chunk] = has[t.destination][chunk] + sent if t.adds else sent.copy()
    everyone = [Counter(np.flatnonzero(column).tolist()) for column in schedule.held.T]
    for member, chunk in np.argwhere(schedule.wanted).tolist():
        got = has[member][chunk]
        _say(got == everyone[chunk], f"member {member} ends with {dict(got)} of chunk {chunk}")


def _no_races(schedule: Schedule) -> None:
    before: list[int] = []  # by transfer: those that it waits for, as bits
    touched: defaultdict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for number, t in enumerate(schedule.transfers):
        _say(all(b < number for b in t.after), f"transfer {number} waits for a later one")
        bits = 0
        for b in t.after:
            bits |= before[b] | 1 << b
        before.append(bits)
        for chunk in t.chunks:
            for place, what in (((t.source, chunk), "read"), ((t.destination, chunk), "add" if t.adds else "copy")):
                for other, did in touched[place]:
                    harmless = did == what != "copy"
                    _say(harmless or bool(bits >> other & 1), f"transfers {other} and {number} race for {place}")
                touched[place].append((number, what))


def _say(right: bool | np.bool_, what: str) -> None:
    if not right:
        raise AssertionError(what)
