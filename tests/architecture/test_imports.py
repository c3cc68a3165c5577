"""What importing and running load, and which layer knows which."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MODULES = """
import json, os, sys
before = set(os.listdir("."))
{code}
names = sorted({{name.partition(".")[0] for name in sys.modules}})
print(json.dumps([names, sorted(set(os.listdir(".")) - before)]), file=sys.stderr)
"""


def loaded(code: str, folder: Path) -> tuple[set[str], list[str]]:
    """Top-level modules that a fresh process has after ``code``, and files that it left."""
    done = subprocess.run(
        [sys.executable, "-c", MODULES.format(code=code)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=os.environ | {"HOME": str(folder)},
    )
    names, written = json.loads(done.stderr.splitlines()[-1])
    return set(names), written


def test_importing_has_no_effects_and_loads_nothing_heavy(tmp_path: Path) -> None:
    names, written = loaded("import clustersim", tmp_path)
    assert not names & {"numpy", "pandas", "matplotlib", "simpy", "networkx", "pydantic", "pint", "cyclopts", "tqdm"}
    assert written == []


def test_offering_all_commands_loads_none_of_what_they_need(tmp_path: Path) -> None:
    names, written = loaded("from clustersim.cli import app; app()", tmp_path)
    assert "cyclopts" in names
    assert not names & {"numpy", "pandas", "matplotlib", "simpy", "networkx", "tqdm"}
    assert written == []


def test_every_module_imports_without_effects(tmp_path: Path) -> None:
    code = """
import importlib, pkgutil, random, warnings, signal
import clustersim
state, handlers, environment = random.getstate(), signal.getsignal(signal.SIGINT), dict(os.environ)
for module in pkgutil.walk_packages(clustersim.__path__, "clustersim."):
    importlib.import_module(module.name)
assert random.getstate() == state
assert signal.getsignal(signal.SIGINT) is handlers
assert dict(os.environ) == environment
"""
    names, written = loaded(code, tmp_path)
    assert not names & {"matplotlib", "pandas", "networkx", "pyarrow", "plotly"}
    assert written == []


def test_every_public_name_is_there() -> None:
    import clustersim

    for name in clustersim.__all__:
        assert getattr(clustersim, name) is not None
    assert set(clustersim.__all__) <= set(dir(clustersim))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = clustersim.nothing


def test_a_run_as_json_builds_no_table_and_no_figure(tmp_path: Path) -> None:
    code = """
from clustersim.cli import main
assert main(["run", "llama-2-7b-tp8-dp2", "--set", "global_batch=8", "--json"]) == 0
"""
    names, written = loaded(code, tmp_path)
    assert not names & {"matplotlib", "networkx", "plotly", "pandas", "pyarrow", "tqdm", "pint"}
    assert written == []


@pytest.mark.parametrize("tokens", [["--help"], ["run", "--help"], ["list"], ["show", "keys"]])
def test_help_and_lists_load_no_engine(tmp_path: Path, tokens: list[str]) -> None:
    names, _ = loaded(f"from clustersim.cli import main\nassert main({tokens}) == 0", tmp_path)
    assert not names & {"simpy", "pandas", "matplotlib", "networkx", "pint"}


def test_layers() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    if not lint.exists():
        pytest.skip("import-linter is not installed beside this Python")
    done = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
