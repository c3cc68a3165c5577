"""Collectives as a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from clustersim.faults import BadInput
from clustersim.trace.collectives import COLLECTIVE_COLUMNS, CollectiveRecord, collectives_frame, read

ONE = CollectiveRecord(
    job=0,
    axis="tp",
    family="tp",
    kind="all_reduce",
    nbytes=64,
    num_groups=2,
    num_members=8,
    num_nodes=1,
    algorithm="ring",
    protocol="LL",
    num_channels=24,
    alone_ns=2_000,
    latency_ns=500,
    busiest_link="node0/gpu0/nvlink.up",
    busiest_link_nbytes=112,
    num_per_step=10,
    slowest_group="tp/tp/1",
    reason="pinned",
)


def test_rows_are_the_records_the_longest_of_a_step_first() -> None:
    often, other = replace(ONE, nbytes=32, alone_ns=300, num_per_step=100), replace(ONE, job=1)
    table = collectives_frame([other, ONE, often], ["train", "train (2)"])
    assert tuple(table.columns) == COLLECTIVE_COLUMNS
    assert table["run"].tolist() == ["train", "train", "train (2)"]
    assert table["nbytes"].tolist() == [32, 64, 64]
    assert table.loc[1, ["alone_s", "latency_s"]].tolist() == [2e-6, 5e-7]
    same = [name for name in COLLECTIVE_COLUMNS if name not in ("run", "alone_s", "latency_s")]
    assert table.loc[1, same].tolist() == [getattr(ONE, name) for name in same]


def test_no_collective_is_an_empty_table_of_the_same_types() -> None:
    none, one = collectives_frame([], []), collectives_frame([ONE], ["train"])
    assert none.empty
    assert none.dtypes.equals(one.dtypes)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "collectives.parquet"
    table = collectives_frame([ONE], ["train"])
    table.to_parquet(path, index=False)
    pd.testing.assert_frame_equal(read(path), table)


def test_what_is_no_such_table(tmp_path: Path) -> None:
    path = tmp_path / "collectives.parquet"
    with pytest.raises(BadInput, match=r"collectives\.parquet"):
        read(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(BadInput, match="Parquet"):
        read(path)
    collectives_frame([ONE], ["train"]).drop(columns="reason").to_parquet(path, index=False)
    with pytest.raises(BadInput, match="reason"):
        read(path)
