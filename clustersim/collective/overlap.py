"""What collectives take from the kernels beside them, to be calibrated or switched off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from clustersim.collective.traffic import Traffic
from clustersim.faults import BadInput, Fault, nearest_name

__all__ = ["Overlap"]

_MOST = 100.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """Factors on what a collective takes from its members' GPUs while it runs.

    A collective that holds k of n SMs makes the SM-bound part of a kernel beside it last c k / (n - k) longer, c being
    the crowding of the GPU's card, and the bytes that it reads and writes in HBM compete with those of kernels. k and
    the bytes are the algorithm's; what real kernels lose besides or do not lose is calibrated here, from kernels timed
    alone and beside a collective. Lee et al., "Characterizing compute-communication overlap in GPU-accelerated
    distributed deep learning", arXiv 2507.03114 (2025), measured compute 18.9 % slower on average and 40 % at most.

    Parameters
    ----------
    sm : float
        on the SMs taken, from 0 to 100; 0 leaves all of them to kernels. The product is rounded to whole SMs; one stays
        free
    hbm : float
        on the bytes read and written in HBM, from 0 to 100; 0 leaves all bandwidth to kernels. A collective whose
        busiest resource is HBM changes with it even when it is alone; between GPUs that is the links, by far

    Raises
    ------
    ValueError
        when a factor is out of range
    """

    sm: float = 1.0
    hbm: float = 1.0

    def __post_init__(self) -> None:
        for name in ("sm", "hbm"):
            if not 0 <= getattr(self, name) <= _MOST:
                raise ValueError(f"{name}: {getattr(self, name)} must be a factor from 0 to {_MOST:g}")

    @classmethod
    def parse(cls, given: Mapping[str, float]) -> Overlap:
        """From a mapping as ``--set overlap.*`` gives it.

        Parameters
        ----------
        given : Mapping[str, float]
            field -> factor

        Raises
        ------
        BadInput
            with every name that is neither field, and every factor that is out of range
        """
        faults = []
        for key, factor in given.items():
            if key not in cls.__dataclass_fields__:
                nearest = nearest_name(key, cls.__dataclass_fields__)
                faults.append(Fault(key=f"overlap.{key}", value=factor, rule="is neither sm nor hbm", nearest=nearest))
            elif isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 <= factor <= _MOST:
                rule = f"must be a factor from 0 to {_MOST:g}"
                faults.append(Fault(key=f"overlap.{key}", value=factor, rule=rule, nearest=1.0))
        if faults:
            raise BadInput(faults)
        return cls(**given)

    def of(self, traffic: Traffic) -> Traffic:
        """``traffic`` with the factors applied; its flows are left as they are."""
        if self == Overlap():
            return traffic
        nbytes = np.rint(traffic.memory_nbytes * self.hbm).astype(np.int64)
        return replace(traffic, num_sms=round(traffic.num_sms * self.sm), memory_nbytes=nbytes)
