"""From tables to objects: every fault at once, each with its key, its rule and the nearest legal value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest

from clustersim.faults import BadInput, Fault
from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.library import Card, build, read_card
from clustersim.units import Unit


def card(data: dict[str, Any], kind: str = "link") -> Card:
    return Card(kind=kind, name="wire", path=Path("wire.toml"), sha256="", data=data)


def faults(data: dict[str, Any], cls: type = Link) -> dict[str, Fault]:
    with pytest.raises(BadInput) as caught:
        build(card(data), cls)
    assert all(fault.file == "wire.toml" for fault in caught.value.faults)
    return {fault.key: fault for fault in caught.value.faults}


SOURCES = {"bandwidth": "assumed", "latency": "assumed"}


def test_a_good_card() -> None:
    link = build(card({"description": "x", "bandwidth": "400 Gb/s", "latency": 1e-6, "sources": SOURCES}), Link)
    assert link == Link(name="wire", bandwidth=5e10, latency=1e-6, sources=SOURCES)


def test_every_fault_is_reported_at_once() -> None:
    found = faults({"bandwith": "1 GB/s", "latency": "5 GB", "efficiency": "0.8", "sources": {"latency": "assumed"}})
    assert found["bandwith"].nearest == "bandwidth"
    assert found["bandwidth"].rule == "must be given"
    assert found["latency"].nearest == "5 s"
    assert "must be a valid number" in found["efficiency"].rule
    assert found["sources.bandwith"].nearest == "assumed"
    assert set(found) == {"bandwith", "bandwidth", "latency", "efficiency", "sources.bandwith"}


def test_a_broken_invariant_names_field_and_given_text() -> None:
    found = faults({"bandwidth": "0 GB/s", "latency": "1 us", "sources": SOURCES})
    assert found["bandwidth"].value == "0 GB/s"
    assert found["bandwidth"].rule == "must be positive and finite"


def test_faults_inside_a_table_carry_the_dotted_key() -> None:
    data = read_card("gpu", "h100-sxm").data
    data["efficiency"] |= {"gemm_peak": 1.5, "gem_peak": 0.5}
    del data["efficiency"]["memory_peak"]
    data["tensor_flop_per_s"]["bf16"] = "989 TFLOP"
    data["num_sms"] = "132"
    found = faults(data, GPU)
    assert found["efficiency.gem_peak"].nearest == "gemm_peak"
    assert found["efficiency.memory_peak"].rule == "must be given"
    assert found["tensor_flop_per_s.bf16"].nearest == "989 TFLOP/s"
    assert found["num_sms"].value == "132"
    assert "sources.efficiency.gem_peak" in found
    assert "sources.efficiency.memory_peak" in found


def test_a_broken_invariant_inside_a_table_carries_the_dotted_key() -> None:
    data = read_card("gpu", "h100-sxm").data
    data["efficiency"]["gemm_peak_of"]["fp8"] = 1.5
    assert faults(data, GPU)["efficiency.gemm_peak_of.fp8"].value == 1.5


@pytest.mark.parametrize("key", ["bandwidth", "latency"])
def test_a_number_without_a_source_is_a_fault(key: str) -> None:
    sources = {k: v for k, v in SOURCES.items() if k != key}
    found = faults({"bandwidth": "1 GB/s", "latency": 1e-6, "sources": sources})
    assert set(found) == {f"sources.{key}"}


def test_a_source_without_a_number_is_a_fault() -> None:
    found = faults({"bandwidth": "1 GB/s", "latency": 1e-6, "sources": SOURCES | {"latencies": "assumed"}})
    assert found["sources.latencies"].nearest == "latency"


def test_a_source_of_a_table_covers_what_is_in_it_and_tables_of_sources_are_flattened() -> None:
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Part:
        rates: Mapping[str, Annotated[float, Unit("FLOP/s")]]
        sources: Mapping[str, str] = field(default_factory=dict)

    rates = {"bf16": "1 TFLOP/s", "fp8": 2e12}
    assert build(card({"rates": rates, "sources": {"rates": "assumed"}}), Part).rates == {"bf16": 1e12, "fp8": 2e12}
    nested = {"rates": {"bf16": "assumed", "fp8": "assumed"}}
    assert set(build(card({"rates": rates, "sources": nested}), Part).sources) == {"rates.bf16", "rates.fp8"}


def test_a_class_without_sources_needs_none_and_counted_bytes_are_whole() -> None:
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Buffer:
        name: str
        nbytes: Annotated[int, Unit("B")]

    made = build(card({"nbytes": "80.3 GB"}), Buffer)
    assert (made.name, made.nbytes) == ("wire", 80_300_000_000)
    assert isinstance(made.nbytes, int)


def test_the_faults_of_a_class_of_faults_are_kept() -> None:
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Shape:
        heads: int

        def __post_init__(self) -> None:
            raise BadInput([Fault(key="heads", value=self.heads, rule="must be even", nearest=8)])

    assert faults({"heads": 7}, Shape)["heads"].nearest == 8
