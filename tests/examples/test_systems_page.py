"""docs/systems.md names only what there is."""

import re
import shlex
from pathlib import Path

from clustersim.library.card import list_cards
from clustersim.library.job import load_job
from clustersim.library.settings import read_settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "systems.md").read_text()


def test_its_tests_exist() -> None:
    tests = re.findall(r"`(tests/[\w/]+\.py)`", PAGE)
    assert tests
    assert [path for path in tests if not (ROOT / path).is_file()] == []


def test_its_jobs_exist() -> None:
    jobs = {name for name, _ in list_cards()["job"]}
    named = {name for line in re.findall(r"^Jobs? .*", PAGE, re.M) for name in re.findall(r"`([\w.-]+)`", line)}
    assert named
    assert named <= jobs


def test_its_commands_are_legal() -> None:
    commands = [shlex.split(line) for line in re.findall(r"^\$ (clustersim run .*)", PAGE.replace("\\\n", " "), re.M)]
    assert commands
    for _, _, job, *options in commands:
        setup = load_job(job)
        for _, setting in zip(options[::2], options[1::2], strict=True):
            key, _, given = setting.partition("=")
            for one in given.split(","):
                values, faults = read_settings([f"{key}={one}"])
                assert not faults
                setup = setup.with_values(values)
