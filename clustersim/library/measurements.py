"""Published measurements that come with the library."""

from __future__ import annotations

from pathlib import Path

from clustersim.library.card import library_folder

__all__ = ["measurement_files"]

_ORDER = ("e2e_training", "e2e_vtrain_single_node", "memory_footprint", "collectives", "kernels")


def measurement_files() -> tuple[Path, ...]:
    """CSV files of measured steps, memory, collectives and kernels, as :func:`clustersim.validate` takes them.

    Their columns, sources and licences stand in the ``README.md`` beside them.
    """
    folder = library_folder() / "workloads" / "measurements"
    return tuple(folder / f"{name}.csv" for name in _ORDER)
