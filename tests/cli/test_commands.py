"""``list``, ``show``, ``compare``, ``plot``, ``export`` and the commands there are."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustersim.cli import app
from clustersim.library.card import KINDS, list_cards
from clustersim.library.keys import KEYS
from clustersim.library.model import load_model
from clustersim.trace.formats import parquet

SHORT = ("tiny.toml",)


def test_the_commands_there_are() -> None:
    assert {name for name in app() if not name.startswith("-")} == {
        "run",
        "collective",
        "memory",
        "calibrate",
        "validate",
        "reproduce",
        "list",
        "show",
        "plot",
        "export",
        "compare",
    }


class TestList:
    def test_json_is_every_card_by_kind(self, call: Callable[..., Any]) -> None:
        answer = call("list", "--json").json
        assert set(answer) == set(KINDS)
        cards = list_cards()
        assert {kind: [card["name"] for card in found] for kind, found in answer.items()} == {
            kind: [name for name, _ in found] for kind, found in cards.items()
        }
        assert all(card["description"] for found in answer.values() for card in found)

    @pytest.mark.parametrize("kind", ["topology", "topologies", "gpu", "gpus", "jobs"])
    def test_one_kind(self, call: Callable[..., Any], kind: str) -> None:
        answer = call("list", kind, "--json")
        assert (answer.code, len(answer.json)) == (0, 1)

    def test_an_unknown_kind(self, call: Callable[..., Any]) -> None:
        answer = call("list", "modle", "--json")
        assert answer.code == 2
        assert answer.json["errors"][0]["nearest"] == "model"

    def test_a_broken_card_of_ones_own_is_told_and_the_rest_listed(
        self, call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = {card["name"] for card in call("list", "gpu", "--json").json["gpu"]}
        (tmp_path / "own/topologies/parts/gpu").mkdir(parents=True)
        (tmp_path / "own/flat.toml").write_text("kind =")
        (tmp_path / "own/topologies/parts/gpu/a10.toml").write_text("kind = 'link'")
        (tmp_path / "own/topologies/parts/gpu/mine.toml").write_text("description = 'mine'")
        monkeypatch.setenv("CLUSTERSIM_PATH", str(tmp_path / "own"))
        answer = call("list", "gpu", "--json")
        assert answer.code == 0
        assert {card["name"] for card in answer.json["gpu"]} == names - {"a10"} | {"mine"}
        told = [line.split(": ")[:3] for line in answer.err.splitlines()]
        assert [(what, Path(path).name) for what, _, path in told] == [
            ("warning", "flat.toml"),
            ("warning", "a10.toml"),
        ]

    def test_it_fits_eighty_columns(self, call: Callable[..., Any]) -> None:
        assert max(map(len, call("list").out.splitlines())) <= 80


class TestShow:
    def test_every_key_with_what_is_legal(self, call: Callable[..., Any]) -> None:
        answer = call("show", "keys", "--json").json
        assert list(answer) == list(KEYS)
        assert all(set(row) == {"unit", "default", "legal", "meaning"} for row in answer.values())
        text = call("show", "keys").out
        assert all(re.search(rf"^{re.escape(key)}: ", text, re.MULTILINE) for key in KEYS)
        assert max(map(len, text.splitlines())) <= 80

    def test_a_profile_says_where_its_switches_are_from(self, call: Callable[..., Any]) -> None:
        for name, _ in list_cards()["profile"]:
            shown = json.loads(call("show", "profile", name, "--json").out)
            assert shown["name"] == name
            assert {"launch", "fusion", "update_kernels"} <= shown["sources"].keys()

    @pytest.mark.parametrize(
        ("asked", "first", "number"), [("perturb", "perturb.slow_ranks", 4), ("plan.tp", "plan.tp", 1)]
    )
    def test_some_keys(self, call: Callable[..., Any], asked: str, first: str, number: int) -> None:
        answer = call("show", "keys", asked, "--json").json
        assert (next(iter(answer)), len(answer)) == (first, number)

    def test_keys_that_there_are_not(self, call: Callable[..., Any]) -> None:
        answer = call("show", "keys", "perturbb", "--json")
        assert (answer.code, answer.json["errors"][0]["nearest"]) == (2, "perturb")

    def test_numbers_of_a_part_have_their_units(self, call: Callable[..., Any]) -> None:
        text = call("show", "gpu", "h100-sxm").out
        for told in ("3.35 TB/s", "989.4 TFLOP/s", "85.52 GB", " 2 us"):
            assert told in text
        assert call("show", "gpu", "h100-sxm", "--json").json["tensor_flop_per_s"]["bf16"] == 989.4e12

    @pytest.mark.parametrize(
        "shown",
        [
            ("gpu", "h100-sxm"),
            ("communication", "nccl-h100"),
            ("job", "llama-2-7b-tp8-dp2"),
            ("model", "gpt2"),
            ("topology", "dgx-h100"),
            ("topology", "frontier"),
        ],
    )
    def test_a_card_fits_eighty_columns(self, call: Callable[..., Any], shown: tuple[str, str]) -> None:
        assert max(map(len, call("show", *shown).out.splitlines())) <= 80

    def test_a_model(self, call: Callable[..., Any]) -> None:
        answer = call("show", "model", "llama-2-7b", "--json").json
        assert answer["num_parameters"] == load_model("llama-2-7b").num_parameters == 6_738_415_616
        assert answer["num_active_parameters"] == answer["num_parameters"]
        assert answer["shapes"]["hidden"] == 4096
        assert sum(answer["parameters_by_part"].values()) == answer["num_parameters"]
        assert "6,738,415,616" in call("show", "model", "llama-2-7b").out

    def test_a_topology(self, call: Callable[..., Any]) -> None:
        answer = call("show", "topology", "dgx-h100", "--json").json
        assert answer["gpus"] == {"h100-sxm": 8}
        assert any(resource["kind"] == "nic" for resource in answer["resources"].values())

    def test_names_of_links_are_few_and_right(self, call: Callable[..., Any]) -> None:
        tokens = ("show", "topology", "dgx-h100", "--set", "nodes=2048")
        answer = call(*tokens, "--json").json
        assert sum(row["count"] for row in answer["names"]) == answer["num_resources"] > 100_000
        text = call(*tokens).out
        assert re.search(r"^node\{0\.\.2047\}/nic\{0\.\.7\}\.tx +16,384  nic +48 GB/s", text, re.MULTILINE)
        assert len(re.findall(r"^(?:node|leaf|pod)\S*\{.* GB/s|TB/s", text, re.MULTILINE)) < 20
        assert "56 of 64  xgmi" in call("show", "topology", "hgx-mi300x").out
        assert call("show", "topology", "hgx-mi300x").out.count("xgmi.gpu") == 1

    @pytest.mark.parametrize("setting", ["perturb.slow_links={leaf0/up: 0.5}", "plan.tp=2", "nodes=x"])
    def test_a_setting_that_makes_no_topology(self, call: Callable[..., Any], setting: str) -> None:
        assert call("show", "topology", "dgx-h100", "--set", setting).code == 2
        assert call("show", "model", "gpt2", "--set", "nodes=2").code == 2

    def test_a_job(self, call: Callable[..., Any]) -> None:
        answer = call("show", "job", "tiny.toml", "--json").json
        assert answer["settings"]["plan.dp"] == 8

    @pytest.mark.parametrize("kind", ["part", "gpu"])
    def test_a_part_with_its_sources(self, call: Callable[..., Any], kind: str) -> None:
        answer = call("show", kind, "h100-sxm", "--json").json
        assert answer["kind"] == "gpu"
        assert answer["memory_bandwidth"] == 3.35e12
        assert answer["sources"]["memory_bandwidth"]

    @pytest.mark.parametrize("kind", KINDS)
    def test_whatever_is_listed_is_shown(self, call: Callable[..., Any], kind: str) -> None:
        name = call("list", kind, "--json").json[kind][0]["name"]
        assert call("show", kind, name, "--json").json["name"]
        assert name in call("show", kind, name).out

    @pytest.mark.parametrize("tokens", [("part", "h100-sx"), ("modle", "x"), ("model",), ("model", "llama-2-7")])
    def test_what_there_is_not(self, call: Callable[..., Any], tokens: tuple[str, ...]) -> None:
        answer = call("show", *tokens, "--json")
        assert answer.code == 2
        assert answer.json["errors"]


class TestCompare:
    def test_a_folder_with_a_job(self, call: Callable[..., Any]) -> None:
        call("run", *SHORT, "--set", "micro_batch=2", "--out", "a")
        answer = call("compare", "a", "tiny.toml", "--json").json
        assert answer["changed_inputs"] == {"micro_batch": {"baseline": 2, "candidate": 1}}
        step = answer["metrics"]["step_time_s"]
        assert step["delta"] == pytest.approx(step["candidate"] - step["baseline"])
        assert step["baseline"] == json.loads(Path("a/summary.json").read_text())["step_time_s"]
        assert answer["breakdown_s"]["compute"]["ratio"] > 0
        text = call("compare", "a", "tiny.toml").out
        assert "micro_batch" in text
        assert max(map(len, text.splitlines())) <= 80

    def test_large_amounts_fit_eighty_columns(self, call: Callable[..., Any]) -> None:
        text = call("compare", "zero-infinity-40b", "mlp-offload-40b").out
        assert re.search(r"^peak_memory_bytes.nvme +\S+ GiB +\S+ GiB +-\S+ GiB ", text, re.MULTILINE)
        assert max(map(len, text.splitlines())) <= 80

    def test_lists_by_what_they_do_not_share(self, call: Callable[..., Any]) -> None:
        for name, fusion in (("a", "[norm, activation]"), ("b", "[norm, rope]")):
            call("run", *SHORT, "--set", f"plan.fusion={fusion}", "--out", name)
        assert "plan.fusion  without activation  ->  with rope\n" in call("compare", "a", "b").out
        assert call("compare", "a", "b", "--json").json["changed_inputs"]["plan.fusion"] == {
            "baseline": ["norm", "activation"],
            "candidate": ["norm", "rope"],
        }

    def test_a_run_with_itself(self, call: Callable[..., Any]) -> None:
        call("run", *SHORT, "--out", "a")
        answer = call("compare", "a", "a", "--json").json
        assert answer["changed_inputs"] == {}
        assert {pair["delta"] for pair in answer["metrics"].values()} == {0}

    def test_a_collective_that_is_sent_otherwise(self, call: Callable[..., Any]) -> None:
        call("run", *SHORT, "--out", "a")
        call("run", *SHORT, "--out", "b")
        assert call("compare", "a", "b", "--json").json["changed_collectives"] == []
        assert "sent otherwise" not in call("compare", "a", "b").out
        table = pd.read_parquet("b/collectives.parquet")
        before = f"{table.loc[0, 'algorithm']}/{table.loc[0, 'protocol']}"
        table.loc[0, ["algorithm", "protocol"]] = ["tree", "LL"]
        table.to_parquet("b/collectives.parquet")
        (changed,) = call("compare", "a", "b", "--json").json["changed_collectives"]
        assert (changed["baseline"], changed["candidate"]) == (before, "tree/LL")
        assert (changed["family"], changed["kind"]) == (table.loc[0, "family"], table.loc[0, "kind"])
        assert f"{before}  ->  tree/LL" in call("compare", "a", "b").out

    def test_a_broken_folder(self, call: Callable[..., Any]) -> None:
        call("run", *SHORT, "--out", "a")
        Path("a/summary.json").write_text("{")
        assert call("compare", "a", "tiny.toml", "--json").code == 2


class TestPlot:
    @pytest.mark.parametrize("kind", ["timeline", "pipeline", "breakdown", "memory", "links"])
    def test_of_a_folder_and_of_a_job(self, call: Callable[..., Any], kind: str) -> None:
        call("run", *SHORT, "--out", "a")
        assert call("plot", "a", "--kind", kind, "--out", "of_folder.png").code == 0
        assert call("plot", "tiny.toml", "--kind", kind, "--out", "of_job.png").code == 0
        assert Path("of_folder.png").read_bytes() == Path("of_job.png").read_bytes()

    def test_of_a_topology(self, call: Callable[..., Any]) -> None:
        assert call("plot", "topology", "dgx-h100", "--set", "nodes=512", "--out", "cluster.png").code == 0
        assert Path("cluster.png").read_bytes().startswith(b"\x89PNG")
        assert "dgx-h10" in call("plot", "topology", "dgx-h10", "--out", "other.png").err
        assert not Path("other.png").exists()

    @pytest.mark.parametrize(
        "tokens",
        [("tiny.toml", "dgx-h100"), ("tiny.toml", "--set", "nodes=2"), ("topology", "dgx-h100", "--set", "a=1")],
    )
    def test_what_is_no_topology(self, call: Callable[..., Any], tokens: tuple[str, ...]) -> None:
        assert call("plot", *tokens, "--out", "figure.png").code == 2

    @pytest.mark.parametrize("out", ["figure.gif", "nowhere/figure.png", "/proc/figure.png"])
    def test_where_it_cannot_go(self, call: Callable[..., Any], out: str) -> None:
        assert call("plot", *SHORT, "--out", out).code == 2


class TestExport:
    def test_parquet_is_the_trace(self, call: Callable[..., Any]) -> None:
        call("run", *SHORT, "--out", "a")
        assert call("export", "a", "--format", "parquet", "--out", "t.parquet").code == 0
        pd.testing.assert_frame_equal(parquet.read("t.parquet"), parquet.read("a/trace.parquet"))

    def test_chrome(self, call: Callable[..., Any]) -> None:
        assert call("export", *SHORT, "--format", "chrome", "--out", "t.json").code == 0
        events = json.loads(Path("t.json").read_text())["traceEvents"]
        assert any(event["ph"] == "X" for event in events)

    def test_hta_has_a_file_a_rank(self, call: Callable[..., Any]) -> None:
        assert call("export", *SHORT, "--format", "hta", "--out", "hta").code == 0
        paths = sorted(Path("hta").iterdir())
        assert [path.name for path in paths] == ["rank_0.json.gz"]
        assert json.loads(gzip.decompress(paths[0].read_bytes()))["distributedInfo"]["rank"] == 0

    @pytest.mark.parametrize(
        ("to", "out"),
        [
            ("hta", "."),
            ("chrome", "."),
            ("parquet", "nowhere/t.parquet"),
            ("chrome", "/proc/t.json"),
            ("hta", "/proc/h"),
        ],
    )
    def test_where_it_cannot_go(self, call: Callable[..., Any], to: str, out: str) -> None:
        assert call("export", *SHORT, "--format", to, "--out", out).code == 2
