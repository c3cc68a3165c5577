"""Documents: how long they are, and how they are packed into sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clustersim.workload.document_lengths import Lengths, SeqLens

__all__ = ["Documents", "documents"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Documents:
    """Documents of the sequences of one step.

    Parameters
    ----------
    sequences : tuple[tuple[int, ...], ...]
        tokens of each document, by sequence
    """

    sequences: tuple[tuple[int, ...], ...]

    def of(self, *, replica: int, replicas: int, micro_batch: int, size: int) -> tuple[tuple[int, ...], ...]:
        """Documents of a micro-batch: replicas take turns, each with as many sequences as a micro-batch has.

        Parameters
        ----------
        replica, replicas : int
            which of how many
        micro_batch, size : int
            which of the replica's, and its sequences

        References
        ----------
        Megatron-LM, ``data/data_samplers.py``, MegatronPretrainingSampler.
        """
        first = (micro_batch * replicas + replica) * size
        return self.sequences[first : first + size]


def documents(seq_lens: SeqLens, *, num_sequences: int, seq_len: int, seed: int = 0) -> Documents | None:
    """Pack documents into sequences; None where each sequence is one.

    Documents follow one another and are cut where a sequence is full, the rest opening the next one; no token is
    padding. Lengths that are given start over when they have run out.

    Parameters
    ----------
    seq_lens : str or Sequence[int]
        ``fixed``, or as :class:`clustersim.workload.document_lengths.Lengths` takes it
    num_sequences : int
        of a step
    seq_len : int
        tokens of each
    seed : int
        of the drawing

    Raises
    ------
    BadInput
        as :class:`clustersim.workload.document_lengths.Lengths` does

    References
    ----------
    Megatron-LM, ``data/gpt_dataset.py``: documents in a row, cut into samples; ``--reset-attention-mask``.
    """
    if seq_lens == "fixed":
        return None
    lengths = iter(Lengths(seq_lens, seed=seed))
    return Documents(sequences=tuple(_pack(lengths, num_sequences, seq_len)))


def _pack(lengths: Iterator[int], num_sequences: int, seq_len: int) -> Iterator[tuple[int, ...]]:
    left = 0
    for _ in range(num_sequences):
        room, packed = seq_len, []
        while room:
            left = left or next(lengths)
            packed.append(min(left, room))
            room -= packed[-1]
            left -= packed[-1]
        yield tuple(packed)
