"""How long the documents of a data set are: given, or drawn."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault

__all__ = ["LONGEST", "Lengths", "SeqLens"]

SeqLens = str | Sequence[int]
"""``fixed``, a document a sequence; ``uniform:LOW:HIGH``; ``lognormal:MEDIAN:SIGMA``; lengths, or a .csv of them."""

LONGEST = 2**24
"""Tokens of the longest document: as many as of the longest sequence."""


class Lengths:
    """Where lengths come from, checked when it is made.

    Parameters
    ----------
    seq_lens : str or Sequence[int]
        ``uniform:LOW:HIGH``, both included; ``lognormal:MEDIAN:SIGMA``, the logarithm's standard deviation; lengths, or
        the path of a .csv with one a row
    seed : int
        of the drawing

    Raises
    ------
    BadInput
        when the word is none of these, or the file is missing or has a number that is not a length
    """

    def __init__(self, seq_lens: SeqLens, *, seed: int) -> None:
        self._seed = seed
        self._given: list[int] = []
        self._form, self._numbers = "", (0.0, 0.0)
        if isinstance(seq_lens, str) and seq_lens.partition(":")[0] in ("uniform", "lognormal"):
            self._form, *texts = seq_lens.split(":")
            self._numbers = _parsed(seq_lens, self._form, texts)
        else:
            self._given = _legal(_read(seq_lens) if isinstance(seq_lens, str) else seq_lens)

    def __iter__(self) -> Iterator[int]:
        """Without end; those that are given start over."""
        if self._given:
            while True:
                yield from self._given
        generator = np.random.default_rng(self._seed)
        while True:
            yield from self._drawn(generator).tolist()

    def _drawn(self, generator: np.random.Generator) -> NDArray[np.int64]:
        first, second = self._numbers
        if self._form == "uniform":
            return generator.integers(int(first), int(second), size=1024, endpoint=True)
        lengths = np.rint(generator.lognormal(np.log(first), second, size=1024))
        return lengths.clip(1, LONGEST).astype(np.int64)


def _parsed(word: str, form: str, texts: Sequence[str]) -> tuple[float, float]:
    """The two numbers of a distribution."""
    usual = {"uniform": "uniform:256:4096", "lognormal": "lognormal:1024:1.0"}[form]
    rule = f"must be {'uniform:LOW:HIGH' if form == 'uniform' else 'lognormal:MEDIAN:SIGMA'}"
    try:
        first, second = (float(text) for text in texts)
    except ValueError:
        raise BadInput([Fault(key="seq_lens", value=word, rule=rule, nearest=usual)]) from None
    if form == "uniform":
        legal = 1 <= first <= second <= LONGEST and first.is_integer() and second.is_integer()
        rule += f", whole numbers from 1 to {LONGEST}"
    else:
        legal = 1 <= first <= LONGEST and 0 <= second <= 8
        rule += f", a median from 1 to {LONGEST} and a sigma from 0 to 8"
    if not legal:
        raise BadInput([Fault(key="seq_lens", value=word, rule=rule, nearest=usual)])
    return first, second


def _read(path: str) -> list[int]:
    """A column of whole numbers without a header."""
    if not path.endswith(".csv"):
        rule = "must be fixed, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA, or a .csv of lengths"
        raise BadInput([Fault(key="seq_lens", value=path, rule=rule, nearest="fixed")])
    try:
        with Path(path).expanduser().open(newline="") as lines:
            return [int(cell) for row in csv.reader(lines) for cell in row if cell.strip()]
    except (OSError, ValueError) as error:
        raise BadInput(
            [Fault(key="seq_lens", value=path, rule=f"must be a table of lengths, one a row: {error}")]
        ) from None


def _legal(given: object) -> list[int]:
    if not isinstance(given, Iterable):
        rule = "must be fixed, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA, lengths, or a .csv of them"
        raise BadInput([Fault(key="seq_lens", value=given, rule=rule, nearest="fixed")])
    lengths: list[Any] = list(given)
    faults = [
        Fault(key=f"seq_lens[{n}]", value=length, rule=f"must be a whole number from 1 to {LONGEST}", nearest=1)
        for n, length in enumerate(lengths)
        if not isinstance(length, int | np.integer) or isinstance(length, bool) or not 1 <= length <= LONGEST
    ]
    if not lengths:
        faults = [Fault(key="seq_lens", value=lengths, rule="must have at least one length")]
    if faults:
        raise BadInput(faults)
    return [int(length) for length in lengths]
