"""Sharing: who is on which resource, and when the rates there have to be found again."""

from __future__ import annotations

from collections.abc import Iterable

from clustersim.engine.scene.signature import ONE
from clustersim.engine.sharing.activity import Activity
from clustersim.engine.sharing.filling import fill, fill_one

__all__ = ["Sharing"]


class Sharing:
    """The shared resources of a scene and the activities on them.

    Parameters
    ----------
    capacity : Iterable[int]
        of each resource [B/s]

    Attributes
    ----------
    capacity, used : list[int]
        by resource, what it can carry, with its head-room, and what is on it [load · ONE / ns]
    users : list[dict[Activity, None]]
        by resource, the activities on it
    binding : list[bool]
        by resource, whether it holds some of them below their own speed
    changed : set[int]
        resources to look at when the instant is settled
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
                    fill_one(self, start, activities, rates)
                else:
                    fill(self, resources, activities, rates)

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


def _room(capacity: int) -> int:
    """Capacity [B/s] in load · ONE a nanosecond, with 2^-40 of head-room for the rounding up of rates."""
    exact = -(-capacity * ONE // 1_000_000_000)
    return exact + (exact >> 40)
