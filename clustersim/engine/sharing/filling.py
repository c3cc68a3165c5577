"""Progressive filling: raise one level for all, and freeze whoever reaches its own speed or a full resource.

Maximise in the max-min sense x_i / φ_i subject to Σ_i a_ij · x_i ≤ c_j and 0 ≤ x_i ≤ cap_i (Bertsekas and Gallager,
*Data Networks*, 2nd ed., 1992, section 6.5.2). All arithmetic is on whole numbers, so a class of k equal activities is
exactly k activities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustersim.engine.scene.signature import WEIGHT_SHIFT
from clustersim.engine.sharing.activity import Activity

if TYPE_CHECKING:
    from clustersim.engine.sharing.sharing import Sharing

__all__ = ["fill", "fill_one"]


def fill(sharing: Sharing, resources: list[int], activities: dict[Activity, None], rates: dict[Activity, int]) -> None:
    """Rates of connected activities on several resources.

    Parameters
    ----------
    sharing : Sharing
        takes how much is used of each resource, and whether it is full
    resources : list[int]
    activities : dict[Activity, None]
        all that use them
    rates : dict[Activity, int]
        takes the rates that change
    """
    room = {r: sharing.capacity[r] for r in resources}
    weights = dict.fromkeys(resources, 0)
    binding = sharing.binding
    for r in resources:
        binding[r] = False
    for a in activities:
        for r, _, w in a.demands:
            weights[r] += w
    # level at which each activity reaches its own speed
    tops = sorted(
        ((-(-a.cap * a.signature.peak_load // a.signature.num_flows), k, a) for k, a in enumerate(activities)),
        key=_first_two,
    )
    frozen: set[Activity] = set()
    next_top = 0
    while len(frozen) < len(activities):
        levels = {r: (room[r] << WEIGHT_SHIFT) // w for r, w in weights.items() if w > 0}
        level = min(levels.values())
        freeze = []
        while next_top < len(tops) and tops[next_top][0] <= level:
            if tops[next_top][2] not in frozen:
                freeze.append((tops[next_top][2], tops[next_top][2].cap, -1))
            next_top += 1
        if not freeze:
            full = sorted(r for r, of in levels.items() if of == level)
            for r in full:
                binding[r] = True
                for a in sharing.users[r]:
                    if a not in frozen:
                        frozen.add(a)
                        freeze.append((a, max(1, level * a.signature.num_flows // a.signature.peak_load), r))
        for a, rate, limit in freeze:
            frozen.add(a)
            a.limit = limit
            for r, load, w in a.demands:
                room[r] -= load * rate
                weights[r] -= w
            if rate != a.rate:
                rates[a] = rate
            else:
                rates.pop(a, None)
    used = sharing.used
    for r in resources:
        used[r] = sharing.capacity[r] - room[r]


def fill_one(sharing: Sharing, resource: int, activities: dict[Activity, None], rates: dict[Activity, int]) -> None:
    """:func:`fill` for one resource, in one pass; the same whole numbers.

    Freezing an activity whose top is at most the level never lowers the level: its weight is rounded up, so it
    leaves at least level · (weight of the others) of the room.
    """
    room, total = sharing.capacity[resource], 0
    entries: list[tuple[int, int, Activity]] = []
    for a in activities:
        for _, _, w in a.demands:
            total += w
        entries.append((-(-a.cap * a.signature.peak_load // a.signature.num_flows), len(entries), a))
    entries.sort(key=_first_two)
    level, binding = -1, False
    for top, _, a in entries:
        if not binding:
            level = (room << WEIGHT_SHIFT) // total
            binding = top > level
        if binding:
            rate = max(1, level * a.signature.num_flows // a.signature.peak_load)
            a.limit = resource
        else:
            rate = a.cap
            a.limit = -1
        for _, load, w in a.demands:
            room -= load * rate
            if not binding:
                total -= w
        if rate != a.rate:
            rates[a] = rate
        else:
            rates.pop(a, None)
    sharing.binding[resource] = binding
    sharing.used[resource] = sharing.capacity[resource] - room


def _first_two(item: tuple[int, int, Activity]) -> tuple[int, int]:
    return item[0], item[1]
