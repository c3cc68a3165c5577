"""Token load: how the tokens of a micro-batch spread over the experts of a layer."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault

__all__ = ["Imbalance", "TokenLoad", "token_load"]

Imbalance = str | Sequence[Sequence[float]]
"""``uniform``; ``zipf:S`` with an exponent S; a table of popularities, a column for each expert, or its path."""

LARGEST_EXPONENT = 8.0


@dataclass(frozen=True, slots=True, eq=False)
class TokenLoad:
    """Which part of each sender's tokens meets which expert.

    Parameters
    ----------
    part : NDArray[float64], shape (num_senders, num_experts)
        of a sender's tokens those that meet the expert, at most 1; each row sums to the experts that a token meets. All
        layers have the same
    """

    part: NDArray[np.float64]

    def counts(self, rows: int) -> NDArray[np.int64]:
        """Tokens from each sender to each expert, shape of ``part``; whole, and ``rows`` times each row's sum.

        Parameters
        ----------
        rows : int
            tokens of each sender
        """
        upto = np.cumsum(self.part, axis=1)
        upto *= np.rint(upto[:, -1:]) / upto[:, -1:]  # whole at the end, so that no token is lost
        whole = np.rint(upto * rows).astype(np.int64)
        whole[:, 1:] -= whole[:, :-1].copy()
        return whole


def token_load(imbalance: Imbalance, *, num_experts: int, top_k: int, ep: int, seed: int = 0) -> TokenLoad | None:
    """The load that a plan describes; None when all experts are equally popular.

    Under ``zipf:S`` the r-th most popular expert is met in proportion to r^-S; which one that is, is drawn once. A
    token meets an expert at most once: what would go beyond it goes to the others in their proportions.

    Parameters
    ----------
    imbalance : str or Sequence[Sequence[float]]
    num_experts, top_k : int
    ep : int
        senders; a table has one row for all of them, or one each
    seed : int
        of the drawing

    Raises
    ------
    BadInput
        when the word is none of these, or the table is missing, has another shape, or a number that is not a popularity
    """
    if imbalance == "uniform":
        return None
    if isinstance(imbalance, str) and imbalance.startswith("zipf"):
        exponent = _exponent(imbalance)
        order = np.random.default_rng(seed).permutation(num_experts)
        popularity = (1.0 + order)[None, :] ** -exponent
    else:
        table = _read(imbalance) if isinstance(imbalance, str) else _rows(imbalance)
        popularity = _checked(table, num_experts=num_experts, top_k=top_k, ep=ep)
    part = np.stack([_parts(row, top_k) for row in popularity])
    return TokenLoad(np.broadcast_to(part, (ep, num_experts)))


def _exponent(word: str) -> float:
    _, _, text = word.partition(":")
    try:
        exponent = float(text)
    except ValueError:
        exponent = -1.0
    if not 0 <= exponent <= LARGEST_EXPONENT:
        rule = f"must be zipf: with an exponent from 0 to {LARGEST_EXPONENT:g}"
        raise BadInput([Fault(key="plan.token_imbalance", value=word, rule=rule, nearest="zipf:1")])
    return exponent


def _rows(imbalance: Any) -> list[list[float]]:
    """A table as a call gives it."""
    try:
        return [[float(cell) for cell in row] for row in imbalance]
    except (TypeError, ValueError):
        rule = "must be uniform, zipf:S, or a table of the popularity of each expert, a row for all ranks or one each"
        raise BadInput([Fault(key="plan.token_imbalance", value=imbalance, rule=rule, nearest="uniform")]) from None


def _read(path: str) -> list[list[float]]:
    """A table of numbers without a header, commas between them."""
    if not path.endswith(".csv"):
        rule = "must be uniform, zipf:S, or a .csv of the popularity of each expert"
        raise BadInput([Fault(key="plan.token_imbalance", value=path, rule=rule, nearest="uniform")])
    try:
        with Path(path).expanduser().open(newline="") as lines:
            return [[float(cell) for cell in row] for row in csv.reader(lines) if row]
    except (OSError, ValueError) as error:
        rule = f"must be a table of numbers, a row for all ranks or one each: {error}"
        raise BadInput([Fault(key="plan.token_imbalance", value=path, rule=rule)]) from None


def _checked(table: list[list[float]], *, num_experts: int, top_k: int, ep: int) -> NDArray[np.float64]:
    faults = []
    if len(table) not in (1, ep):
        rule = f"rows are popularities by sender: must be 1, or ep {ep}"
        faults.append(Fault(key="plan.token_imbalance", value=len(table), rule=rule, nearest=1))
    for number, row in enumerate(table):
        key = f"plan.token_imbalance[{number}]"
        if len(row) != num_experts:
            rule = f"columns must be one for each of the {num_experts} experts"
            faults.append(Fault(key=key, value=len(row), rule=rule, nearest=num_experts))
        elif not all(np.isfinite(x) and x >= 0 for x in row):
            worst = next(x for x in row if not (np.isfinite(x) and x >= 0))
            faults.append(Fault(key=key, value=worst, rule="must be finite and not negative", nearest=0.0))
        elif sum(x > 0 for x in row) < top_k:
            rule = f"must be positive for at least the {top_k} experts that a token meets"
            faults.append(Fault(key=key, value=sum(x > 0 for x in row), rule=rule, nearest=top_k))
    if faults:
        raise BadInput(faults)
    return np.array(table, dtype=np.float64)


def _parts(popularity: NDArray[np.float64], top_k: int) -> NDArray[np.float64]:
    """min(1, c·popularity) with the c that makes the sum ``top_k``."""
    part = np.zeros_like(popularity)
    while True:
        full = part >= 1
        part = np.where(full, 1.0, 0.0)
        rest = np.where(full, 0.0, popularity)
        part += rest * (top_k - full.sum()) / max(rest.sum(), np.finfo(float).tiny)
        if ((part >= 1) == full).all():
            return part
