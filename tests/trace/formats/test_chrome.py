"""Traces for Perfetto and HTA."""

from __future__ import annotations

import gzip
import json
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.trace.formats import chrome
from clustersim.trace.frame import frame, frame_of


@pytest.fixture
def record(scene):
    """Two ranks, two steps; rank 4 is released by rank 0."""
    for rank in (0, 4):
        lane = scene.lane(rank=rank, multiplicity=4)
        lane.add(scene.compute(), (0, rank, 1500), (4000, 4000, 5001), micro_batch=2, layer=1, stage=0, phase="forward")
        lane.add(scene.collective("tp"), (1500, 1600, 2600), (5001, 5001, 6000), stream="tp", cause=(0, 0))
        lane.add(scene.collective("pp", "send"), (2600, 2600, 2700), (6000, 6000, 6100), stream="pp", cause=(0, 1))
        lane.add(scene.copy("d2h", nbytes=300), (2600, 2600, 2900), (6000, 6000, 6100), stream="copy")
        lane.add(scene.drive(), (2900, 2900, 3000), (6100, 6100, 6200), stream="drive")
        lane.add(scene.host(), (3000, 3000, 4000), (6200, 6200, 7000), stream="cpu")
    return scene.record()


def text_of(path):
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def events(path, **wanted):
    return [e for e in json.loads(text_of(path))["traceEvents"] if all(e.get(k) == v for k, v in wanted.items())]


def test_one_process_a_rank_and_one_track_a_stream(record, tmp_path):
    path = chrome.write(frame(record), tmp_path / "trace.json")
    names = {e["pid"]: e["args"]["name"] for e in events(path, ph="M", name="process_name")}
    assert names == {0: "rank 0 (and 3 like it)", 4: "rank 4 (and 3 like it)"}
    tracks = [e["args"]["name"] for e in events(path, ph="M", name="thread_name", pid=0)]
    assert tracks == ["steps", "compute", "tp", "pp", "copy", "drive", "cpu"]


def test_times_are_microseconds_to_the_nanosecond(record, tmp_path):
    path = chrome.write(frame(record), tmp_path / "trace.json")
    first, second = events(path, name="mlp", pid=4)
    assert (first["ts"], first["dur"]) == (0.004, 1.496)
    assert (second["ts"], second["dur"]) == (4.0, 1.001)
    assert '"ts": 0.004, "dur": 1.496' in path.read_text()


def test_slices_are_kinetos(record, tmp_path):
    path = chrome.write(frame(record), tmp_path / "trace.json.gz")
    kernel = events(path, ph="X", pid=0, cat="kernel")
    assert [e["name"] for e in kernel[:2]] == ["mlp", "ncclDevKernel_AllReduce_tp"]
    assert events(path, pid=0, name="ncclDevKernel_SendRecv_pp")
    args = kernel[0]["args"]
    assert (args["op"], args["phase"], args["micro_batch"], args["layer"], args["stage"]) == ("mlp", "forward", 2, 1, 0)
    assert (args["device"], args["stream"], args["wait_us"]) == (0, kernel[0]["tid"], 0.0)
    reduce = kernel[1]["args"]
    assert (reduce["op"], reduce["Collective name"], reduce["Process Group Name"]) == (
        "all_reduce tp",
        "all_reduce",
        "tp/tp/0",
    )
    copy = events(path, pid=0, cat="gpu_memcpy")[0]
    assert copy["name"] == "Memcpy DtoH (Device -> Pinned)"
    assert (copy["args"]["bytes"], copy["args"]["memory bandwidth (GB/s)"]) == (300, 1.0)
    on_host = events(path, pid=0, cat="cpu_op")
    assert [e["name"] for e in on_host] == ["swap in", "cpu adam"] * 2
    assert all("stream" not in e["args"] for e in on_host)
    correlations = [e["args"]["correlation"] for e in events(path, ph="X") if "correlation" in e.get("args", {})]
    assert len(correlations) == len(set(correlations)) == 16


def test_steps_are_annotations_that_tile_the_run(record, tmp_path):
    path = chrome.write(frame(record), tmp_path / "trace.json")
    steps = events(path, cat="user_annotation", pid=4)
    assert [(e["name"], e["ts"], e["dur"]) for e in steps] == [
        ("ProfilerStep#0", 0.0, 4.0),
        ("ProfilerStep#1", 4.0, 3.0),
    ]


def test_a_folder_has_a_file_for_each_rank_that_hta_finds(record, tmp_path):
    paths = chrome.write_folder(frame(record), tmp_path / "hta")
    assert [p.name for p in paths] == ["rank_0.json.gz", "rank_4.json.gz"]
    text = text_of(paths[1])
    assert re.search(r'"rank":\s+(\d+)', text).group(1) == "4"  # HTA's own pattern: at least one space
    whole = json.loads(text)
    assert whole["distributedInfo"] == {"backend": "nccl", "rank": 4, "world_size": 5}
    assert whole["deviceProperties"] == [{"id": 0, "name": "simulated GPU"}]
    steps = [e for e in whole["traceEvents"] if e.get("cat") == "user_annotation"]
    assert steps[0]["dur"] == 4.0  # the step of the run, not of this rank alone


