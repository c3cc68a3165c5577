"""Settings that are words: true or false, one of a few, names of what is looked up later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clustersim.faults import nearest_name
from clustersim.library.values.value import Refused

__all__ = ["Flag", "Name", "Names", "Word"]


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return "true, false"

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return True

    def read(self, value: object) -> bool:
        """The flag."""
        if isinstance(value, bool):
            return value
        raise Refused("must be true or false", bool(value) if value in (0, 1) else None)


@dataclass(frozen=True, slots=True)
class Word:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return ", ".join(self.words)

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return self.words[0]

    def read(self, value: object) -> str:
        """The word."""
        if value in self.words:
            return str(value)
        raise Refused(f"must be one of {self.legal}", nearest_name(str(value), self.words))


@dataclass(frozen=True, slots=True)
class Name:
    """The name of something that is looked up later: a card, a file, a builder."""

    of: str

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return self.of

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return None

    def read(self, value: object) -> str:
        """The name."""
        if isinstance(value, str) and value.strip():
            return value
        raise Refused(f"must be {self.of}")


@dataclass(frozen=True, slots=True)
class Names:
    """A list of names; of ``words`` only, where these are given."""

    of: str
    words: tuple[str, ...] = ()

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return self.of

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return f"[{', '.join(self.words)}]" if self.words else None

    def read(self, value: object) -> tuple[str, ...]:
        """The names."""
        named = (value,) if isinstance(value, str) else value
        if not isinstance(named, Sequence) or not all(isinstance(name, str) for name in named):
            raise Refused(f"must be {self.of}", f"[{', '.join(self.words)}]" if self.words else None)
        for name in named:
            if self.words and name not in self.words:
                near = [word if word in self.words else nearest_name(word, self.words) for word in named]
                legal = self.words if None in near else [word for word in near if word]
                raise Refused(f"must be {self.of}", f"[{', '.join(legal)}]")
        return tuple(named)
