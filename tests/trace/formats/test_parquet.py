"""A trace survives the disk."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clustersim.faults import BadInput
from clustersim.trace.formats import parquet
from clustersim.trace.frame import frame


@pytest.fixture
def trace(scene):
    lane = scene.lane(rank=5, multiplicity=3)
    lane.add(scene.compute(), (0, 0, 10), (20, 21, 30), phase="forward", micro_batch=1)
    lane.add(scene.collective("tp"), (10, 12, 20), (30, 30, 44), stream="tp", cause=(0, 0))
    lane.add(scene.host(), (20, 20, 40), (44, 44, -1), stream="host")
    return frame(scene.record("interrupted"))


def test_round_trip_is_identical(trace, tmp_path):
    path = parquet.write(trace, tmp_path / "trace.parquet")
    again = parquet.read(path)
    pd.testing.assert_frame_equal(again, trace)
    assert again.attrs == trace.attrs == {"unfinished": 1, "not_started": 0}
    assert again.index.name == "label"


def test_a_selection_keeps_its_labels_and_categories(trace, tmp_path):
    part = trace[trace["category"] == "communication"]
    again = parquet.read(parquet.write(part, tmp_path / "part.parquet"))
    pd.testing.assert_frame_equal(again, part)
    assert list(again.index) == [1, 4]


def test_other_tools_see_plain_columns(trace, tmp_path):
    schema = pq.read_schema(parquet.write(trace, tmp_path / "trace.parquet"))
    assert schema.field("start_ns").type == pa.int64()
    assert pa.types.is_dictionary(schema.field("name").type)
    assert schema.metadata[b"clustersim.schema_version"] == b"2"


def test_what_is_not_a_trace_of_this_version_is_refused(trace, tmp_path):
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(BadInput, match="must be a Parquet file"):
        parquet.read(tmp_path / "text.parquet")
    pq.write_table(pa.table({"rank": [1]}), tmp_path / "other.parquet")
    with pytest.raises(BadInput) as caught:
        parquet.read(tmp_path / "other.parquet")
    assert [fault.key for fault in caught.value.faults] == ["schema_version", "columns"]
    newer = pa.Table.from_pandas(trace)
    newer = newer.replace_schema_metadata(newer.schema.metadata | {b"clustersim.schema_version": b"3"})
    pq.write_table(newer, tmp_path / "newer.parquet")
    with pytest.raises(BadInput, match=r"newer.parquet: schema_version: '3' must be .* nearest: 2"):
        parquet.read(tmp_path / "newer.parquet")