def test_each_kernel_has_its_launch_in_a_folder(record, tmp_path):
    path = chrome.write_folder(frame(record), tmp_path)[0]
    on_gpu = {e["args"]["correlation"]: e["ts"] for e in events(path, ph="X") if "stream" in e.get("args", {})}
    launched = {e["args"]["correlation"]: e["ts"] for e in events(path, cat="cuda_runtime")}
    assert set(on_gpu) == set(launched)
    assert all(launched[k] <= on_gpu[k] for k in on_gpu)
    assert {e["tid"] for e in events(path, cat="cuda_runtime")}.isdisjoint(
        {e["tid"] for e in events(path, cat="kernel")}
    )


def test_the_device_is_the_card_given(scene, record, tmp_path):
    gpu = scene.run(memory_bytes=80).topology.gpus[0]
    path = chrome.write(frame(record, lanes=[0]), tmp_path / "trace.json", gpu=gpu)
    expected = [{"id": 0, "name": "test-gpu", "totalGlobalMem": 80, "numSms": 10}]
    assert json.loads(path.read_text())["deviceProperties"] == expected


def test_arrows_go_from_cause_to_op_between_tracks(record, tmp_path):
    path = chrome.write(frame(record, lanes=[0]), tmp_path / "trace.json", flows=True)
    leaves = {e["id"]: e for e in events(path, ph="s")}
    arrives = {e["id"]: e for e in events(path, ph="f")}
    assert set(leaves) == set(arrives)
    first = leaves[1], arrives[1]
    assert [(e["tid"], e["ts"]) for e in first] == [(1, 1.499), (2, 1.6)]
    assert first[1]["bp"] == "e"


def test_several_runs_have_processes_of_their_own(scene, tmp_path):
    for job in (0, 1):
        scene.lane(job=job).add(scene.compute(), (0, 0, 10))
    trace = frame(scene.record())
    path = chrome.write(trace, tmp_path / "trace.json")
    names = {e["pid"]: e["args"]["name"] for e in events(path, ph="M", name="process_name")}
    assert names == {0: "train rank 0", 1: "train 1 rank 0"}
    with pytest.raises(ValueError, match="has the runs train, train 1"):
        chrome.write_folder(trace, tmp_path / "folder")
    assert chrome.write_folder(trace[trace["run"] == "train 1"], tmp_path / "folder")


def test_ops_that_overlap_on_a_stream_are_refused(scene, tmp_path):
    lane = scene.lane()
    lane.add(scene.compute("one"), (0, 0, 10))
    lane.add(scene.compute("two"), (9, 9, 12))
    with pytest.raises(ValueError, match="rank 0, stream compute, 9 ns: 'one' and 'two' overlap"):
        chrome.write(frame(scene.record()), tmp_path / "trace.json")


def test_arrows_need_labels_of_their_own(record, tmp_path):
    record.lane_of[0][1] = 0
    with pytest.raises(ValueError, match="labels must be unique"):
        chrome.write(frame_of(record, [0, 1]), tmp_path / "trace.json", flows=True)


def test_names_are_escaped_and_an_empty_trace_is_json(scene, tmp_path):
    scene.lane().add(scene.compute('a "quoted" \\ name'), (0, 0, 10))
    trace = frame(scene.record())
    assert events(chrome.write(trace, tmp_path / "a.json"), name='a "quoted" \\ name')
    assert events(chrome.write(trace.iloc[:0], tmp_path / "b.json")) == []


streams = st.lists(
    st.tuples(st.sampled_from(["compute", "copy", "tp"]), st.integers(0, 3000), st.integers(0, 2000)),
    min_size=1,
    max_size=20,
)


@settings(deadline=None, max_examples=40)
@given(st.lists(streams, min_size=1, max_size=3))
def test_slices_never_overlap_on_a_track(new_scene, tmp_path_factory, ranks):
    scene = new_scene()
    for rank, ops in enumerate(ranks):
        lane, free = scene.lane(rank=rank), {}
        for stream, wait, lasts in ops:
            ready = free.get(stream, 0)
            free[stream] = ready + wait + lasts
            op = scene.collective("tp") if stream == "tp" else getattr(scene, stream)()
            lane.add(op, (ready, ready + wait, free[stream]), stream=stream)
    path = chrome.write(frame(scene.record()), tmp_path_factory.mktemp("law") / "trace.json", launches=True)
    by_track = {}
    for e in events(path, ph="X"):
        by_track.setdefault((e["pid"], e["tid"]), []).append(
            (round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000))
        )
    assert sum(map(len, by_track.values())) == 2 * sum(map(len, ranks)) + len(ranks)
    for slices in by_track.values():
        assert all(first[1] <= second[0] for first, second in pairwise(sorted(slices)))
