"""Use of shared resources."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import clustersim as cs
from clustersim.analysis import bounds, links
from clustersim.trace.record import Rates


def rates(name, *steps, kind="nic", capacity=100.0):
    """``steps``: (time_ns, used, users)."""
    time_ns, used, users = zip(*steps, strict=True)
    return Rates(
        name=name,
        kind=kind,
        multiplicity=2,
        capacity=capacity,
        time_ns=np.array(time_ns, np.int64),
        used=np.array(used, np.float64),
        users=np.array(users, np.int64),
    )


def test_integrates_the_step_function():
    table = links([rates("a", (0, 0.0, 0), (10**9, 50.0, 1), (3 * 10**9, 100.0, 2), (4 * 10**9, 0.0, 0))])
    row = table.iloc[0]
    assert row["nbytes"] == 200
    assert row["mean_utilisation"] == pytest.approx(0.5)
    assert row["peak_utilisation"] == 1.0
    assert row["busy_fraction"] == pytest.approx(0.75)


def test_the_most_used_comes_first_and_all_are_measured_over_one_time():
    table = links([rates("idle", (0, 1.0, 1), (10**9, 0.0, 0)), rates("busy", (0, 80.0, 1), (2 * 10**9, 0.0, 0))])
    assert list(table["name"]) == ["busy", "idle"]
    assert list(table["mean_utilisation"]) == pytest.approx([0.8, 0.005])


def test_until_cuts_or_stretches():
    one = [rates("a", (0, 100.0, 1), (10**9, 50.0, 1))]
    assert links(one, until_ns=2 * 10**9).loc[0, "nbytes"] == 150
    assert links(one, until_ns=5 * 10**8).loc[0, "nbytes"] == 50
    assert links(one, until_ns=5 * 10**8).loc[0, "busy_fraction"] == 1.0


def test_a_drive_gives_time_not_bytes():
    table = links([rates("drive", (0, 5e8, 1), (10**9, 0.0, 0)), rates("b", (0, 0.0, 0))], until_ns=10**9)
    drive = links([rates("drive", (0, 5e8, 1), (10**9, 0.0, 0), kind="drive", capacity=1e9)]).iloc[0]
    assert drive["nbytes"] is pd.NA
    assert drive["mean_utilisation"] == pytest.approx(0.5)
    assert str(table["nbytes"].dtype) == "Int64"


def test_nothing_used_is_an_empty_table():
    assert links([]).empty


def test_saturated_is_at_capacity():
    row = links([rates("a", (0, 100.0, 1), (10**9, 99.0, 1), (2 * 10**9, 100.0, 2), (4 * 10**9, 0.0, 0))]).iloc[0]
    assert row["saturated_fraction"] == pytest.approx(0.75)
    assert (row["stands_for"], row["num_bound"] is pd.NA, row["bound_ops"]) == ("a", True, "")


@pytest.mark.parametrize("fold", [True, False])
def test_a_run_says_which_links_bound_which_ops(fold):
    plan = cs.ParallelPlan(tp=4, dp=4)
    job = cs.training_step(cs.load_model("gpt2"), plan, global_batch=32, micro_batch=1, seq_len=128)
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=2), job, fold=fold)
    table = links(run)
    resources = run.topology.resources
    assert all(resources.name(resources.find(name)) == name for name in table["name"])
    bound = bounds(run.trace)
    bound = bound[bound["bound"].str.contains("/")]
    assert table["num_bound"].sum() == bound["num_ops"].sum() > 0
    assert table["bound_s"].sum() == pytest.approx(bound["seconds"].sum())
    most = table.loc[table["bound_s"].idxmax()]
    named = run.trace[run.trace["bound"].isin(bound["bound"])]
    assert most["bound_ops"].split(", ")[0] in set(named["name"])
    assert sum(rates.multiplicity for rates in run.usage) == len(np.unique(np.concatenate([r.rows for r in run.usage])))


def test_folded_rows_name_the_links_they_stand_for():
    plan = cs.ParallelPlan(tp=8, dp=4)
    job = cs.training_step(cs.load_model("llama-2-7b"), plan, global_batch=8, micro_batch=1, seq_len=128)
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=4), job)
    table = links(run).set_index("kind")
    assert table.loc["hbm", "stands_for"] == "node{0..3}/gpu{0..7}/hbm"
    assert table.loc["hbm", "multiplicity"] == 32
