"""Cards from logs of one's own: which of them a log bears on, and what they may be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustersim.collective.explanations import explain_sizes
from clustersim.faults import BadInput
from clustersim.library.topologies import load_topology
from clustersim.study.calibrate_files import calibrate_files

SIZES = tuple(8 * 16**k for k in range(7))
HEAD = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes {most} step: 16(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
"""  # noqa: E501
COLUMNS = """\
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def log(path: Path, num_nodes: int, times_us: dict[int, float]) -> Path:
    """Output of nccl-tests' all_reduce_perf on nodes of eight."""
    n = 8 * num_nodes
    lines = [
        f"#  Rank {rank:2} Group  0 Pid {rank + 1} on host{rank // 8} device {rank % 8} [0x1b] NVIDIA H100 80GB HBM3"
        for rank in range(n)
    ]
    rows = []
    for nbytes, time in times_us.items():
        algbw = nbytes / time / 1e3
        half = f"{time:.2f} {algbw:.2f} {algbw * 2 * (n - 1) / n:.2f} 0"
        rows.append(f"{nbytes} {nbytes // 4} float sum -1 {half} {half}")
    closing = ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 100", "#"]
    text = HEAD.format(most=max(times_us)) + "\n".join(lines) + "\n" + COLUMNS + "\n".join([*rows, *closing]) + "\n"
    path.write_text(text)
    return path


def slow_network(path: Path) -> Path:
    """Two nodes that take 20 us more than they are predicted to."""
    found = explain_sizes("all_reduce", SIZES, load_topology("dgx-h100", nodes=2))
    return log(path, 2, {why.nbytes: why.seconds * 1e6 + 20 for why in found})


def test_logs_of_several_nodes_calibrate_the_network(tmp_path: Path) -> None:
    made = calibrate_files([slow_network(tmp_path / "two.log")], topology="dgx-h100", name="mine")
    assert list(made.texts) == ["transport/mine.toml"]
    assert abs(made.after).mean() < 0.5 * abs(made.before).mean()


def test_a_node_and_its_network_of_one_name_are_two_cards(tmp_path: Path) -> None:
    found = explain_sizes("all_reduce", SIZES, load_topology("dgx-h100", nodes=1))
    one = log(tmp_path / "one.log", 1, {why.nbytes: why.seconds * 1e6 + 5 for why in found})
    made = calibrate_files([one, slow_network(tmp_path / "two.log")], topology="dgx-h100", name="mine")
    assert list(made.cards) == list(made.start) == ["communication/mine", "transport/mine"]
    assert set(made.texts) == {f"{card}.toml" for card in made.cards}


def test_a_topology_that_is_a_file_names_the_cards(tmp_path: Path) -> None:
    from clustersim.library.card import find_card

    mine = tmp_path / "mine.toml"
    mine.write_bytes(find_card("topology", "dgx-h100").read_bytes())
    made = calibrate_files([slow_network(tmp_path / "two.log")], topology=str(mine))
    assert list(made.texts) == ["transport/mine.toml"]


@pytest.mark.parametrize(("name", "nearest"), [("../x", "x"), ("/etc/x", "etc-x"), ('a"b', "a-b"), ("..", "mine")])
def test_a_name_that_is_no_file_of_the_folder(tmp_path: Path, name: str, nearest: str) -> None:
    with pytest.raises(BadInput) as caught:
        calibrate_files([tmp_path / "none.log"], topology="dgx-h100", name=name, settings={"nodes": 3})
    assert [(fault.key, fault.nearest) for fault in caught.value.faults] == [
        ("name", nearest),
        ("nodes", None),
        ("file", None),
    ]
