"""Figures leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clustersim.study.figure import SUFFIXES, save

SCRIPT = """
import os, sys
from pathlib import Path
from clustersim.study.figure import save

def draw():
    from matplotlib.figure import Figure
    axes = Figure().subplots()
    axes.set_title("text needs a font")
    return axes

save(draw, Path(sys.argv[1]))
assert "MPLCONFIGDIR" not in os.environ
"""


def test_nothing_is_written_in_the_users_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    hidden = {"HOME": str(home), "TMPDIR": str(tmp_path)}
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "MPL"))}
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "f.png")], env=kept | hidden, check=True)
    assert list(home.rglob("*")) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.png", "home"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_suffixes(tmp_path: Path, suffix: str) -> None:
    from matplotlib.figure import Figure

    path = save(lambda: Figure().subplots(), tmp_path / f"figure{suffix}")
    assert path.stat().st_size > 500
