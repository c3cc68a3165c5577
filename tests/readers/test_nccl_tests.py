"""Logs written here in the formats of several versions: what is read from each, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from clustersim.collective.bound import bus_factor
from clustersim.faults import BadInput
from clustersim.readers import nccl_tests

RECENT = (
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw"
    "  #wrong"
)
OLD = "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error"
SIZES = tuple(2**k for k in range(20, 27))
END = ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.5"]


def arguments(first: int = SIZES[0], last: int = SIZES[-1]) -> str:
    return (
        f"# nThread 1 nGpus 1 minBytes {first} maxBytes {last} step: 2(factor) warmup iters: 5 iters: 20 validation: 1"
    )


def ranks(num: int, per_node: int) -> list[str]:
    return [
        f"#  Rank {r:2} Group  0 Pid {100 + r} on n{r // per_node} device {r % per_node} [0x0f] Some GPU"
        for r in range(num)
    ]


def cell(kind: str, n: int, nbytes: int, peak: float = 100.0, wrong: str = "0") -> str:
    """20 us and a bus bandwidth of ``peak`` GB/s."""
    time_us = 20 + bus_factor(kind, n) * nbytes / peak / 1e3
    algbw = nbytes / time_us / 1e3
    return f"{time_us:8.2f} {algbw:7.2f} {bus_factor(kind, n) * algbw:7.2f} {wrong:>6}"


def row(
    kind: str, n: int, nbytes: int, redop: str = "sum", root: str = "-1", wrong: tuple[str, ...] = ("0", "0")
) -> str:
    halves = " ".join(cell(kind, n, nbytes, wrong=text) for text in wrong)
    return f"{nbytes:12} {nbytes // 4:12}     float {redop:>6} {root:>6} {halves}"


def table(kind: str, n: int, **more: Any) -> list[str]:
    return [RECENT, *(row(kind, n, nbytes, **more) for nbytes in SIZES)]


def write(folder: Path, *lines: str, name: str = "run.log") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def refused(path: Path, **told: Any) -> list[tuple[str, str]]:
    with pytest.raises(BadInput) as caught:
        nccl_tests.read(path, **told)
    assert all(fault.file == str(path) for fault in caught.value.faults)
    return [(fault.key, fault.rule) for fault in caught.value.faults]


def test_a_run_of_a_recent_version(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "# nccl-tests version 2.18.2 nccl-headers=22807 nccl-library=22905",
        "# Collective test starting: all_gather_perf",
        arguments(),
        "#",
        "# Using devices",
        *ranks(8, 4),
        "#",
        *table("all_gather", 8, redop="none"),
        *END,
        "# Collective test concluded: all_gather_perf",
    )
    assert nccl_tests.detect(path)
    (log,), notes = nccl_tests.read(path)
    assert (log.collective, log.num_ranks, log.hosts, log.num_nodes) == ("all_gather", 8, ("n0", "n1"), 2)
    assert (log.dtype, log.redop, log.version, log.device) == ("float", "none", "NCCL 2.29.5", "Some GPU")
    assert (log.warmup, log.iters, log.line) == (5, 20, 15)
    assert [r.nbytes for r in log.out_of_place] == [r.nbytes for r in log.in_place] == list(SIZES)
    last = log.in_place[-1]
    assert (last.line, last.wrong) == (22, 0)
    assert last.busbw == pytest.approx(last.algbw * 7 / 8, rel=1e-3)
    assert last.time_us == pytest.approx(last.nbytes / last.algbw / 1e3, rel=1e-3)
    assert log.plateau == last.busbw
    assert notes == []


@pytest.mark.parametrize(
    ("kind", "redop", "root", "wrong"),
    [
        ("all_reduce", "sum", "-1", ("0", "0")),
        ("reduce_scatter", "avg", "-1", ("0", "0")),
        ("all_gather", "none", "-1", ("0", "0")),
        ("all_to_all", "none", "-1", ("0", "N/A")),
        ("send_recv", "sum", "-1", ("0", "N/A")),
        ("broadcast", "none", "0", ("0", "0")),
        ("reduce", "max", "3", ("0", "0")),
    ],
)
def test_a_bare_table_tells_its_collective_by_its_own_numbers(
    tmp_path: Path, kind: str, redop: str, root: str, wrong: tuple[str, str]
) -> None:
    path = write(tmp_path, *ranks(8, 8), *table(kind, 8, redop=redop, root=root, wrong=wrong), *END)
    (log,), notes = nccl_tests.read(path)
    assert (log.collective, log.num_ranks) == (kind, 8)
    assert any("the collective is" in note for note in notes)


@pytest.mark.parametrize("n", [3, 8, 16, 64])
def test_a_bare_table_tells_its_number_of_ranks(tmp_path: Path, n: int) -> None:
    (log,), notes = nccl_tests.read(write(tmp_path, *table("all_reduce", n), *END))
    assert (log.collective, log.num_ranks, log.num_nodes) == ("all_reduce", n, None)
    assert any(f"{n} ranks by busbw/algbw" in note for note in notes)


def test_what_the_digits_do_not_tell_is_asked_for(tmp_path: Path) -> None:
    thousands = write(tmp_path, *table("all_reduce", 4096), *END, name="a.log")
    ((key, rule),) = refused(thousands)
    assert key == "line 1, num_ranks"
    low, high = map(int, rule.split("fits ")[1].split(" to "))
    assert low < 4096 < high
    (log,), _ = nccl_tests.read(thousands, num_ranks=4096)
    assert log.num_ranks == 4096

    either = write(tmp_path, *table("gather", 8, redop="none", root="0"), *END, name="b.log")
    ((key, rule),) = refused(either)
    assert key == "line 1, collective"
    assert "gather, scatter" in rule
    (log,), _ = nccl_tests.read(either, collective="scatter")
    assert (log.collective, log.num_ranks) == ("scatter", 8)

    two = write(tmp_path, *table("all_reduce", 2), *END, name="d.log")
    assert "all_reduce, reduce_scatter" in refused(two)[0][1]  # a factor of 1.000 is that of 2 ranks or of very many
    (log,), _ = nccl_tests.read(two, num_ranks=2)
    assert log.collective == "all_reduce"

    unknown = write(
        tmp_path, "$ ./broadcast_perf -b 8", *table("broadcast", 8, redop="none", root="0"), *END, name="c.log"
    )
    assert refused(unknown)[0][0] == "line 2, num_ranks"


def test_the_old_format_has_an_error_column_no_root_and_one_half(tmp_path: Path) -> None:
    halves = [f"{n:12} {n // 4:12} float sum {cell('all_reduce', 4, n, wrong='2e-07')}" for n in SIZES]
    head = f"# nThread: 1 nGpus: 4 minBytes: {SIZES[0]} maxBytes: {SIZES[-1]} step: 2(factor) warmupIters: 5 iters: 7"
    devices = [f"#   Rank  {r} Pid 1 on host device {r} [0x05] Tesla" for r in range(4)]
    path = write(tmp_path, "./build/all_reduce_perf -g 4", head, *devices, OLD, *halves, *END)
    (log,), _ = nccl_tests.read(path)
    assert (log.collective, log.num_ranks, log.hosts) == ("all_reduce", 4, ("host",))
    assert (len(log.out_of_place), log.in_place, log.warmup, log.iters) == (len(SIZES), (), 5, 7)
    assert all(r.wrong == 0 for r in log.rows)


def test_columns_of_operation_and_root_may_be_blank(tmp_path: Path) -> None:
    both = [f"{n:12} {n // 4:12} float {cell('all_to_all', 8, n)} {cell('all_to_all', 8, n)}" for n in SIZES]
    path = write(tmp_path, "$ ./alltoall_perf", *ranks(8, 8), RECENT, *both, *END)
    (log,), _ = nccl_tests.read(path)
    assert (log.collective, log.redop, len(log.in_place)) == ("all_to_all", "", len(SIZES))


def test_lines_with_the_labels_of_launchers_and_rccl_with_its_own(tmp_path: Path) -> None:
    lines = [arguments(), "rccl-tests: Version develop:0123abc", "# Using devices", *ranks(8, 8)]
    lines += [
        "RCCL version : 2.22.3-develop:f5b15f2",
        *table("all_reduce", 8),
        "n0:1:1 [0] NCCL INFO comm 0x1 done",
        *END,
    ]
    for label in ("[1,0]<stdout>:", "0: "):
        (log,), _ = nccl_tests.read(write(tmp_path, *(label + line for line in lines)))
        assert (log.num_ranks, log.version, len(log.rows)) == (8, "RCCL 2.22.3-develop:f5b15f2", len(SIZES))


def test_a_column_of_timestamps_and_of_single_iterations(tmp_path: Path) -> None:
    stamped = [RECENT + " timestamp", *(row("all_reduce", 4, n) + "  2026-01-02 03:04:05" for n in SIZES)]
    (log,), _ = nccl_tests.read(write(tmp_path, *stamped, *END))
    assert (log.num_ranks, len(log.in_place)) == (4, len(SIZES))
    extra = " i_min i_max i_p99 i_cv%"
    columns = RECENT.replace("#wrong", "#wrong" + extra)
    each = [row("all_reduce", 4, n).split() for n in SIZES]
    rows = [" ".join([*words[:9], *"1234", *words[9:], *"5678"]) for words in each]
    (log,), _ = nccl_tests.read(write(tmp_path, columns, *rows, *END))
    assert (log.num_ranks, log.in_place[-1].line) == (4, len(SIZES) + 1)


def test_several_runs_in_one_file_are_several_logs(tmp_path: Path) -> None:
    def one(kind: str, program: str, n: int) -> list[str]:
        redop = "none" if kind == "all_gather" else "sum"
        return [f"$ mpirun ./{program} -f 2", arguments(), *ranks(n, 4), *table(kind, n, redop=redop), *END]

    path = write(tmp_path, *one("all_reduce", "all_reduce_perf", 8), *one("all_gather", "all_gather_perf", 4))
    logs, _ = nccl_tests.read(path)
    assert [(log.collective, log.num_ranks, log.num_nodes) for log in logs] == [
        ("all_reduce", 8, 2),
        ("all_gather", 4, 1),
    ]
    assert logs[0].line < logs[1].line


def test_a_run_too_small_to_tell_follows_the_others_of_its_file(tmp_path: Path) -> None:
    small = [*ranks(8, 8), RECENT, row("all_reduce", 8, 64), *END]
    large = [arguments(2**26), *ranks(8, 8), RECENT, row("all_reduce", 8, 2**26), *END]
    assert refused(write(tmp_path, *small))[0][0] == "line 9, collective"
    logs, notes = nccl_tests.read(write(tmp_path, arguments(64, 64), *small, *large))
    assert [log.collective for log in logs] == ["all_reduce", "all_reduce"]
    assert any("as in the other tables" in note for note in notes)
    assert sum("one size only" in note for note in notes) == 2


def test_types_and_operations_of_one_table_are_logs_of_their_own(tmp_path: Path) -> None:
    rows = [row("all_reduce", 4, n, redop=redop) for redop in ("sum", "max") for n in SIZES]
    halves = [text.replace("float", " half") for text in rows]
    logs, _ = nccl_tests.read(write(tmp_path, *ranks(4, 4), RECENT, *rows, *halves, *END))
    assert [(log.dtype, log.redop) for log in logs] == [
        ("float", "sum"),
        ("float", "max"),
        ("half", "sum"),
        ("half", "max"),
    ]
    assert {len(log.rows) for log in logs} == {len(SIZES)}


def test_a_cut_list_of_devices_gives_way_to_the_factor(tmp_path: Path) -> None:
    listed = ranks(16, 8)
    del listed[5:8]  # a line of one process is cut at 2,047 characters
    (log,), notes = nccl_tests.read(write(tmp_path, *listed, *table("all_reduce", 16), *END))
    assert (log.num_ranks, log.num_nodes) == (16, None)
    assert any("or not all" in note for note in notes)


def test_groups_that_ran_side_by_side(tmp_path: Path) -> None:
    listed = [text.replace("Group  0", f"Group  {k % 2}") for k, text in enumerate(ranks(16, 8))]
    (log,), notes = nccl_tests.read(write(tmp_path, *listed, *table("all_reduce", 8), *END))
    assert log.num_ranks == 8
    assert any("2 groups of 8 ranks ran at the same time" in note for note in notes)


def test_growth_tells_whether_the_plateau_was_reached(tmp_path: Path) -> None:
    (log,), notes = nccl_tests.read(write(tmp_path, *table("all_reduce", 4), *END))
    before, last = (r.busbw for r in log.rows[-2:])
    assert log.growth == pytest.approx(1 - before / last)
    assert log.growth is not None
    assert log.growth < 0.05
    assert not any("plateau" in note for note in notes)
    path = write(tmp_path, RECENT, *(row("all_reduce", 4, n) for n in (1024, 2048, 4096)), *END)
    _, notes = nccl_tests.read(path, num_ranks=4, collective="all_reduce")
    assert notes[-1].endswith("the plateau is higher")


def test_rows_of_no_bytes_are_left_out(tmp_path: Path) -> None:
    empty = "0 0 float sum -1 3.91 0.00 0.00 0 3.88 0.00 0.00 0"
    (log,), notes = nccl_tests.read(write(tmp_path, RECENT, empty, *table("all_reduce", 4)[1:], *END))
    assert len(log.rows) == len(SIZES)
    assert any("rows of 0 bytes left out: 1" in note for note in notes)


def test_one_rank_says_nothing_about_links(tmp_path: Path) -> None:
    path = write(tmp_path, "./alltoall_perf", *ranks(1, 1), *table("all_to_all", 1, redop="none"), *END)
    assert refused(path) == [("line 3", "rank: a run of one rank says nothing about links")]


def test_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path, "./all_reduce_perf", arguments(), *ranks(2, 2), RECENT)
    assert nccl_tests.detect(path)
    assert refused(path) == [("line 5", "has no rows: the run hung, failed or was cut off")]


def test_every_wrong_result_and_every_cut_line_at_once(tmp_path: Path) -> None:
    good = table("all_reduce", 4)
    wrong, cut = row("all_reduce", 4, SIZES[2], wrong=("0", "12")), good[5][:70]
    path = write(tmp_path, arguments(), *ranks(4, 4), *good[:3], wrong, good[4], cut)
    assert refused(path) == [
        ("line 9", "wrong elements in place; must be 0"),
        (
            "line 10",
            f"is the last size, {SIZES[-1]} was asked for and the closing lines are missing: the table is cut off",
        ),
        ("line 11", "is cut off, or joined with another line: 8 words for 13 columns"),
    ]


def test_wrong_results_of_the_old_format(tmp_path: Path) -> None:
    starred = f"{SIZES[0]} {SIZES[0] // 4} float sum {cell('all_reduce', 4, SIZES[0], wrong='1e+00*')}"
    path = write(tmp_path, "./all_reduce_perf", *ranks(4, 4), OLD, starred, *END)
    assert refused(path) == [("line 7", "wrong elements out of place; must be 0")]
    plain = starred.replace("1e+00*", "1e+00")
    path = write(tmp_path, "./all_reduce_perf", *ranks(4, 4), OLD, plain, "# Out of bounds values : 1 FAILED")
    assert refused(path) == [("line 6", "values out of bounds in this run; must be 0")]


def test_a_table_that_ends_early_but_closes_is_whole(tmp_path: Path) -> None:
    rows = table("all_reduce", 4)[:4]
    (log,), _ = nccl_tests.read(write(tmp_path, arguments(), *ranks(4, 4), *rows, *END))
    assert len(log.rows) == 3
    assert len(refused(write(tmp_path, arguments(), *ranks(4, 4), *rows))) == 1
    less = f"# Reducing maxBytes to {SIZES[2]} due to memory limitation"
    (log,), notes = nccl_tests.read(write(tmp_path, arguments(), less, *ranks(4, 4), *rows))
    assert any("closing lines are missing" in note for note in notes)


@pytest.mark.parametrize("text", ["nan", "inf", "-1.00", "0.00", "fast"])
def test_times_that_are_none(tmp_path: Path, text: str) -> None:
    words = row("all_reduce", 4, SIZES[0]).split()
    path = write(tmp_path, "./all_reduce_perf", *ranks(4, 4), RECENT, " ".join([*words[:5], text, *words[6:]]), *END)
    assert refused(path) == [("line 7", "must be a time above 0, bandwidths and a count, all of them finite numbers")]


def test_numbers_that_contradict_the_header(tmp_path: Path) -> None:
    path = write(tmp_path, "./all_reduce_perf", *ranks(8, 8), *table("all_reduce", 4), *END)
    assert refused(path) == [("line 10, busbw/algbw", "does not agree with the log: all_reduce of 8 ranks has 1.75")]
    mixed = [RECENT, row("all_reduce", 4, 2**25), row("all_reduce", 8, 2**26)]
    path = write(tmp_path, "./all_reduce_perf", *mixed, *END)
    assert refused(path) == [("line 2, busbw/algbw", "does not agree with the log: no all_reduce has it")]


def test_what_is_not_modelled_and_failures_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "./alltoallv_perf", *ranks(8, 8), *table("all_to_all", 8, redop="none"), *END)
    assert refused(path) == [("line 10", "is of no collective that is modelled")]
    broken = "n0: Test NCCL failure common.cu:958 'unhandled system error'"
    path = write(tmp_path, "./all_reduce_perf", arguments(), RECENT, broken)
    assert refused(path)[1] == ("line 4", "the run failed here")
    path = write(tmp_path, RECENT.replace("   time", "cputime"), *table("all_reduce", 4)[1:], *END)
    assert refused(path) == [("line 1", "is the time of the CPU, not that of the collective")]


@pytest.mark.parametrize("name", ["time", "algbw", "busbw", "type"])
def test_a_damaged_header_is_none(tmp_path: Path, name: str) -> None:
    damaged = RECENT.replace(name, name[1:], 1)
    path = write(tmp_path, damaged, *table("all_reduce", 4)[1:], *END)
    assert not nccl_tests.detect(path)
    assert refused(path) == [("file", "must have a table of nccl-tests in it")]


def test_arguments_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path, *table("all_reduce", 4), *END)
    with pytest.raises(BadInput) as caught:
        nccl_tests.read(path, collective="allreduce", num_ranks=1)
    assert [(fault.key, fault.nearest) for fault in caught.value.faults][:2] == [
        ("collective", "all_reduce"),
        ("num_ranks", 2),
    ]


@pytest.mark.parametrize("text", ["", "hello", "size count type\n1 2 3", "{}", '{"config": {}}', "[1]"])
def test_other_files_are_not_detected_and_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    assert not nccl_tests.detect(path)
    assert refused(path)
    assert not nccl_tests.detect(tmp_path / "absent")
    assert refused(tmp_path / "absent")


def document(kind: str = "all_reduce", n: int = 8, per_process: int = 4, **more: Any) -> dict[str, Any]:
    def half(nbytes: int) -> dict[str, Any]:
        time_us = 20 + bus_factor(kind, n) * nbytes / 100e3
        algbw = nbytes / time_us / 1e3
        return {"time": time_us, "alg_bw": algbw, "bus_bw": algbw * bus_factor(kind, n), "nwrong": 0.0}

    return {
        "version": 2,
        "args": [f"./build/{kind}_perf", "-J", "out.json"],
        "env": [],
        "nccl_version": 22905,
        "config": {
            "nthreads": 1,
            "ngpus": per_process,
            "minimum_bytes": SIZES[0],
            "maximum_bytes": SIZES[-1],
            "step_factor": 2,
            "warmup_iters": 5,
            "iterations": 20,
            "validation": 1,
            "devices": [
                {"rank": r, "group": 0, "hostname": f"n{r}", "device_info": "GPU"} for r in range(n // per_process)
            ],
        },
        "results": [
            {"size": s, "count": s // 4, "type": "float", "redop": "sum", "root": "    -1"}
            | {"out_of_place": half(s), "in_place": half(s)}
            for s in SIZES
        ],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "end_time": "2026-01-02 03:04:05",
    } | more


def test_the_json_form(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps(document()), name="out.json")
    assert nccl_tests.detect(path)
    (log,), notes = nccl_tests.read(path)
    assert (log.collective, log.num_ranks, log.num_nodes, log.version) == ("all_reduce", 8, 2, "NCCL 2.29.5")
    assert (log.warmup, log.iters, len(log.in_place), notes) == (5, 20, len(SIZES), [])


def test_faults_of_the_json_form(tmp_path: Path) -> None:
    wrong = document()
    wrong["results"][1]["in_place"]["time"] = "nan"
    wrong["results"][2]["out_of_place"]["nwrong"] = 3.0
    wrong["results"][3]["size"] = -1
    wrong["config"]["iterations"] = "many"
    keys = [key for key, _ in refused(write(tmp_path, json.dumps(wrong)))]
    assert keys == ["config.iterations", "results[1].in_place.time", "results[3].size", "line 3"]
    short = document(results=document()["results"][:3])
    del short["end_time"]
    assert refused(write(tmp_path, json.dumps(short)))[0][0] == "line 3"
    assert refused(write(tmp_path, json.dumps(document())[:-40]))[0][0].startswith("line 1, column")
    alone = document(n=4, per_process=4)
    alone["config"]["ngpus"] = 1
    assert refused(write(tmp_path, json.dumps(alone)))[0][1].startswith("rank: ")
