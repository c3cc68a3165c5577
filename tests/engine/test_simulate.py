"""What a call is refused for, and what it is warned of."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import clustersim as cs


def faults(*args: object, **kwargs: object) -> list[tuple[str, object, object]]:
    with pytest.raises(cs.BadInput) as caught:
        cs.simulate(*args, **kwargs)  # type: ignore[arg-type]
    return [(f.key, f.value, f.nearest) for f in caught.value.faults]


def test_nothing_to_run_is_refused(star: ModuleType) -> None:
    cluster, idle = star.cluster(1, 2), star.job(cs.Program(), cs.Program(), name="idle")
    nobody = cs.Job(name="nobody", programs=(star.program(star.delay(1)),), program_of=np.zeros(0, np.int64))
    assert faults(cluster, []) == [("jobs", [], None)]
    assert faults(cluster, [idle, nobody], steps=0) == [("idle", 2, None), ("nobody", 0, None), ("steps", 0, 1)]


def test_places_that_do_not_exist(star: ModuleType) -> None:
    def sits(*devices: int) -> cs.Job:
        job: cs.Job = star.job(*[star.program(star.delay(1))] * 2, devices=np.array(devices, dtype=np.int64))
        return job

    cluster = star.cluster(1, 4)
    assert faults(cluster, sits(0, 4)) == [("job.devices", 4, 3)]
    assert faults(cluster, sits(-1, 0)) == [("job.devices", -1, 0)]
    assert faults(cluster, sits(0, 1, 2)) == [("job.devices", (3,), (2,))]
    assert faults(cluster, star.job(*[star.program(star.delay(1))] * 5)) == [("job.num_ranks", 5, 4)]


@pytest.mark.parametrize("fold", [True, False])
def test_ranks_that_share_a_device_are_warned_of(star: ModuleType, fold: bool) -> None:
    def works(kind: str, name: str) -> cs.Job:
        job: cs.Job = star.job(*[star.program(getattr(star, kind)(1000))] * 2, name=name)
        return job

    cluster = star.cluster(1, 2)
    apart = cs.simulate(cluster, works("gemm", "one"), fold=fold)
    assert apart.warnings == ()
    for kind, ns in (("gemm", 1000), ("sweep", 2000)):  # arithmetic is not slowed, memory is
        both = cs.simulate(cluster, [works(kind, "one"), works(kind, "two")], fold=fold)
        assert both.trace["end_ns"].unique().tolist() == [ns]
        assert both.warnings == ("2 devices run several ranks: these share memory bandwidth, but compute as if alone",)
