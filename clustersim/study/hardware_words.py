"""Words in which people name hardware: what is written in several ways is one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

__all__ = ["has_words", "sizes_told"]

_SIZE = re.compile(r"[\s-]*(?<![\d.])(?P<number>\d+)[\s-]*gi?b?\b(?!\s*/)")
"""Memory of a GPU or a node, "80GB", "80-GB", "80 GiB" or "80G"; not a rate."""

_BETWEEN = re.compile(r"[\s_-]+")


def has_words(hardware: str, words: Iterable[str]) -> bool:
    """Whether all words are in a description of hardware.

    Letter case and what joins words do not count, nor where among them a size of memory stands: "H100-80GB-PCIe" has
    "h100 pcie" and "80gb". Numbers are whole: a node of 640GB has no "40gb", H200 is no "h20".
    """
    text = _normal(hardware)
    return all(re.search(_pattern(word), text) for word in words)


def sizes_told(hardware: str) -> tuple[int, ...]:
    """Sizes of memory in a description of hardware [GB], in order."""
    return tuple(int(found["number"]) for found in _SIZE.finditer(hardware.lower()))


@cache
def _normal(text: str) -> str:
    sizes = [f"{number}gb" for number in sizes_told(text)]
    return " ".join((_BETWEEN.sub(" ", _SIZE.sub(" ", text.lower())), *sizes))


@cache
def _pattern(word: str) -> str:
    before = "(?<![0-9])" if word[:1].isdigit() else ""
    after = "(?![0-9])" if word[-1:].isdigit() else ""
    return before + re.escape(_normal(word).strip()) + after
