"""``collective``: its table, its JSON, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clustersim as cs
from clustersim.collective.bound import KINDS, bus_factor

ROW = {
    "nbytes",
    "time_us",
    "algbw_GBps",
    "busbw_GBps",
    "algorithm",
    "protocol",
    "num_channels",
    "busiest_link",
    "lower_bound_us",
    "reason",
}
ON = ("--topology", "dgx-a100", "--set", "nodes=2")


def errors(answer: Any) -> list[tuple[str, Any, Any]]:
    assert answer.code == 2
    assert answer.json["status"] == "bad_input"
    assert len(answer.err.splitlines()) == len(answer.json["errors"])
    return [(error["key"], error["value"], error["nearest"]) for error in answer.json["errors"]]


def test_json_is_what_explain_says(call: Callable[..., Any]) -> None:
    answer = call("collective", "all_reduce", *ON, "--sizes", "1M..1G", "--factor", "4", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert {name: answer.json[name] for name in ("collective", "topology", "num_ranks", "num_nodes")} == {
        "collective": "all_reduce",
        "topology": "dgx-a100",
        "num_ranks": 16,
        "num_nodes": 2,
    }
    rows = answer.json["rows"]
    assert [row["nbytes"] for row in rows] == [1 << k for k in range(20, 31, 2)]
    topology = cs.load_topology("dgx-a100", nodes=2)
    for row in rows:
        assert set(row) == ROW
        why = cs.explain("all_reduce", row["nbytes"], topology)
        assert row["time_us"] == pytest.approx(why.seconds * 1e6)
        assert row["algbw_GBps"] == pytest.approx(row["nbytes"] / row["time_us"] / 1e3)
        assert row["busbw_GBps"] == pytest.approx(row["algbw_GBps"] * bus_factor("all_reduce", 16))
        assert 0 < row["lower_bound_us"] <= row["time_us"]
        assert (row["algorithm"], row["protocol"], row["reason"]) == (why.algorithm, why.protocol, why.reason)
        assert row["num_channels"] > 0
        assert topology.resources.find(row["busiest_link"]) >= 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_table(call: Callable[..., Any], kind: str) -> None:
    which = ("--ranks", "0,8") if kind == "send_recv" else ()
    answer = call("collective", kind, *ON, *which)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line.startswith("#") for line in lines[:3])
    body = [line.split() for line in lines if not line.startswith("#")]
    assert len(body) == (1 if kind == "barrier" else 31)
    assert all(float(words[1]) > 0 for words in body)
    assert all(len(words) == 7 for words in body)


def test_explain_is_a_page_for_each_size(call: Callable[..., Any]) -> None:
    answer = call("collective", "all_reduce", *ON, "--explain")
    assert answer.out.count("lower bound") == 1
    assert answer.out.startswith("all_reduce of 1.074 GB among 16 ranks")
    pages = call("collective", "all_reduce", *ON, "--explain", "--sizes", "1K,1M").out
    assert pages.count("lower bound") == 2
    assert max(map(len, pages.splitlines())) <= 80
    (row,) = call("collective", "all_reduce", *ON, "--explain", "--sizes", "1M", "--json").json["rows"]
    assert set(row) == {*ROW, "num_steps", "latency_us", "bounded_by", "achieved", "bytes_per_link"}
    assert max(row["bytes_per_link"].values()) > 0


def test_settings_of_the_cluster_change_the_answer(call: Callable[..., Any]) -> None:
    def time_us(*more: str) -> float:
        answer = call("collective", "all_gather", *ON, "--sizes", "1G", "--json", *more)
        assert answer.code == 0, answer.err
        return float(answer.json["rows"][0]["time_us"])

    plain = time_us()
    assert time_us("--set", "nics_per_node=4") > 1.5 * plain
    assert time_us("--set", "perturb.slow_links={node0/nic0.tx: 0.25}") > 2 * plain
    assert time_us("--set", "nodes=3") > plain
    assert time_us("--ranks", "8") < plain
    assert time_us("--ranks", "0-7") == time_us("--ranks", "8")
    assert time_us("--protocol", "LL") > plain
    assert time_us("--algorithm", "ring/LL") == time_us("--protocol", "LL")


def test_what_the_cluster_approximates_is_told(call: Callable[..., Any]) -> None:
    sites = ("collective", "all_reduce", "--topology", "two-sites-h100", "--sizes", "1M")
    (note,) = call(*sites, "--json").json["warnings"]
    for more, start in ((), "# "), (("--explain",), ""):
        out = call(*sites, *more).out
        assert f"{start}warning: {note[:40]}" in out
        assert note in " ".join(out.replace("\n# ", "\n").split())
    assert "warning" not in call("collective", "all_reduce", "--topology", "dgx-h100").out


@pytest.mark.parametrize(("factor", "nearest"), [("1.5", 2), ("2.6", 3), ("nan", 2), ("inf", 2), ("-1.5", 2)])
def test_a_factor_that_is_not_whole(call: Callable[..., Any], factor: str, nearest: int) -> None:
    ((key, _, near),) = errors(call("collective", "all_reduce", *ON, f"--factor={factor}", "--json"))
    assert (key, near) == ("factor", nearest)


def test_two_protocols_at_once(call: Callable[..., Any]) -> None:
    pinned = ("collective", "all_reduce", *ON, "--sizes", "1M", "--algorithm", "ring/LL", "--json")
    assert errors(call(*pinned, "--protocol", "Simple")) == [("protocol", "Simple", "LL")]
    assert call(*pinned, "--protocol", "LL").code == 0


def test_a_topology_of_ones_own(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('name = "x"\nnodes = 1\n')
    answer = call("collective", "all_reduce", "--topology", "./bad.toml", "--json")
    assert all(error["file"].endswith("bad.toml") for error in answer.json["errors"])
    assert errors(answer)


def test_every_fault_at_once(call: Callable[..., Any]) -> None:
    answer = call(
        *("collective", "allreduce", "--topology", "dgx-a100", "--set", "seq_len=nan", "--set", "plan.tp=8"),
        *("--set", "nodes", "--set", "nics_per_nod=2", "--sizes", "1MB", "--ranks", "99", "--algorithm", "rng"),
        *("--protocol", "LL64", "--json"),
    )
    assert errors(answer) == [
        ("nodes", "nodes", "nodes=8"),
        ("seq_len", "nan", 4096),
        ("nics_per_nod", "2", "nics_per_node"),
        ("plan.tp", 8, None),
        ("sizes", "1MB", "1M"),
        ("ranks", "99", 8),
        ("kind", "allreduce", "all_reduce"),
        ("algorithm", "rng", "ring"),
        ("protocol", "LL64", "LL"),
    ]


def test_faults_are_told_without_a_cluster_too(call: Callable[..., Any]) -> None:
    answer = call("collective", "allreduce", "--topology", "dgx-a10", "--factor", "1", "--protocol", "x", "--json")
    assert [key for key, *_ in errors(answer)] == ["factor", "topology", "kind", "protocol"]
    assert call("collective", "all_reduce", "--json").code == 2  # no topology
    assert call("collective", "--json").code == 2


@pytest.mark.parametrize(
    ("ranks", "nearest"),
    [("0", 1), ("17", 16), ("-1", "all"), ("x", "all"), ("0,16", "all"), ("3-1", "all"), ("", "all")],
)
def test_groups_that_are_none(call: Callable[..., Any], ranks: str, nearest: object) -> None:
    answer = call("collective", "all_reduce", *ON, f"--ranks={ranks}", "--json")
    assert errors(answer) == [("ranks", ranks, nearest)]


def test_a_rank_twice(call: Callable[..., Any]) -> None:
    assert errors(call("collective", "all_reduce", *ON, "--ranks", "0,1,1", "--json")) == [("ranks", 1, None)]


def test_a_group_of_one_takes_its_launch(call: Callable[..., Any]) -> None:
    for ranks in ("1", "5,"):
        (row,) = call("collective", "all_reduce", *ON, "--ranks", ranks, "--sizes", "8G", "--json").json["rows"]
        assert 0 < row["time_us"] < 100
        assert (row["busbw_GBps"], row["lower_bound_us"], row["busiest_link"]) == (0, 0, None)


def test_sends_are_between_two(call: Callable[..., Any]) -> None:
    assert errors(call("collective", "send_recv", *ON, "--json")) == [("ranks", "all", 2)]


@pytest.mark.parametrize("size", ["8E", "16E", "999999999999999999999999"])
def test_sizes_beyond_what_can_be_counted(call: Callable[..., Any], size: str) -> None:
    ((key, _, nearest),) = errors(call("collective", "all_reduce", *ON, "--sizes", size, "--json"))
    assert key == "sizes"
    answer = call("collective", "all_reduce", *ON, "--sizes", str(nearest), "--json")
    assert answer.code == 0
    assert answer.json["rows"][0]["time_us"] > 1e9


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("barrier", "send_recv")])
def test_nothing_takes_no_time(call: Callable[..., Any], kind: str) -> None:
    rows = call("collective", kind, *ON, "--sizes", "0,1", "--json").json["rows"]
    assert all(row["time_us"] > 0 for row in rows)


def test_links_that_are_not_there_or_carry_nothing(call: Callable[..., Any]) -> None:
    for setting, key in (
        ("perturb.slow_links={node0/nic9.tx: 0.5}", "perturb.slow_links"),
        ("perturb.slow_links={node0/nic0.tx: 0}", "perturb.slow_links"),
        ("perturb.slow_links={node0/nic0.tx: nan}", "perturb.slow_links"),
        ("perturb.failed_links=[node0/nic9]", "perturb.failed_links"),
    ):
        answer = call("collective", "all_reduce", *ON, "--set", setting, "--json")
        assert [error[0].startswith(key) for error in errors(answer)] == [True]
