"""Sharing: weighted max-min rates for everything that has a capacity and several users.

Maximise in the max-min sense x_i / φ_i subject to Σ_i a_ij · x_i ≤ c_j and 0 ≤ x_i ≤ cap_i, by progressive filling:
raise one level for all, and freeze an activity when it reaches its own speed or when a resource it uses is full
(Bertsekas and Gallager, *Data Networks*, 2nd ed., 1992, section 6.5.2). All arithmetic is on whole numbers, so a class
of k equal activities is exactly k activities.
"""

from __future__ import annotations

from collections.abc import Iterable

from clustersim.engine.activity import Activity
from clustersim.engine.scene import ONE, WEIGHT_SHIFT

__all__ = ["Sharing"]


class Sharing:
    """The shared resources of a scene and the activities on them.

    Parameters
    ----------
    capacity : Iterable[int]
        of each resource [B/s]
    """

    __slots__ = ("binding", "capacity", "changed", "used", "users")

    def __init__(self, capacity: Iterable[int]) -> None:
        self.capacity = [_room(c) for c in capacity]
        self.used = [0] * len(self.capacity)
        self.users: list[dict[Activity, None]] = [{} for _ in self.capacity]
        self.binding = [False] * len(self.capacity)
        self.changed: set[int] = set()

    def set_capacity(self, resource: int, capacity: int) -> None:
        """Change a capacity [B/s]; rates follow at the next :meth:`settle`."""
        self.capacity[resource] = _room(capacity)
        self.changed.add(resource)

    def add(self, activity: Activity) -> None:
        """Put an activity on its resources at its own speed; :meth:`settle` says whether that holds."""
        rate = activity.rate
        for resource, load, _ in activity.demands:
            used = self.used[resource] = self.used[resource] + load * rate
            self.users[resource][activity] = None
            if used > self.capacity[resource] or self.binding[resource]:
                self.changed.add(resource)

    def look_at(self, activity: Activity) -> None:
        """Have :meth:`settle` solve again for all that an activity uses."""
        for resource, _, _ in activity.demands:
            self.changed.add(resource)
            self.binding[resource] = True

    def remove(self, activity: Activity) -> None:
        """Take an activity off its resources."""
        rate = activity.rate
        for resource, load, _ in activity.demands:
            self.used[resource] -= load * rate
            del self.users[resource][activity]
            if self.binding[resource]:
                self.changed.add(resource)

    def recap(self, activity: Activity, cap: int, rates: dict[Activity, int]) -> None:
        """Change an activity's own speed; ``rates`` takes its new rate unless :meth:`settle` has to find it."""
        demands = activity.demands
        alone = activity.rate == activity.cap
        activity.cap = cap
        more = cap - activity.rate
        for resource, load, _ in demands:
            if self.binding[resource] or self.used[resource] + load * more > self.capacity[resource]:
                alone = False
        if alone:
            for resource, load, _ in demands:
                self.used[resource] += load * more
            rates[activity] = cap
            return
        self.look_at(activity)  # it may go faster or slower

    def settle(self, rates: dict[Activity, int]) -> None:
        """Find the rates after all changes of an instant.

        A resource that had room and still has it at everybody's present rate changes nothing (the fast path); around
        any other the connected component is solved again.

        Parameters
        ----------
        rates : dict[Activity, int]
            activity -> new rate, for those whose rate changes; what is found here replaces what it held
        """
        touched = [r for r in self.changed if self.binding[r] or self.used[r] > self.capacity[r]]
        self.changed.clear()
        seen: set[int] = set()
        for start in touched:
            if start not in seen:
                resources, activities = self._component(start, seen)
                if len(resources) == 1:
                    self._fill_one(start, activities, rates)
                else:
                    self._fill(resources, activities, rates)

    def _component(self, start: int, seen: set[int]) -> tuple[list[int], dict[Activity, None]]:
        resources = [start]
        activities: dict[Activity, None] = {}
        seen.add(start)
        for resource in resources:  # grows while it is walked
            for activity in self.users[resource]:
                if activity not in activities:
                    activities[activity] = None
                    for other, _, _ in activity.demands:
                        if other not in seen:
                            seen.add(other)
                            resources.append(other)
        return resources, activities

    def _fill_one(self, resource: int, activities: dict[Activity, None], rates: dict[Activity, int]) -> None:
        """:meth:`_fill` for one resource, in one pass; the same whole numbers.

        Freezing an activity whose top is at most the level never lowers the level: its weight is rounded up, so it
        leaves at least level · (weight of the others) of the room.
        """
        room, total = self.capacity[resource], 0
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
        self.binding[resource] = binding
        self.used[resource] = self.capacity[resource] - room

    def _fill(self, resources: list[int], activities: dict[Activity, None], rates: dict[Activity, int]) -> None:
        room = {r: self.capacity[r] for r in resources}
        weights = dict.fromkeys(resources, 0)
        binding = self.binding
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
                    for a in self.users[r]:
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
        used = self.used
        for r in resources:
            used[r] = self.capacity[r] - room[r]


def _first_two(item: tuple[int, int, Activity]) -> tuple[int, int]:
    return item[0], item[1]


def _room(capacity: int) -> int:
    """Capacity [B/s] in load · ONE a nanosecond, with 2^-40 of head-room for the rounding up of rates."""
    exact = -(-capacity * ONE // 1_000_000_000)
    return exact + (exact >> 40)
