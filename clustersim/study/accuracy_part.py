"""The part of the measurements that is quick to predict: a fixed choice by the place of a row in its file."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from clustersim.readers import csv_records

__all__ = ["part_ids", "write_part"]

_EVERY = {"e2e_training": 10, "e2e_vtrain_single_node": 12, "memory_footprint": 3}
"""File -> every how many rows of a family belong to the part; all of others, which cost little."""


def part_ids(path: Path) -> frozenset[str]:
    """Ids of the rows that belong to the part: of each family, or source, the first and every so many after it.

    Interleaved schedules under tensor parallelism are left out: their products and collectives in parts make a job of
    them cost as much as all the rest.
    """
    every = _EVERY.get(path.stem, 1)
    families: dict[str, list[str]] = {}
    for _, given in csv_records.records(path)[1]:
        if _degree(given, "vpp") > 1 and _degree(given, "tp") > 1:
            continue
        families.setdefault(given.get("family") or given["source"], []).append(given["id"])
    return frozenset(name for names in families.values() for name in names[::every])


def _degree(given: Mapping[str, str], name: str) -> int:
    return int(float(given.get(name) or 1))


def write_part(path: Path, folder: Path) -> Path:
    """A file of the same name, in ``folder``, with the rows of the part."""
    names, found = csv_records.records(path)
    ids = part_ids(path)
    with (folder / path.name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(given for _, given in found if given["id"] in ids)
    return folder / path.name
