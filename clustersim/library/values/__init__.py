"""Kinds of value that a setting takes: what is legal, and how a text becomes one."""

from clustersim.library.values.amounts import Bytes, Quantity
from clustersim.library.values.factors import Factors
from clustersim.library.values.numbers import Number, Whole, Wholes
from clustersim.library.values.text import read_text
from clustersim.library.values.value import Refused, Value
from clustersim.library.values.words import Flag, Name, Names, Word

__all__ = [
    "Bytes",
    "Factors",
    "Flag",
    "Name",
    "Names",
    "Number",
    "Quantity",
    "Refused",
    "Value",
    "Whole",
    "Wholes",
    "Word",
    "read_text",
]
