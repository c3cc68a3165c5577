"""Cards without what one publisher measured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import clustersim as cs
from clustersim.library import load_part
from clustersim.library.card import find_card
from clustersim.study import cards_without as module
from clustersim.study.cards_without import cards_without, library_with, publishers
from clustersim.study.steps import left_out
from clustersim.study.validation_text import validation_text

KERNELS = """id,source,url_or_repo_path,hardware,op,dtype,m,n,k,metric,value,unit
"""


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Twelve products of H100, those of one publisher ten times as slow as those of the other; no collectives."""
    rows = [
        f"{by}{m},lab,{by}/repo file {m},H100-SXM5,gemm,bf16,{m},4096,4096,time,{slow * m * 5.6e-5},ms"
        for by, slow in (("one", 1), ("two", 10))
        for m in (1024, 2048, 4096, 8192, 16384, 32768)
    ]
    (tmp_path / "kernels.csv").write_text(KERNELS + "\n".join(rows) + "\n")
    (tmp_path / "collectives.csv").write_text(
        "id,source,url_or_repo_path,hardware,gpus,collective,size_bytes,time_us,confidence\n"
        "a,lab,three/repo,H100,8,all_reduce,1048576,60,low\n"
    )
    files = (tmp_path / "kernels.csv", tmp_path / "collectives.csv")
    monkeypatch.setattr(module, "measurement_files", lambda: files)
    for cached in (module._kernels, module._collectives):
        cached.cache_clear()
    yield
    for cached in (module._kernels, module._collectives):
        cached.cache_clear()


def test_a_publisher_is_a_repository_or_an_address(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("source,url_or_repo_path\nlab,one/repo some file\nlab,arXiv 1234.5\nlab,\n")
    assert publishers(path) == {2: "one/repo", 3: "arXiv 1234.5", 4: "lab"}


@pytest.mark.usefixtures("measured")
def test_what_one_measured_is_not_in_the_card() -> None:
    pytest.importorskip("scipy")
    assert cards_without("nobody") == {}
    assert cards_without("three/repo") == {}  # of low confidence
    peaks = {}
    for name in ("one/repo", "two/repo"):
        texts = cards_without(name)
        assert list(texts) == ["kernels/h100-sxm.toml"]
        with library_with(texts):
            kernels = load_part("gpu", "h100-sxm").kernels
        assert kernels is not None
        peaks[name] = kernels.gemm["bf16"].peak
    assert peaks["two/repo"] > 3 * peaks["one/repo"]  # without two: only the quick ones


def test_cards_are_found_first_and_only_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTERSIM_PATH", str(tmp_path))
    own = find_card("kernels", "b200")
    with library_with({"kernels/b200.toml": "x = 1\n"}):
        assert find_card("kernels", "b200") != own
        assert os.environ["CLUSTERSIM_PATH"].endswith(str(tmp_path))
    assert find_card("kernels", "b200") == own
    assert os.environ["CLUSTERSIM_PATH"] == str(tmp_path)


def test_steps_of_a_publisher_are_judged_without_its_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = find_card("kernels", "generic").read_text()
    monkeypatch.setattr(
        left_out, "cards_without", lambda name: {"kernels/a100-sxm-80gb.toml": slow} if name == "mine/repo" else {}
    )
    head = (
        "id,source,url_or_repo_path,hardware,gpus,layers,hidden,heads,ffn,vocab,seq_len,tp,pp,micro_batch,global_batch,"
        "metric,value,unit,confidence"
    )
    row = "A100,1,2,1024,16,4096,51200,1024,1,1,2,2,iteration_time,0.1,s,high"
    path = tmp_path / "steps.csv"
    path.write_text(f"{head}\na,lab,mine/repo file,{row}\nb,lab,other/repo,{row}\n")
    report = cs.validate(path, leave_out="source")
    own, other = report.rows
    assert own.error == other.error == other.left_out_error
    assert own.left_out_error is not None
    assert own.left_out_error != pytest.approx(own.error, abs=1e-3)
    assert "left out" in validation_text(report)
