"""Each row of the README's table of published systems is held by a test of the system."""

from __future__ import annotations

from pathlib import Path


def test_every_row_is_held(readme_rows: frozenset[str]) -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert len(readme_rows) > 5
    assert [row for row in sorted(readme_rows) if f'"{row}"' not in tests] == []


def test_another_number_is_told(readme_row: object) -> None:
    assert callable(readme_row)
    (told,) = readme_row("DeepSeek-V3 on 2,048 H800, DualPipe, fp8")
    assert told != 1.03 * told.expected
    assert told == 1.01 * told.expected
