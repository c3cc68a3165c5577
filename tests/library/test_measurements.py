"""Measurements that come with the library."""

from __future__ import annotations

import csv

import pytest

from clustersim.library.measurements import measurement_files
from clustersim.study.validate import input_faults

FILES = measurement_files()


def test_they_are_what_validate_takes() -> None:
    assert [path.stem for path in FILES] == [
        "e2e_training",
        "e2e_vtrain_single_node",
        "memory_footprint",
        "collectives",
        "kernels",
    ]
    assert [fault for path in FILES for fault in input_faults(path)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_row_says_where_it_is_from(path) -> None:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["source"]
        assert row["url_or_repo_path"]
        assert row["how_obtained"] in ("read", "memory")
        assert row["confidence"] in ("high", "medium", "low")


def test_sources_without_a_licence_are_left_out() -> None:
    assert not any("coreweave" in path.read_text().lower() for path in FILES)


def test_the_page_beside_them_counts_them() -> None:
    page = (FILES[0].parent / "README.md").read_text()
    for path in FILES:
        with path.open(newline="") as file:
            count = sum(1 for _ in csv.DictReader(file))
        assert f"| `{path.name}` | {count:,} |" in page
