"""Where the numbers of a run come from and what is worth measuring, as text readable at 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["coverage_text", "sources_text"]

_WIDTH = 80
_MOST = 8
_WITH = "measured: with "


def sources_text(sources: Mapping[str, str]) -> str:
    """Sources by part, numbers with the same source on one line.

    Parameters
    ----------
    sources : Mapping[str, str]
        of :func:`clustersim.analysis.number_sources.number_sources`
    """
    tables: dict[str, dict[str, list[str]]] = {}
    for key, source in sources.items():
        part, name = _split(key)
        of = tables.setdefault(part, {})
        first = source.removeprefix(_WITH) if source.startswith(_WITH) else ""
        # numbers that were fitted together share the line of the first of them
        line = next((text for text, names in of.items() if first and first in names), source)
        of.setdefault(line, []).append(name)
    lines = ["where the numbers come from"]
    for part, of in tables.items():
        lines.append(f"  {part}" if part else "  the cluster")
        for source, names in of.items():
            lines.append(_fill(f"{', '.join(names)}: {source}"))
    return "\n".join(lines)


def coverage_text(coverage: Mapping[str, float], missing: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """What op time rests on, and what would be worth measuring.

    Parameters
    ----------
    coverage : Mapping[str, float]
        fractions by provenance
    missing : Mapping[str, Sequence[Mapping]]
        as in the summary's ``coverage_missing``
    """
    lines = ["op time: " + ", ".join(f"{100 * part:.1f} % {name}" for name, part in coverage.items() if part)]
    rows = sorted((row for of in missing.values() for row in of), key=lambda row: -row["share"])
    if rows:
        lines.append("worth measuring, with its share of op time")
    lines += [_fill(f"{100 * row['share']:4.1f} %  {_shape(row)} ({row['provenance']})") for row in rows[:_MOST]]
    if len(rows) > _MOST:
        lines.append(f"    and {len(rows) - _MOST} more: --json has all from 0.1 % on, as rows of a kernel table")
    return "\n".join(lines)


def _shape(row: Mapping[str, Any]) -> str:
    if "collective" in row:
        ranks = f"{row['ranks']} ranks on {row['nodes']} node{'s' * (row['nodes'] != 1)}"
        return f"{row['collective']} of {row['nbytes']:,} B, {ranks}"
    what = [row["kind"], row["form"], row["dtype"], "backward" if row.get("backward") else ""]
    sizes = [f"{name} {row[name]}" for name in ("m", "n", "k") if name in row]
    sizes += [f"batch {row['batch']}"] if row.get("batch", 1) > 1 else []
    return " ".join([word for word in what if word] + (sizes or [f"{row['nbytes']:,} B"]) + [f"on {row['device']}"])


def _split(key: str) -> tuple[str, str]:
    """Part and number: ``node.gpu`` and ``efficiency.gemm_peak``, ``kernels/h100-sxm`` and ``gemm.bf16``."""
    names = key.split(".")
    depth = 1 if key.startswith("kernels/") or len(names) == 2 else 2
    return (".".join(names[:depth]), ".".join(names[depth:])) if len(names) > 1 else ("", key)


def _fill(text: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent="    ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )
