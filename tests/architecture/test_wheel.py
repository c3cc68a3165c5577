"""The wheel carries the cards: installed elsewhere, it runs a job from another folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from clustersim.library.card import KINDS, list_cards
from clustersim.library.measurements import measurement_files

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the checkout, with what is installed: nothing is downloaded."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.glob("*.whl")
    return path


def test_it_holds_every_card_and_no_test(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind, cards in list_cards().items():
        for card, _ in cards:
            assert f"clustersim/_cards/{KINDS[kind]}/{card}.toml" in names
    for path in measurement_files():
        assert f"clustersim/_cards/workloads/measurements/{path.name}" in names
    assert "clustersim/py.typed" in names
    assert {name.split("/")[0] for name in names} == {
        "clustersim",
        *(n.split("/")[0] for n in names if "dist-info" in n),
    }


def test_installed_elsewhere_it_runs_a_job(wheel: Path, tmp_path: Path) -> None:
    target, folder = tmp_path / "site", tmp_path / "elsewhere"
    folder.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", str(target)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    code = (
        "import sys, clustersim; print(clustersim.__file__, file=sys.stderr)\n"
        "from clustersim.cli import main\n"
        "sys.exit(main(['run', 'llama-2-7b-tp8-dp2', '--set', 'global_batch=8', '--json']))"
    )
    environment = {key: value for key, value in os.environ.items() if key != "CLUSTERSIM_PATH"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stderr.splitlines()[0]).is_relative_to(target)
    assert json.loads(done.stdout)["num_ranks"] == 16
    assert list(folder.iterdir()) == []
