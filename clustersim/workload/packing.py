"""Packing: which documents each micro-batch of each replica has."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.case import Case
from clustersim.workload.documents import Documents, documents
from clustersim.workload.mask import Mask
from clustersim.workload.shard import Shard
from clustersim.workload.variants import Difference

__all__ = ["Packing"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Packing:
    """The sequences of a step as replicas take them.

    Parameters
    ----------
    documents : Documents, optional
        None: each sequence is one
    case : Case
        legal
    """

    documents: Documents | None
    case: Case

    @classmethod
    def of(cls, case: Case) -> Packing:
        """The packing that a legal case asks for."""
        packed = documents(case.seq_lens, num_sequences=case.global_batch, seq_len=case.seq_len, seed=case.seq_seed)
        return cls(documents=packed, case=case)

    def by_replica(self, of_rank: NDArray[np.int64]) -> Difference:
        """How replicas differ.

        Parameters
        ----------
        of_rank : NDArray[int64], shape (num_ranks,)
            replica of each rank
        """
        if self.documents is None:
            return Difference(axis="dp", fields=({},), of_rank=of_rank)
        fields = [{"documents": self._of(replica, 0)} for replica in range(self.case.replicas)]
        return Difference(axis="dp", fields=fields, of_rank=of_rank)

    def shards(self, shard: Shard, *, replica: int) -> tuple[Shard, ...]:
        """A shard for each micro-batch of a replica, or one that stands for all."""
        if self.documents is None:
            return (shard,)
        return tuple(
            replace(shard, documents=self._of(replica, number)) for number in range(self.case.num_micro_batches)
        )

    def masks(self, shard: Shard) -> tuple[Mask, ...]:
        """Of every sequence of the step, in every layer; equal ones once."""
        model = shard.model
        windows = {model.window_at(layer) for layer in range(model.num_layers)}
        sequences = {(self.case.seq_len,)} if self.documents is None else set(self.documents.sequences)
        return tuple(Mask(documents=d, causal=model.causal, window=w) for d in sequences for w in windows)

    def _of(self, replica: int, micro_batch: int) -> tuple[tuple[int, ...], ...]:
        if self.documents is None:
            return ((self.case.seq_len,),) * self.case.micro_batch
        return self.documents.of(
            replica=replica, replicas=self.case.replicas, micro_batch=micro_batch, size=self.case.micro_batch
        )
