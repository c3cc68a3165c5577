"""Graphs by name: the library's hold what their papers say, and a card of one's own is checked whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pytest

from clustersim.faults import BadInput
from clustersim.library import list_cards
from clustersim.library.graph import graph_files, load_convergence, load_graph

GRAPHS = [name for name, _ in list_cards()["graph"]]


def test_the_library_has_these() -> None:
    assert GRAPHS == ["big-lstm", "gnmt", "inception-v3"]


@pytest.mark.parametrize("name", GRAPHS)
def test_each_can_be_loaded(name: str) -> None:
    graph = load_graph(name)
    assert graph.name == name
    convergence = load_convergence(name)
    assert list(convergence.epochs) == sorted(convergence.epochs)
    assert convergence.source.startswith("assumed")


def test_inception_has_the_weights_and_the_work_that_are_published() -> None:
    graph = load_graph("inception-v3")
    # torchvision's inception_v3: 27,161,264 weights, 3,326,696 of them in the auxiliary head
    assert graph.parameters == 27_161_264 - 3_326_696
    # 5.7 billion multiply-adds (Szegedy et al., 2015; torchvision says 5.71)
    assert sum(op.flops for op in graph.ops) / 2 == pytest.approx(5.71e9, rel=2e-3)


def test_big_lstm_has_the_weights_that_are_published() -> None:
    graph = load_graph("big-lstm")
    # Jozefowicz et al., 2016, table 1: 1.8 billion
    assert graph.parameters == pytest.approx(1.8e9, rel=0.02)
    dense = sum(op.parameters for op in graph.ops if op.name.startswith("lstm"))
    assert dense == 2 * (4 * 8192 * (1024 + 1024 + 1) + 8192 * 1024)


def test_gnmt_has_the_weights_of_its_layers() -> None:
    graph = load_graph("gnmt")
    hidden, vocabulary = 1024, 32320
    gates = [4 * hidden * (width + hidden + 2) for width in [hidden] * 5 + [2 * hidden] * 4]
    attention = 2 * hidden * hidden + 2 * hidden + 1
    assert graph.parameters == sum(gates) + attention + vocabulary * (2 * hidden + 1)


def test_a_card_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "ops.csv").write_text("op,flops\na,1e9\n")
    card = tmp_path / "net.toml"
    card.write_text('table = "ops.csv"\n')
    graph = load_graph(card)
    assert (graph.name, len(graph.ops)) == ("net", 1)
    assert load_graph(tmp_path / "ops.csv").ops == graph.ops
    assert load_graph(pd.read_csv(tmp_path / "ops.csv")).ops == graph.ops
    with pytest.raises(BadInput, match="convergence"):
        load_convergence(card)


def test_the_files_of_a_graph_are_its_card_and_its_table(tmp_path: Path) -> None:
    card, table = graph_files("gnmt")
    assert [(file.kind, file.path.name) for file in (card, table)] == [("graph", "gnmt.toml"), ("ops", "gnmt.csv")]
    assert table.sha256 == hashlib.sha256(table.path.read_bytes()).hexdigest()
    own = tmp_path / "own.csv"
    own.write_text("op,flops\na,1e9\n")
    assert [(file.kind, file.path) for file in graph_files(str(own))] == [("graph", own)]


def test_a_table_stands_beside_its_card(tmp_path: Path) -> None:
    (tmp_path / "ops.csv").write_text("op,flops\na,1e9\n")
    (tmp_path / "cards").mkdir()
    card = tmp_path / "cards/net.toml"
    card.write_text('table = "../ops.csv"\n[sources]\ntable = "assumed"\n')
    with pytest.raises(BadInput) as caught:
        load_graph(card)
    (fault,) = caught.value.faults
    assert (fault.key, fault.value, fault.nearest) == ("table", "../ops.csv", "ops.csv")


def test_faults_of_a_card(tmp_path: Path) -> None:
    card = tmp_path / "net.toml"
    card.write_text('tabel = "ops.csv"\n[convergence]\nsamples = 0\nbatches = [2, 1]\nepochs = [1.0, 2.0]\n')
    with pytest.raises(BadInput) as caught:
        load_graph(card)
    assert {fault.key for fault in caught.value.faults} >= {"tabel", "table", "sources.convergence.samples"}
    assert all(fault.file == str(card) for fault in caught.value.faults)
    with pytest.raises(BadInput) as caught:
        load_graph("inception-v4")
    assert caught.value.faults[0].nearest == "inception-v3"
