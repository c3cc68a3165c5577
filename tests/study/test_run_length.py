"""Runs that are too long are refused before they are built, whatever makes them long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.library.job import JobSetup
from clustersim.study import checkpoint_effects, run_length
from clustersim.study.point import prepare, run_point

SAVED: dict[str, Any] = {"nodes": 1, "plan.checkpoint.policy": "lazy", "plan.checkpoint.tier": "nvme"}
FINE: dict[str, Any] = SAVED | {"plan.checkpoint.chunk_bytes": 10**6}


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ({}, 1),
        ({"plan.zero": 3, "plan.offload.policy": "zero-offload"}, 3),
        ({"topology": "jlse-h100", "plan.zero": 3, "plan.offload.policy": "mlp-offload"}, 4),
        (SAVED, 8),
        (SAVED | {"plan.checkpoint.every": 5}, 10),
        (SAVED | {"plan.checkpoint.tier": "host"}, 3),
    ],
)
def test_steps_are_those_that_a_run_takes_by_itself(tiny: JobSetup, values: dict[str, Any], steps: int) -> None:
    point = prepare(tiny.with_values({"nodes": 1, **values}))
    assert point.case is not None
    assert run_length._usual_steps(point.case.plan) == steps == point.job.usual_steps


@pytest.mark.parametrize("values", [{}, {"plan.checkpoint.serialises": True}, {"plan.tp": 2}])
def test_pieces_of_saves_are_counted(tiny: JobSetup, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any]) -> None:
    """As many as are written, within a tenth: what is padded, and where ranks' parts are uneven, is left out."""
    point = prepare(tiny.with_values(FINE | values))
    of_saves = sum(
        int(np.isin(arrays.phase, [arrays.phases.index("checkpoint")]).sum())
        for arrays in (program.arrays() for program in point.job.programs)
    )
    assert point.case is not None
    assert point.case.plan.checkpoint is not None
    for most, refused in ((0.9 * of_saves, 1), (1.1 * of_saves, 0)):
        monkeypatch.setattr(run_length, "MOST_OPS", most)
        faults = list(run_length._too_many_pieces(point.case, point.case.plan.checkpoint, saves=1))
        assert len(faults) == refused


@pytest.mark.parametrize(
    ("values", "key"),
    [({}, "chunk_bytes"), ({"plan.checkpoint.chunk_bytes": 10**8, "plan.checkpoint.pool_bytes": 10**6}, "pool_bytes")],
)
def test_saves_cut_too_fine_are_refused_with_what_would_do(
    tiny: JobSetup, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], key: str
) -> None:
    monkeypatch.setattr(run_length, "MOST_OPS", 3000)
    with pytest.raises(BadInput, match="pieces x 8 saves") as error:
        prepare(tiny.with_values(FINE | values | {"global_batch": 8}))
    (fault,) = error.value.faults
    assert fault.key == f"plan.checkpoint.{key}"
    prepare(tiny.with_values(FINE | values | {"global_batch": 8, fault.key: fault.nearest}))


@pytest.mark.parametrize(("chunk", "expected"), [(10**6, True), (10**9, False)])
def test_runs_that_are_mostly_pieces_of_saves_say_so(
    tiny: JobSetup, monkeypatch: pytest.MonkeyPatch, chunk: int, expected: bool
) -> None:
    monkeypatch.setattr(checkpoint_effects, "MANY_OPS", 1000)
    run = run_point(tiny.with_values(FINE | {"plan.checkpoint.chunk_bytes": chunk, "steps": 2}))
    told = [note for note in run.warnings if "ops that were played" in note]
    assert bool(told) == expected


def test_a_run_of_years_is_refused(tiny: JobSetup) -> None:
    """Sequences of four thousand million tokens fit in no memory, and keep eight GPUs busy for centuries."""
    setup = tiny.with_values({"model": "llama-2-7b", "seq_len": 2**24, "micro_batch": 256, "global_batch": 2**15})
    with pytest.raises(BadInput, match="years at the peak of all 8 GPUs") as error:
        prepare(setup)
    assert [fault.key for fault in error.value.faults] == ["global_batch"]
    prepare(setup.with_values({"seq_len": 2**17}))
