"""Bad input: every fault at once, on one line each and as JSON; nothing written, no stack trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clustersim.library.keys import KEYS
from clustersim.library.settings import read_settings
from clustersim.library.values import Word

BARE = ("run", "--model", "gpt2", "--topology", "dgx-h100", "--set", "global_batch=16", "--set", "seq_len=128")


def keys(answer: Any) -> list[str]:
    assert answer.code == 2
    assert answer.json["status"] == "bad_input"
    assert all(set(error) == {"file", "key", "value", "rule", "nearest"} for error in answer.json["errors"])
    assert len(answer.err.splitlines()) == len(answer.json["errors"])
    assert "Traceback" not in answer.err
    return [error["key"] for error in answer.json["errors"]]


def test_all_at_once_with_the_nearest_legal_value(call: Callable[..., Any]) -> None:
    answer = call(
        *BARE, "--set", "plan.tpp=8", "--set", "seq_len=nan", "--set", "plan.tp=5", "--set", "nodes=0", "--json"
    )
    assert set(keys(answer)) == {"plan.tpp", "seq_len", "plan.tp", "nodes"}
    nearest = {error["key"]: error["nearest"] for error in answer.json["errors"]}
    assert nearest == {"plan.tpp": "plan.tp", "seq_len": 4096, "plan.tp": 4, "nodes": 1}
    assert "plan.tpp: '8' is not a key" in answer.err


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "0", "1.5", "many", "", "{}", "10**9", "99999999999"])
@pytest.mark.parametrize("key", ["global_batch", "micro_batch", "seq_len", "nodes", "plan.tp", "plan.dp", "steps"])
def test_counts(call: Callable[..., Any], key: str, value: str) -> None:
    answer = call(*BARE, "--set", f"{key}={value}", "--json")
    assert keys(answer) == [key]
    assert answer.json["errors"][0]["value"] == value


@pytest.mark.parametrize(
    "setting",
    [
        "dtype=bf17",
        "plan.schedule=zigzag",
        "plan.recompute=some",
        "plan.sequence_parallel=7",
        "plan.axis_order=tp",
        "plan.bucket_bytes=400 GB/s",
        "plan.bucket_bytes=-1",
        "fabric=fat_treee",
        "fabric.oversubscription=0.5",
        "fabric.oversubscription=nan",
        "fabric.levels=9",
        "fabric.ecmp=hash",
        "nics_per_node=3",
        "perturb.slow_ranks={0: -1}",
        "perturb.slow_ranks={0: nan}",
        "perturb.slow_ranks={8: 2}",
        "perturb.slow_ranks=0",
        "perturb.slow_links={nowhere: 0.5}",
        "perturb.failed_links=[nowhere]",
        "limits.wall_s=0",
        "seed=-1",
        "model=gpt3",
        "topology=dgx",
        "plan.zero=4",
        "plan.context=spiral",
        "plan.tp_overlap=rings",
        "plan.fsdp=7",
        "plan.sync_every=0",
        "plan.zeropp=[qzw]",
        "plan.offload.policy=zero-offlod",
        "profile=megatron-2222",
        "nonsense=1",
        "nothing",
    ],
)
def test_one_setting(call: Callable[..., Any], setting: str) -> None:
    found = keys(call(*BARE, "--set", setting, "--json"))
    assert len(found) == 1
    assert found[0].startswith(setting.partition("=")[0])


@pytest.mark.parametrize("key", [key for key, about in KEYS.items() if isinstance(about.value, Word)])
def test_every_word_can_be_typed(key: str) -> None:
    words = KEYS[key].value.words  # type: ignore[attr-defined]
    assert [read_settings([f"{key}={word}"]) for word in words] == [({key: word}, []) for word in words]


def test_what_must_be_given(call: Callable[..., Any]) -> None:
    assert keys(call("run", "--set", "steps=1", "--json")) == ["model", "topology", "global_batch", "seq_len"]


def test_devices_that_do_not_work_out_come_with_the_arithmetic(call: Callable[..., Any]) -> None:
    answer = call("run", "llama-3-70b-tp8-pp4", "--set", "nodes=3", "--json")
    assert keys(answer) == ["nodes"]
    assert "tp 8 x pp 4 x dp ? = 24 devices" in answer.json["errors"][0]["rule"]
    assert keys(call("run", "tiny.toml", "--set", "nodes=2", "--json")) == ["plan.dp"]


def test_a_refused_number_of_nodes_is_told_once(call: Callable[..., Any]) -> None:
    answer = call("run", "tiny.toml", "--set", "nodes=many", "--set", "plan.dp=16", "--json")
    assert keys(answer) == ["nodes"]


def test_a_run_too_long_is_refused_before_it_is_built(call: Callable[..., Any]) -> None:
    assert keys(call(*BARE, "--set", "global_batch=16777216", "--set", "steps=1000", "--json")) == ["global_batch"]


class TestFiles:
    def test_a_card_names_its_faults_by_file(self, call: Callable[..., Any], tmp_path: Path) -> None:
        (tmp_path / "bad.toml").write_text('model = "gpt2"\ntopologie = "dgx-h100"\nseq_len = 128\n[plan]\ntp = 0\n')
        answer = call("run", "bad.toml", "--set", "nodes=0", "--json")
        assert keys(answer) == ["topologie", "plan.tp", "nodes"]
        assert [error["file"] for error in answer.json["errors"]] == ["bad.toml", "bad.toml", ""]

    def test_a_value_from_a_card_and_one_typed(self, call: Callable[..., Any]) -> None:
        answer = call("run", "tiny.toml", "--set", "micro_batch=3", "--set", "plan.tp=2", "--json")
        assert [(error["key"], error["file"]) for error in answer.json["errors"]] == [("plan.dp", "tiny.toml")]
        answer = call("run", "tiny.toml", "--set", "plan.dp=4", "--json")
        assert [(error["key"], error["file"]) for error in answer.json["errors"]] == [("plan.dp", "")]

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("broken.toml", "model = "),
            ("binary.toml", "\x00\x01"),
            ("other.toml", 'kind = "model"'),
            ("list.toml", "[[a]]"),
        ],
    )
    def test_jobs(self, call: Callable[..., Any], tmp_path: Path, name: str, content: str) -> None:
        (tmp_path / name).write_text(content)
        assert keys(call("run", name, "--json"))

    @pytest.mark.parametrize(
        "content", ["{", "[]", "{}", '{"model_type": "llama", "num_hidden_layers": 1000000000}', '{"model_type": NaN}']
    )
    def test_configs(self, call: Callable[..., Any], tmp_path: Path, content: str) -> None:
        (tmp_path / "config.json").write_text(content)
        answer = call("run", "--model", "config.json", "--topology", "dgx-h100", "--json")
        assert {"global_batch", "seq_len"} < set(keys(answer))
        assert any(error["file"] == "config.json" for error in answer.json["errors"])

    def test_a_billion_layers(self, call: Callable[..., Any], tmp_path: Path) -> None:
        config = {
            "model_type": "llama",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_attention_heads": 4,
            "num_hidden_layers": 10**9,
            "vocab_size": 512,
            "max_position_embeddings": 128,
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False,
        }
        (tmp_path / "config.json").write_text(json.dumps(config))
        answer = call(*BARE, "--set", "model=config.json", "--json")
        assert any("layers" in error["key"] for error in answer.json["errors"])
        assert answer.code == 2

    def test_an_amount_for_a_rate_in_a_topology(self, call: Callable[..., Any], tmp_path: Path) -> None:
        (tmp_path / "mine.toml").write_text(TOPOLOGY)
        (tmp_path / "slow.toml").write_text(NIC)
        answer = call(*BARE, "--set", "topology=./mine.toml", "--json")
        assert keys(answer) == ["bandwidth"]
        error = answer.json["errors"][0]
        assert error["file"].endswith("slow.toml")
        assert (error["value"], error["nearest"]) == ("400 GB", "400 GB/s")

    def test_missing_files(self, call: Callable[..., Any]) -> None:
        assert keys(call("run", "./none.toml", "--json")) == ["job"]
        answer = call("run", "--model", "./none.json", "--topology", "./none.toml", "--json")
        assert keys(answer) == ["global_batch", "seq_len", "file", "topology"]
        assert keys(call("compare", "nowhere", "tiny2", "--json")) == ["job", "job"]


class TestUsage:
    @pytest.mark.parametrize(
        "tokens",
        [
            ("rum",),
            ("run", "--sett", "a=1"),
            ("run", "a", "b"),
            ("show",),
            ("plot", "tiny.toml"),
            ("compare", "tiny.toml"),
        ],
    )
    def test_mistakes(self, call: Callable[..., Any], tokens: tuple[str, ...]) -> None:
        assert keys(call(*tokens, "--json")) == ["command line"]

    def test_commands_that_are_not_built_are_not_offered(self, call: Callable[..., Any]) -> None:
        assert call("validate", "--family", "nope").code == 2  # without a setting it predicts the library's own rows
        for command in ("memory", "collective", "calibrate"):
            assert call(command).code == 2


TOPOLOGY = """\
nodes = 2
[node]
build = "nvswitch"
gpu = "h100-sxm"
num_gpus = 8
link = "nvlink4"
num_links = 18
switch = "nvswitch3"
[host]
cpu = "xeon-8480c"
num_sockets = 2
link = "pcie5"
[fabric]
build = "fat_tree"
nic = "./slow.toml"
nics_per_node = 8
switch = "quantum-2"
[sources]
nodes = "assumed"
node = "assumed"
host = "assumed"
fabric = "assumed"
"""

NIC = """\
bandwidth = "400 GB"
latency = "1 us"
[sources]
bandwidth = "assumed"
latency = "assumed"
"""
