"""The settings of checkpoints: fields of the strategies, each with its meaning."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.library.keys.key import Key
from clustersim.library.values import Bytes, Flag, Name, Whole, Word
from clustersim.workload.checkpoint import STRATEGIES
from clustersim.workload.checkpoint.policy import TARGETS

__all__ = ["CHECKPOINT_KEYS"]

_OWN = "the strategy's own"

CHECKPOINT_KEYS: Mapping[str, Key] = {
    "plan.checkpoint.policy": Key(
        Name(f"{', '.join(STRATEGIES)}, or a class as my_package.module:Strategy"),
        "how weights and optimizer state are saved, and what waits for it",
        otherwise="nothing is saved",
    ),
    **{
        f"plan.checkpoint.{name}": Key(value, meaning, otherwise=_OWN, unit=unit)
        for name, value, meaning, unit in (
            ("every", Whole(1, 10**4), "steps from one save to the next", ""),
            ("tier", Word(TARGETS), "where to", ""),
            ("chunk_bytes", Bytes(), "at most so much is copied, and written, at a time", "B"),
            ("pool_bytes", Bytes(), "of a rank's buffer on the host that copies go through", "B"),
            ("files", Whole(1, 2**16), "of a rank, written beside each other in the background", ""),
            ("pinned", Flag(), "host memory that copies go to is page-locked", ""),
            ("serialises", Flag(), "one thread passes over all bytes before they are written", ""),
            ("metadata_bytes", Whole(0, 2**40), "of Python objects, pickled beside the copies", "B"),
            ("keeps", Whole(1, 10**4), "versions held at a time, the one being written included", ""),
        )
    },
}
"""By dotted name; a strategy that has no such field refuses it."""
