"""Two runs side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["METRICS", "changed_collectives", "compare", "compare_breakdowns"]

METRICS = (
    "step_time_s",
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "samples_per_s",
    "samples_per_s_per_gpu",
    "model_flops_per_gpu_per_s",
    "mfu",
    "mfu_full_attention",
    "hfu",
    "bubble_fraction",
    "exposed_comm_fraction",
    "num_ranks",
)
"""Fields of a summary that are compared, beside ``peak_memory_bytes`` of each tier."""


def compare(
    baseline: Mapping[str, Any],
    candidate: Mapping[str, Any],
    *,
    inputs: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Two summaries side by side.

    Parameters
    ----------
    baseline, candidate : Mapping[str, Any]
        from :func:`clustersim.analysis.summary.summary`
    inputs : tuple of two Mapping, optional
        what the runs were made from, such as their resolved cards; their ``plan`` when None

    Returns
    -------
    dict[str, Any]
        ``metrics`` {name: {baseline, candidate, delta, ratio}}, ``breakdown_s`` the same by class [s], and
        ``changed_inputs`` {dotted key: {baseline, candidate}}. delta = candidate - baseline and
        ratio = candidate / baseline; None where one of them is missing or the baseline is 0.
    """
    peaks = [_flat(summary.get("peak_memory_bytes") or {}, "peak_memory_bytes.") for summary in (baseline, candidate)]
    metrics = {name: _pair(baseline.get(name), candidate.get(name)) for name in METRICS}
    metrics |= {name: _pair(peaks[0].get(name), peaks[1].get(name)) for name in _names(*peaks)}
    classes = [_flat(summary.get("breakdown_s") or {}) for summary in (baseline, candidate)]
    given = inputs or ({"plan": baseline.get("plan") or {}}, {"plan": candidate.get("plan") or {}})
    before, after = _flat(given[0]), _flat(given[1])
    return {
        "metrics": metrics,
        "breakdown_s": {name: _pair(classes[0].get(name), classes[1].get(name)) for name in _names(*classes)},
        "changed_inputs": {
            name: {"baseline": before.get(name), "candidate": after.get(name)}
            for name in _names(before, after)
            if before.get(name) != after.get(name)
        },
    }


def compare_breakdowns(baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """Two breakdowns side by side.

    Parameters
    ----------
    baseline, candidate : DataFrame
        of :func:`clustersim.analysis.breakdown.breakdown`

    Returns
    -------
    DataFrame
        a row for the step's ``duration`` and for each class: ``baseline``, ``candidate``, ``delta`` [s] and ``ratio``;
        means over ranks weighted by multiplicity and over steps
    """
    import pandas as pd

    sides = {"baseline": _means(baseline), "candidate": _means(candidate)}
    names = _names(*sides.values())
    table = pd.DataFrame({side: [mean.get(name, 0.0) for name in names] for side, mean in sides.items()}, index=names)
    table["delta"] = table["candidate"] - table["baseline"]
    table["ratio"] = table["candidate"] / table["baseline"].where(table["baseline"] != 0)
    return table


def changed_collectives(baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """Collectives that both runs have, of one size, and that they do not send alike.

    Parameters
    ----------
    baseline, candidate : DataFrame
        :attr:`clustersim.trace.result.Result.collectives` of each

    Returns
    -------
    DataFrame
        a row for each: ``axis``, ``family``, ``kind``, ``nbytes``, and ``baseline`` and ``candidate``, the ways that
        it is sent, as ``ring/LL128``; several, with a comma, where groups of one family differ
    """
    import pandas as pd

    sides = [_ways(table) for table in (baseline, candidate)]
    rows = [
        (*key, sides[0][key], sides[1][key]) for key in sides[0] if sides[1].get(key, sides[0][key]) != sides[0][key]
    ]
    return pd.DataFrame(rows, columns=["axis", "family", "kind", "nbytes", "baseline", "candidate"])


def _ways(collectives: pd.DataFrame) -> dict[tuple[str, str, str, int], str]:
    """How each collective is sent, by axis, family, kind and bytes."""
    ways: dict[tuple[str, str, str, int], set[str]] = {}
    columns = ("axis", "family", "kind", "nbytes", "algorithm", "protocol")
    for axis, family, kind, nbytes, algorithm, protocol in zip(*(collectives[c] for c in columns), strict=True):
        way = f"{algorithm}/{protocol}" if protocol else algorithm
        ways.setdefault((axis, family, kind, int(nbytes)), set()).add(way)
    return {key: ", ".join(sorted(found)) for key, found in ways.items()}


def _means(table: pd.DataFrame) -> dict[str, float]:
    weight = table["multiplicity"].to_numpy(np.float64)
    columns = [name for name in table.columns if name not in ("run", "step", "rank", "multiplicity")]
    return {name: float(table[name].to_numpy(np.float64) @ weight / weight.sum()) for name in columns}


def _pair(baseline: float | None, candidate: float | None) -> dict[str, float | None]:
    known = baseline is not None and candidate is not None
    return {
        "baseline": baseline,
        "candidate": candidate,
        "delta": candidate - baseline if known else None,  # type: ignore[operator]
        "ratio": candidate / baseline if known and baseline else None,  # type: ignore[operator]
    }


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested mapping with dotted keys."""
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            leaves |= _flat(value, f"{prefix}{key}.")
        else:
            leaves[f"{prefix}{key}"] = value
    return leaves


def _names(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Keys of both, in the order of the first."""
    return list(dict.fromkeys((*first, *second)))
