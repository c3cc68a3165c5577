"""Variants: shards of ranks that are on the same stage and yet do different work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.shard import Shard

__all__ = ["Difference", "Variants", "variants"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Difference:
    """What differs along one axis of the ranks.

    Parameters
    ----------
    axis : str
    fields : Sequence[Mapping[str, Any]]
        of the shard, at each place on the axis; a single one where all places are alike
    of_rank : NDArray[int64], shape (num_ranks,)
        place of each rank
    """

    axis: str
    fields: Sequence[Mapping[str, Any]]
    of_rank: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Variants:
    """What the ranks of a stage do.

    Parameters
    ----------
    shards : tuple[Shard, ...]
    places : tuple[Mapping[str, int], ...]
        of each, by axis; empty where there is one
    of_rank : NDArray[int64], shape (num_ranks,)
        index into ``shards``
    """

    shards: tuple[Shard, ...]
    places: tuple[Mapping[str, int], ...]
    of_rank: NDArray[np.int64]


def variants(shard: Shard, differences: Sequence[Difference]) -> Variants:
    """Shards of all combinations of places that some rank has.

    Parameters
    ----------
    shard : Shard
        whose fields are replaced
    differences : Sequence[Difference]
        at least one
    """
    several = [d for d in differences if len(d.fields) > 1]
    for difference in differences:
        shard = replace(shard, **difference.fields[0])
    if not several:
        return Variants(shards=(shard,), places=({},), of_rank=np.zeros_like(differences[0].of_rank))
    rows, of_rank = np.unique(np.stack([d.of_rank for d in several], axis=1), axis=0, return_inverse=True)
    shards, places = [], []
    for row in rows.tolist():
        fields: dict[str, Any] = {}
        for difference, place in zip(several, row, strict=True):
            fields |= difference.fields[place]
        shards.append(replace(shard, **fields))
        places.append({d.axis: place for d, place in zip(several, row, strict=True)})
    return Variants(shards=tuple(shards), places=tuple(places), of_rank=of_rank.reshape(-1).astype(np.int64))
