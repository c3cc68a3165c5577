"""How texts become values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.library.values import read_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        (" 8 ", 8),
        ("1_000", 1000),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("none", "none"),
        ("1f1b", "1f1b"),
        ("400 GB", "400 GB"),
        ("'8'", "8"),
        ("[a, b]", ["a", "b"]),
        ("[]", []),
        ("{37: 1.3}", {"37": 1.3}),
        ("{node0/nic1.tx: 0.5, leaf0/up = 0.25}", {"node0/nic1.tx": 0.5, "leaf0/up": 0.25}),
        ("{37}", {"37": ""}),
        ("", ""),
    ],
)
def test_texts(text: str, value: object) -> None:
    assert read_text(text) == value
    assert type(read_text(text)) is type(value)


@given(st.text())
def test_any_text_is_some_value(text: str) -> None:
    read_text(text)
