"""Cards are found by name or file, first match first, and known by their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.library import find_card, list_cards, read_card

LINK = """
description = "{}"
bandwidth = "1 GB/s"
latency = "1 us"
[sources]
bandwidth = "assumed"
latency = "assumed"
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's own on the search path."""
    monkeypatch.setenv("CLUSTERSIM_PATH", str(tmp_path))
    return tmp_path


def test_a_card_records_its_file_and_hash() -> None:
    card = read_card("gpu", "h100-sxm")
    assert card.path.name == "h100-sxm.toml"
    assert card.sha256 == hashlib.sha256(card.path.read_bytes()).hexdigest()
    assert card.description.startswith("NVIDIA H100")


@pytest.mark.parametrize("place", ["nvlink4.toml", "topologies/parts/link/nvlink4.toml"])
def test_a_folder_of_ones_own_comes_before_the_library(own: Path, place: str) -> None:
    (own / place).parent.mkdir(parents=True, exist_ok=True)
    (own / place).write_text(LINK.format("mine"))
    assert read_card("link", "nvlink4").description == "mine"
    assert read_card("link", "nvlink3").description.startswith("NVLink 3")


def test_the_first_folder_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "wire.toml").write_text(LINK.format(folder))
    monkeypatch.setenv("CLUSTERSIM_PATH", f"{tmp_path / 'b'}:{tmp_path / 'a'}")
    assert read_card("link", "wire").description == "b"


def test_a_name_with_a_slash_or_a_suffix_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wire.toml").write_text(LINK.format("file"))
    monkeypatch.chdir(tmp_path)
    assert read_card("link", "wire.toml").description == "file"
    assert read_card("link", "./wire.toml").description == "file"
    with pytest.raises(BadInput) as caught:
        find_card("link", "./wires.toml")
    assert caught.value.faults[0].nearest == "wire.toml"


def test_a_relative_file_is_looked_up_beside_the_card_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "wire.toml").write_text(LINK.format("beside"))
    assert read_card("link", "./wire.toml", beside=tmp_path / "cluster.toml").description == "beside"


def test_a_dot_in_a_name_is_no_suffix() -> None:
    assert find_card("drive", "intel-p5510-3.84tb").name == "intel-p5510-3.84tb.toml"


@pytest.mark.parametrize(
    ("kind", "name", "nearest"), [("gpu", "h100", "h100-sxm"), ("gpu", "a100-smx-80gb", "a100-sxm-80gb")]
)
def test_an_unknown_name_is_answered_with_the_nearest(kind: str, name: str, nearest: str) -> None:
    with pytest.raises(BadInput) as caught:
        find_card(kind, name)
    (fault,) = caught.value.faults
    assert (fault.key, fault.value, fault.nearest) == (kind, name, nearest)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(BadInput, match="nearest: gpu"):
        find_card("gpus", "h100-sxm")


@pytest.mark.parametrize(
    ("content", "key"), [(b'bandwidth = "1 GB/s"\nlatency = \n', "line 2"), (b"bandwidth = '\xff'\n", "file")]
)
def test_what_is_not_toml_is_placed(tmp_path: Path, content: bytes, key: str) -> None:
    path = tmp_path / "wire.toml"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_card("link", str(path))
    (fault,) = caught.value.faults
    assert fault.file == str(path)
    assert fault.key == key
    assert "is not TOML" in fault.rule


def test_a_card_of_another_kind_is_refused(own: Path) -> None:
    (own / "wire.toml").write_text('kind = "link"\n' + LINK.format("mine"))
    with pytest.raises(BadInput, match="is another kind; nearest: gpu") as caught:
        read_card("gpu", "wire")
    assert caught.value.faults[0].key == "kind"


def test_the_listing_holds_the_library_and_what_is_ones_own(own: Path) -> None:
    (own / "wire.toml").write_text('kind = "link"\n' + LINK.format("mine"))
    (own / "notes.toml").write_text("a = 1\n")
    listing = list_cards()
    assert ("wire", "mine") in listing["link"]
    assert "h100-sxm" in dict(listing["gpu"])
    assert not any("notes" in dict(cards) for cards in listing.values())
    assert all(
        description for kind in ("gpu", "cpu", "link", "nic", "switch", "drive") for _, description in listing[kind]
    )


def test_a_name_of_another_kind_of_card_is_told() -> None:
    with pytest.raises(BadInput, match=r"is no job card .*; there is a model card of that name"):
        find_card("job", "gpt2")
