"""What no file says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = {".py", ".toml", ".md", ".sh", ".ipynb", ".txt", ".cfg", ".csv", ".json", ""}
MACHINE = re.compile("|".join(["/" + "work/", "/" + "root/", "/" + "home/[a-z]", r"C:\\\\" + "Users"]))


def tracked() -> list[Path]:
    """Files under version control; of an unpacked source archive, all."""
    try:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        paths = [ROOT / line for line in listed.splitlines()]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob("*") if not any(part.startswith(".") for part in path.parts)]
    return [path for path in paths if path.is_file() and path.suffix in TEXT]


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if MACHINE.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", ".ci/run", "tests/all.sh"])
def test_what_a_checkout_has(name: str) -> None:
    path = ROOT / name
    assert path.is_file()
    if name == ".ci/run":
        assert path.stat().st_mode & 0o111
