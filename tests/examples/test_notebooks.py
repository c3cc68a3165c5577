"""The notebooks run from top to bottom, print no warnings, and are stored without what they print."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted(Path(__file__).parents[2].joinpath("notebooks").glob("*.ipynb"))
FIGURES = {"01_first_run": 3, "02_what_if": 5, "13_hybrid_parallelism": 2, "14_offloading": 2}
SECONDS = 30.0
"""CPU time of one notebook at most; wall time would judge what else the machine does."""

# of the kernel's client, not of the notebook, whose own warnings are seen in what it prints
pytestmark = pytest.mark.filterwarnings("ignore:::zmq", "ignore:::jupyter_client", "ignore:::nbclient")


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def test_all_are_known() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(FIGURES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_without_outputs(path: Path) -> None:
    code = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert code
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    notebook = read(path)
    before = os.times()
    NotebookClient(
        notebook, kernel_name="python3", timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = [output for output in outputs if output.output_type == "stream"]
    assert [output.text for output in printed if output.name == "stderr"] == []
    assert sum("image/png" in output.get("data", {}) for output in outputs) == FIGURES[path.stem]
    assert list(tmp_path.iterdir()) == []
    after = os.times()
    spent = [getattr(after, name) - getattr(before, name) for name in ("children_user", "children_system")]
    assert 0 < sum(spent) < SECONDS
