"""Names of models as rows write them -> cards of the library."""

from __future__ import annotations

import re
from functools import cache

from clustersim.faults import nearest_name
from clustersim.library.card import list_cards

__all__ = ["card_called", "card_in", "nearest_card", "one_of_many"]

_CARDS: tuple[tuple[str, str], ...] = (
    ("llama3.1_405b", "llama-3.1-405b"),
    ("llama3_405b", "llama-3.1-405b"),
    ("llama3_70b", "llama-3-70b"),
    ("llama3_8b", "llama-3-8b"),
    ("llama2_70b", "llama-2-70b"),
    ("llama2_13b", "llama-2-13b"),
    ("llama2_7b", "llama-2-7b"),
    ("gpt3_175b", "gpt3-175b"),
    ("qwen3_30b_a3b", "qwen3-30b-a3b"),
    ("qwen3_moe_30b", "qwen3-30b-a3b"),
    ("qwen3_235b_a22b", "qwen3-235b-a22b"),
    ("qwen3_moe_235b", "qwen3-235b-a22b"),
    ("deepseek_v3", "deepseek-v3"),
    ("deepseek_v2_lite", "deepseek-v2-lite"),
    ("deepseek_v2", "deepseek-v2"),
    ("gpt_oss_120b", "gpt-oss-120b"),
    *(
        (name, name)
        for name in ("qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-3b", "qwen2.5-7b", "qwen2.5-14b", "qwen2.5-72b")
    ),
    ("mixtral_8x22b", "mixtral-8x22b"),
    ("bert_large", "bert-large"),
    ("opt-175b", "opt-175b"),
    ("opt_13b", "opt-13b"),
    ("opt_13", "opt-1.3b"),
    ("gpt2_large", "gpt2-large"),
    ("nemotron_3_nano", "nemotron-3-nano"),
    ("nemotron_v3_nano", "nemotron-3-nano"),
    ("nemotron_3_super", "nemotron-3-super"),
    ("nemotron_v3_super", "nemotron-3-super"),
    ("mamba", ""),
)
"""Words of a model's name -> its card, the first that fits; a card that the library does not have refuses the row."""

_NAMED: tuple[tuple[str, str], ...] = (
    ("gpt 22b", "gpt-22b"),
    ("gpt 175b", "gpt3-175b"),
    ("gpt 530b", "gpt-530b"),
    ("gpt 1t", "gpt-1t"),
)
"""The same for names that stand for more than one model: only where the row does not give all of its shape."""

_TOKENS = re.compile(r"[a-z]+|[\d.]+")
"""Words and numbers of a name, which sources join and part as they like; a dot is part of a number."""

_OF_A_SIZE = re.compile(r"gpt-[\d.]+[bt]")
"""Cards whose names tell nothing but a size."""


def card_in(name: str) -> str | None:
    """Card whose words are in a model's name; an empty text where the library has no card of them.

    A version goes on to its last digit: DeepSeek-V3.2 is not DeepSeek-V3.
    """
    return _first(_CARDS, name)


def card_called(name: str) -> str | None:
    """Card whose whole name is a model's, however its words are joined; not those that tell only a size."""
    found = _library().get(_joined(name))
    return None if found is None or _OF_A_SIZE.fullmatch(found) else found


def one_of_many(name: str) -> str | None:
    """Card of a name that stands for more than one model."""
    return _first(_NAMED, name)


def nearest_card(name: str) -> str | None:
    """The card whose name is most like one that no card has."""
    near = nearest_name(_joined(name), _library())
    return None if near is None else _library()[near]


def _first(table: tuple[tuple[str, str], ...], name: str) -> str | None:
    text = name.lower()
    return next((card for words, card in table if _pattern(words).search(text)), None)


@cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(r"[\s_-]*".join(map(re.escape, _TOKENS.findall(words))) + r"(?!\.?\d)")


def _joined(name: str) -> str:
    return "".join(_TOKENS.findall(name.lower()))


@cache
def _library() -> dict[str, str]:
    """Names of all cards, their words joined -> the cards."""
    return {_joined(name): name for name, _ in list_cards()["model"]}
