"""Job cards: what each promises must be possible, before any loader builds it."""

from math import prod
from typing import Any

import pytest

from clustersim.library.card import list_cards, read_card
from clustersim.library.model import load_model
from clustersim.library.topologies import load_topology

CARDS = [read_card("job", name).data for name, _ in list_cards()["job"]]
JOBS = [job for job in CARDS if "model" in job]
GRAPHS = [job for job in CARDS if "graph" in job]
GPUS_PER_NODE = {name: load_topology(name, nodes=1).num_devices for name in {job["topology"] for job in CARDS}}


@pytest.mark.parametrize("job", JOBS, ids=[job["name"] for job in JOBS])
class TestJob:
    def test_degrees_fill_the_nodes_and_divide_the_batch(self, job: dict[str, Any]) -> None:
        plan = job["plan"]
        num_gpus = job["nodes"] * GPUS_PER_NODE[job["topology"]]
        inner = plan["tp"] * plan.get("cp", 1) * plan["pp"]
        dp = plan.get("dp", num_gpus // inner)
        assert inner * dp == num_gpus
        assert job["global_batch"] % (dp * job["micro_batch"]) == 0
        if plan["schedule"] == "interleaved":
            assert job["global_batch"] // (dp * job["micro_batch"]) % plan["pp"] == 0
        else:
            assert plan["vpp"] == (2 if plan["schedule"] == "dualpipe" else 1)

    def test_the_model_can_be_split(self, job: dict[str, Any]) -> None:
        model, plan = load_model(job["model"]), job["plan"]
        assert model.num_heads % plan["tp"] == 0
        assert model.num_kv_heads % plan["tp"] == 0
        assert model.vocab % plan["tp"] == 0
        chunks = plan["pp"] * (1 if plan["schedule"] == "dualpipe" else plan["vpp"])
        # Even over the layers alone, or over the layers with embedding, head and modules beside it as one more each.
        assert model.num_layers % chunks == 0 or (model.num_layers + 2 + model.mtp) % chunks == 0
        assert job["seq_len"] <= model.max_seq_len

    def test_every_number_has_a_source(self, job: dict[str, Any]) -> None:
        assert {"nodes", "global_batch", "micro_batch", "seq_len", "plan"} <= set(job["sources"])
        for key in job["sources"]:
            held: Any = job
            for part in key.split("."):
                assert part in held
                held = held[part]


@pytest.mark.parametrize("job", GRAPHS, ids=[job["name"] for job in GRAPHS])
class TestGraphJob:
    def test_workers_fill_the_nodes(self, job: dict[str, Any]) -> None:
        assert job["nodes"] * GPUS_PER_NODE[job["topology"]] % job["graph.devices"] == 0
        assert sorted(job["graph.gpu_order"]) == list(range(GPUS_PER_NODE[job["topology"]]))

    def test_every_number_has_a_source(self, job: dict[str, Any]) -> None:
        assert set(job["sources"]) == set(job) - {"name", "description", "sources"}


def test_every_graph_has_a_job() -> None:
    assert [job["graph"] for job in GRAPHS] == [name for name, _ in list_cards()["graph"]]


def test_the_plain_jobs_are_there() -> None:
    sizes = {job["name"]: prod(job["plan"].get(axis, 1) for axis in ("tp", "pp", "dp")) for job in JOBS}
    assert sizes["gpt3-175b-1024"] == 1024
    assert sizes["llama-3-405b-16k"] == 16_384
    assert sizes["llama-2-7b-tp8-dp2"] == 16
