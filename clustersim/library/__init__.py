"""Find, load, check and list cards: the TOML files that describe parts, topologies, models and jobs."""

from clustersim.library.build import build
from clustersim.library.card import Card, find_card, list_cards, read_card
from clustersim.library.part import Part, load_part, load_parts

__all__ = ["Card", "Part", "build", "find_card", "list_cards", "load_part", "load_parts", "read_card"]
