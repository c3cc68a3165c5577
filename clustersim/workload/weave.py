"""Weaving fragments: their spans alternate, each evenly over the whole length.

A span ends before a kernel that waits for another stream, so that what one fragment waits for passes beside the span of
another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustersim.workload.program_tables import ProgramTables

__all__ = ["weave"]


def weave(fragments: Sequence[ProgramTables]) -> tuple[ProgramTables, list[list[int]]]:
    """Weave several fragments; of spans that are as far, that of the last fragment goes first.

    Returns
    -------
    ProgramTables
        each op labelled with the number of its fragment as its micro-batch
    list[list[int]]
        where the ops of each fragment stand there
    """
    apart = ProgramTables()
    offsets = []
    for which, fragment in enumerate(fragments):
        offsets.append(len(apart))
        apart.append(apart.copy_of(fragment), 0, which)
    order = sorted(
        ((2 * span + 1) / (2 * spans[-1] + 2), -which, offset + k)
        for which, (fragment, offset) in enumerate(zip(fragments, offsets, strict=True))
        for spans in [_spans(fragment)]
        for k, span in enumerate(spans)
    )
    place = np.empty(len(apart), dtype=np.int64)
    place[[k for *_, k in order]] = np.arange(len(apart))
    places = [place[offset : offset + len(of)].tolist() for offset, of in zip(offsets, fragments, strict=True)]
    return apart.in_order(place), places


def _spans(fragment: ProgramTables) -> list[int]:
    """For each op the number of its span."""
    kernels = fragment.streams.get("compute", -1)
    before, after = fragment.waits.rows().T
    stream = fragment.rows.rows()[:, 1]
    begins = np.zeros(len(fragment), dtype=bool)
    begins[after[(stream[after] == kernels) & (stream[before] != kernels)]] = True
    begins[:1] = False
    spans: list[int] = np.cumsum(begins).tolist()
    return spans
