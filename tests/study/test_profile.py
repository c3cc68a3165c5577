"""Every shipped profile loads, sets switches only, and says where each is from."""

from __future__ import annotations

from dataclasses import fields

import pytest

from clustersim.faults import BadInput
from clustersim.library.card import list_cards, read_card
from clustersim.study.profile import Profile, load_profile
from clustersim.study.steps.software import _COMPILED, _SOFTWARE

NAMES = [name for name, _ in list_cards()["profile"]]


@pytest.mark.parametrize("name", NAMES)
def test_shipped_cards(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.description
    given = set(read_card("profile", name).data) - {"name", "description", "sources"}
    assert given == set(profile.sources)
    assert all(text.startswith(("code: ", "docs: ", "paper: ", "assumed")) for text in profile.sources.values())


def test_a_profile_has_no_efficiency() -> None:
    assert not [field.name for field in fields(Profile) if "float" in str(field.type)]


def test_every_named_profile_is_shipped() -> None:
    assert {*(name for _, name in _SOFTWARE), *_COMPILED.values()} <= set(NAMES)


def test_unknown_names_have_a_nearest() -> None:
    with pytest.raises(BadInput) as error:
        load_profile("megatron-2022")
    assert error.value.faults[0].nearest in NAMES
