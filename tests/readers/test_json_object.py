from pathlib import Path

import pytest

from clustersim.faults import BadInput, Fault
from clustersim.readers.json_object import load_object


def fault_of(path: Path, content: bytes | None = None) -> Fault:
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        load_object(path)
    (fault,) = caught.value.faults
    return fault


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    fault = fault_of(tmp_path / "confg.json")
    assert fault.rule == "must be a file that exists"
    assert fault.nearest == "config.json"


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    assert fault_of(tmp_path).rule == "must be a file that exists"


def test_broken_json_has_line_and_column(tmp_path: Path) -> None:
    fault = fault_of(tmp_path / "a.json", b'{\n  "a": 1,\n  "b" 2\n}')
    assert (fault.key, fault.value) == ("line 3, column 7", '"b" 2')
    assert fault.rule == "must be JSON: Expecting ':' delimiter"


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1,}', b'{"a": 1}\n\n{"b": 2}'])
def test_cut_off_or_doubled_json(tmp_path: Path, content: bytes) -> None:
    assert fault_of(tmp_path / "a.json", content).key.startswith("line ")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 200_000, b'{"a": ' + b"9" * 5000 + b"}"])
def test_what_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    fault = fault_of(tmp_path / "a.json", content)
    assert fault.key == "file"
    assert fault.rule.startswith("must be a readable JSON file: ")


@pytest.mark.parametrize(("content", "kind"), [(b"[]", "list"), (b"3", "int"), (b"null", "NoneType")])
def test_not_an_object(tmp_path: Path, content: bytes, kind: str) -> None:
    assert fault_of(tmp_path / "a.json", content).value == kind


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert load_object(path).values == {"a": 1}


def test_a_key_given_twice_is_a_fault_of_the_object(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1, "b": {"c": 1, "c": 2}, "a": 2}')
    found = load_object(path)
    with pytest.raises(BadInput, match="a: 2 must appear once"):
        found.check()


def test_counts_flags_and_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"n": 3, "on": true, "none": null, "other": 1}')
    found = load_object(path)
    assert found.count("number", "n", largest=10) == 3
    assert found.count("absent", "none", "gone", largest=10, default=7) == 7
    assert found.flag("switch", "on", default=False) is True
    assert found.defaults == {"none": 7}
    assert found.origins == {
        "number": "a.json: n",
        "absent": "assumed: none is absent from a.json",
        "switch": "a.json: on",
    }
    assert found.unread() == {"other": 1}
    found.check()


def test_numbers_words_and_values_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"part": 0.5, "kind": "relu", "list": [1], "far": 3, "odd": "rellu"}')
    found = load_object(path)
    assert found.number("fraction", "part", low=0, high=1, default=1.0) == 0.5
    assert found.number("absent", "gone", low=0, high=1, default=0.25) == 0.25
    assert found.word("activation", "kind", words=("relu", "gelu"), default="gelu") == "relu"
    assert found.take("list") == [1]
    assert found.take("missing") is None
    assert found.number("beyond", "far", low=0, high=1, default=1.0) == 0
    assert found.word("slip", "odd", words=("relu", "gelu"), default="gelu") == "gelu"
    assert found.unread() == {}
    assert [(fault.key, fault.nearest) for fault in found.faults] == [("far", 1.0), ("odd", "relu")]


def test_an_object_inside_is_told_under_dotted_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"in": {"n": 3, "bad": -1, "other": 1}, "not": 3}')
    found = load_object(path)
    inner = found.inner("in")
    assert inner.count("number", "n", largest=10) == 3
    inner.count("wrong", "bad", largest=10)
    inner.count("absent", "gone", largest=10, default=7)
    found.absorb("in", inner)
    assert found.inner("not").values == found.inner("gone").values == {}
    assert [fault.key for fault in found.faults] == ["in.bad", "not"]
    assert found.defaults == {"in.gone": 7}
    assert found.origins["number"] == "a.json: in.n"
    assert found.unread() == {"in.other": 1}
