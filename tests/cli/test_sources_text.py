"""Sources and what is worth measuring as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clustersim.cli.sources_text import coverage_text, sources_text


def test_numbers_of_one_source_share_a_line() -> None:
    text = sources_text(
        {
            "nodes": "assumed: one",
            "communication.node.a_latency": "measured: least squares",
            "communication.node.b_latency": "measured: with a_latency",
            "node.gpu.tensor_flop_per_s": "datasheet: NVIDIA",
            "node.gpu.vector_flop_per_s": "datasheet: NVIDIA",
            "kernels/h100-sxm.attention.flash-3": "measured: least squares",
        }
    )
    assert text.splitlines()[1:] == [
        "  the cluster",
        "    nodes: assumed: one",
        "  communication.node",
        "    a_latency, b_latency: measured: least squares",
        "  node.gpu",
        "    tensor_flop_per_s, vector_flop_per_s: datasheet: NVIDIA",
        "  kernels/h100-sxm",
        "    attention.flash-3: measured: least squares",
    ]


def test_what_is_worth_measuring_comes_by_its_share() -> None:
    kernel = {"device": "a40", "kind": "attention", "dtype": "bf16", "m": 8, "n": 8, "k": 64, "batch": 4, "form": ""}
    missing = {
        "kernels": [kernel | {"backward": 1, "causal": 1, "share": 0.2, "provenance": "assumed"}],
        "collectives": [
            {
                "collective": "all_reduce",
                "nbytes": 2**20,
                "ranks": 8,
                "nodes": 1,
                "share": 0.3,
                "provenance": "modelled",
            }
        ],
    }
    assert coverage_text({"modelled": 0.75, "assumed": 0.25, "measured": 0.0}, missing).splitlines() == [
        "op time: 75.0 % modelled, 25.0 % assumed",
        "worth measuring, with its share of op time",
        "    30.0 %  all_reduce of 1,048,576 B, 8 ranks on 1 node (modelled)",
        "    20.0 %  attention bf16 backward m 8 n 8 k 64 batch 4 on a40 (assumed)",
    ]


def test_calibrate_steps_writes_a_card(call: Callable[..., Any], tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    lines = [f"{k},{name},iteration_time,s,1.{k},1.0,0.02" for k, name in enumerate("abcd")]
    rows.write_text("\n".join(["id,source,metric,unit,measured,predicted,spread", *lines]) + "\n")
    answer = call("calibrate", "steps", str(rows), "--out", str(tmp_path / "cards"), "--json").json
    assert (answer["num_rows"], answer["num_sources"]) == (4, 4)
    assert (tmp_path / "cards" / "residuals" / "steps.toml").read_text().startswith("description = ")
    refused = call("calibrate", "steps", str(rows), "--topology", "dgx-h100")
    assert refused.code == 2
    assert "has no effect on steps" in refused.err
