"""Kinds of value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.library.values import (
    Bytes,
    Factors,
    Flag,
    Name,
    Names,
    Number,
    Quantity,
    Refused,
    Value,
    Whole,
    Wholes,
    Word,
)


@pytest.mark.parametrize(
    ("kind", "good", "bad", "nearest"),
    [
        (Whole(1, 8), 8, 9, 8),
        (Whole(1, 8), 1, 0, 1),
        (Whole(1, 8), 2, 2.4, 2),
        (Whole(1, 8), 2, True, 1),
        (Whole(1, 8), 2, float("inf"), 8),
        (Whole(1, 8), 2, float("nan"), None),
        (Whole(1, 8), 2, "2", None),
        (Number(1), 1, 0.5, 1),
        (Number(1), 1.5, float("nan"), 1),
        (Number(0, 1), 0.5, 2, 1),
        (Number(0, 1, above=True), 0.5, 2, 1),
        (Number(0, above=True), 0.1, 0, None),
        (Bytes(), 100, -1, None),
        (Bytes(), 100, "400 GB/s", "400 GB"),
        (Bytes(), 100, 0, 1),
        (Quantity("s", "103 ms"), 0.103, "103 MB", "103 s"),
        (Quantity("B/s", "100 Gb/s"), 1, "100 GB", "100 GB/s"),
        (Wholes(1, 9, 3), (4, 4), [], None),
        (Wholes(1, 9, 3), (9,), [4, 4, 4, 4], None),
        (Wholes(1, 9, 3), (1,), [4, 0], None),
        (Wholes(1, 9, 3), (1,), 4, None),
        (Flag(), False, 1, True),
        (Flag(), True, "yes", None),
        (Word(("gpipe", "1f1b")), "1f1b", "1f1c", "1f1b"),
        (Word(("gpipe", "1f1b")), "1f1b", 7, None),
        (Name("a card"), "x", "", None),
        (Name("a card"), "x", 5, None),
        (Names("axes", ("tp", "dp")), ("tp",), ["xx"], "[tp, dp]"),
        (Names("chains", ("norm", "rope", "bias")), ("rope",), ["rope", "normm"], "[rope, norm]"),
        (Names("links"), ("a", "b"), [1], None),
        (Factors("rank"), {3: 1.5}, {"x": 1.5}, "{37: 1.3}"),
        (Factors("rank"), {3: 1.5}, {3: 0}, "{37: 1.3}"),
        (Factors("link"), {"a": 1.5}, {"a": float("inf")}, "{node0/nic1.tx: 0.5}"),
        (Factors("link"), {"a": 1.5}, "a", "{node0/nic1.tx: 0.5}"),
    ],
)
def test_kinds(kind: Value, good: Any, bad: Any, nearest: object) -> None:
    assert kind.read(good) == good
    assert kind.legal
    with pytest.raises(Refused) as refused:
        kind.read(bad)
    assert refused.value.rule.startswith(("must", "is not"))
    assert refused.value.nearest == nearest


def test_what_is_read_is_typed() -> None:
    assert Factors("rank").read({"37": 1}) == {37: 1.0}
    assert Names("links").read("leaf0/up") == ("leaf0/up",)
    assert Names("links").read(["a", "b"]) == ("a", "b")
    assert Bytes().read("1 MiB") == 2**20
    assert Quantity("s", "103 ms").read("103 ms") == 0.103
    assert Wholes(1, 9, 3).read([4, 4]) == (4, 4)


@given(st.one_of(st.integers(-100, 100), st.floats(), st.text(), st.booleans(), st.none(), st.lists(st.integers())))
def test_the_nearest_whole_number_is_legal(value: object) -> None:
    kind = Whole(2, 9)
    try:
        legal = kind.read(value)
    except Refused as refused:
        legal = 2 if refused.nearest is None else kind.read(refused.nearest)
    assert legal in range(2, 10)
