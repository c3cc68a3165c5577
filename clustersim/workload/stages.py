"""Which layers stand on which virtual stage."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

__all__ = ["Chunk", "describe", "split"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """The layers of one virtual stage.

    Parameters
    ----------
    first_layer, num_layers : int
        consecutive layers; there may be none beside the embedding or the head
    has_embedding, has_head : bool
        first and last virtual stage
    """

    first_layer: int
    num_layers: int
    has_embedding: bool = False
    has_head: bool = False


def split(num_layers: int, num_virtual_stages: int, *, num_mtp: int = 0) -> tuple[Chunk, ...]:
    """Layers over virtual stages, as evenly as possible.

    When they divide evenly each stage has the same number. Otherwise embedding and head count one layer each, as in
    Llama 3 405B (126 layers on 16 stages: 7, then 14 times 8, then 7). What is left over goes to late stages,
    which hold the activations of fewer micro-batches, but to the one with the head last.

    Parameters
    ----------
    num_layers : int
    num_virtual_stages : int
        stages times chunks a stage
    num_mtp : int
        modules that predict further tokens, which stand with the head and count one layer each

    Returns
    -------
    tuple[Chunk, ...]
        in order of virtual stage

    Raises
    ------
    ValueError
        when a stage would stay empty: fewer than ``num_virtual_stages`` - 2 layers

    References
    ----------
    Grattafiori et al., The Llama 3 Herd of Models, 2024, section 3.3.2 (balance of stages).
    """
    n = num_virtual_stages
    if num_layers + 2 < n:
        raise ValueError(f"num_virtual_stages: {n} must be at most {num_layers + 2} for {num_layers} layers")
    if num_layers % n == 0 and not num_mtp:
        counts = [num_layers // n] * n
    else:
        even, left_over = divmod(num_layers + 2 + num_mtp, n)
        counts = [even] * n
        for stage in [*range(n - 2, -1, -1), n - 1][:left_over]:
            counts[stage] += 1
        counts[0] -= 1
        counts[-1] -= 1 + num_mtp
        for _ in range(-counts[-1]):  # the head and its modules alone are more than a stage's share
            counts[-1] += 1
            counts[counts.index(max(counts))] -= 1
    return tuple(
        Chunk(
            first_layer=sum(counts[:stage]),
            num_layers=count,
            has_embedding=stage == 0,
            has_head=stage == n - 1,
        )
        for stage, count in enumerate(counts)
    )


def describe(chunks: tuple[Chunk, ...]) -> str:
    """The split in one line: ``7, 14 x 8, 7``."""
    runs = [(len(list(run)), count) for count, run in groupby(c.num_layers for c in chunks)]
    return ", ".join(str(count) if n == 1 else f"{n} x {count}" for n, count in runs)
