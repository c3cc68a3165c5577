"""MLP-Offload: optimizer state on several kinds of drive at once, with a cache that every other step reverses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from clustersim.faults import BadInput, Fault
from clustersim.topology.drive_rates import DriveRates
from clustersim.workload.offload.casts import Cast
from clustersim.workload.offload.place import DRIVES, Drive, Place
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["MlpOffload"]


@dataclass(frozen=True, kw_only=True)
class MlpOffload(OffloadPolicy):
    """Up to two paths for the states, 16-bit gradients on the host, one rank at a time on each path.

    Parameters
    ----------
    tiers : tuple[str, ...]
        one or two of ``nvme`` and ``file_system``
    ratio : int, optional
        every so manieth subgroup, from the first, is on the second tier; None: by ``shares``
    shares : tuple[int, ...], optional
        in which proportion subgroups are on the tiers, in turn; None: by the lower of a tier's two rates on the
        cluster at hand
    cache : int
        subgroups of each tier whose state stays on the host from one step to the next: those that were updated last
    reverses : bool
        every other step goes through the subgroups backward, and so begins with what the cache holds; in one order
        forever the cache would have lost each subgroup when its turn comes, and nothing is kept
    gradients_on_host : bool
        gradients stay in ZeRO-3's flat buffer on the host in 16 bits, from which they come back to the GPU for their
        norm, and are cast right before their update; else they are cast on the GPU, written and read again
    lock : bool
        one rank of a node reads, and one writes, a tier at a time

    References
    ----------
    Maurya et al., MLP-Offload: Multi-Level, Multi-Path Offloading for LLM Pre-training to Break the GPU Memory Wall,
    2025. DataStates/DeepSpeed, branch ``dist_nvme_opt``, ``runtime/zero/stage3.py``: ``_get_opt_swapper_id`` (paths),
    ``_dist_opt_should_flush`` and ``dist_opt_seq_update`` (cache and order), ``partition_grads`` and
    ``_optimizer_states_and_gradient_swap_in`` (gradients), ``step`` (locks); ``csrc/aio/py_lib``,
    ``deepspeed_aio_thread_t::run`` (a lock around each access).
    """

    name: ClassVar[str] = "mlp-offload"
    period: ClassVar[int] = 2

    subgroup_size: int = 100_000_000
    tiers: tuple[Drive, ...] = ("nvme", "file_system")
    ratio: int | None = None
    shares: tuple[int, ...] | None = None
    cache: int = 9
    reverses: bool = True
    gradients_on_host: bool = True
    lock: bool = True
    pinned_weights: bool | None = False
    flat_buffer: bool = True
    cast: Cast = "late"
    cast_weights: Cast | None = "cpu"
    scales: bool = True
    serial: bool = True
    buffers: int = 3

    def on_drives(self, rates: Mapping[str, DriveRates]) -> MlpOffload:
        """With shares by the lower of the two rates, in MB/s, where neither they nor a ratio are given.

        Raises
        ------
        BadInput
            when the nodes have not all of ``tiers``, with what else is wrong with the settings
        """
        open_shares = self.ratio is None and not self.shares
        if lacking := [tier for tier in self.tiers if tier in DRIVES and tier not in rates]:
            rule = f"names {' and '.join(lacking)}, which the nodes of this cluster do not have"
            fault = Fault(key="plan.offload.tiers", value=self.tiers, rule=rule, nearest=next(iter(rates), None))
            split = replace(self, shares=(1,) * len(self.tiers)) if open_shares else self
            raise BadInput([fault, *split.faults()])
        if not open_shares or not all(tier in rates for tier in self.tiers):
            return self
        lower = (min(rates[tier].read, rates[tier].write) for tier in self.tiers)
        return replace(self, shares=tuple(max(1, round(rate / 1e6)) for rate in lower))

    def place(self, subgroup: Subgroup) -> Place:
        """States on the subgroup's tier."""
        tier = self._tier_of(subgroup.index)
        return Place(gradients="host" if self.gradients_on_host else tier, states=tier)

    def order(self, subgroups: Sequence[Subgroup], step: int) -> Sequence[int]:
        """Forward, then backward."""
        return range(len(subgroups))[:: -1 if self.reverses and step % 2 else 1]

    def kept(self, subgroups: Sequence[Subgroup], step: int) -> frozenset[int]:
        """The last ones of each tier."""
        if not (self.reverses and self.cache):
            return frozenset()
        order = self.order(subgroups, step)
        mine = ([index for index in order if self._tier_of(index) == tier] for tier in self.tiers)
        return frozenset(index for indices in mine for index in indices[-self.cache :])

    def _tier_of(self, index: int) -> Drive:
        if len(self.tiers) == 1:
            return self.tiers[0]
        if self.ratio is not None:
            return self.tiers[index % self.ratio == 0]
        if self.shares is None:
            raise ValueError("shares: must be given, or ratio: the rates of both tiers are not known")
        second, total = self.shares[1], sum(self.shares)
        return self.tiers[(index + 1) * second // total > index * second // total]

    def faults(self) -> Iterator[Fault]:
        """What is wrong with its settings."""
        yield from super().faults()
        key = "plan.offload."
        if not 1 <= len(self.tiers) <= 2 or set(self.tiers) - set(DRIVES) or len(set(self.tiers)) < len(self.tiers):
            rule = f"must be one or both of {', '.join(DRIVES)}"
            yield Fault(key=f"{key}tiers", value=self.tiers, rule=rule, nearest=DRIVES[0])
        elif len(self.tiers) == 2 and self.ratio is None and not self.shares:
            rule = "must be given, or ratio: the rates of both tiers are not known"
            yield Fault(key=f"{key}shares", value=None, rule=rule)
        if self.ratio is not None and self.shares:
            rule = "cannot go with plan.offload.ratio: each says which subgroups are on the second tier"
            yield Fault(key=f"{key}shares", value=self.shares, rule=rule)
        if self.ratio is not None and (type(self.ratio) is not int or self.ratio < 2):
            yield Fault(key=f"{key}ratio", value=self.ratio, rule="must be a whole number, at least 2", nearest=2)
        if self.shares and (
            len(self.shares) != len(self.tiers) or any(type(s) is not int or s < 1 for s in self.shares)
        ):
            rule = f"must be {len(self.tiers)} whole numbers, at least 1, one for each tier"
            yield Fault(key=f"{key}shares", value=self.shares, rule=rule)
        if type(self.cache) is not int or self.cache < 0:
            yield Fault(key=f"{key}cache", value=self.cache, rule="must be a whole number, at least 0", nearest=0)
        if not self.gradients_on_host and self.cast == "late":
            rule = "cannot be false with cast = late: gradients that are written are cast before they leave"
            yield Fault(key=f"{key}gradients_on_host", value=False, rule=rule, nearest=True)
