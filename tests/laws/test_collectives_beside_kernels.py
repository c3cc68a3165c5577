"""Whatever collectives take from the kernels beside them, the folded run is the full run."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustersim.collective.overlap import Overlap

FACTORS = st.sampled_from([0.0, 0.3, 1.0, 2.5, 100.0])


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), overlap=st.builds(Overlap, sm=FACTORS, hbm=FACTORS))
def test_folded_is_full(data: st.DataObject, overlap: Overlap, cases: Any, times_of: Any) -> None:
    case = data.draw(cases(32))
    full, folded = (case.run(fold=fold, overlap=overlap) for fold in (False, True))
    for j, job in enumerate(case.jobs):
        for rank in range(job.num_ranks):
            assert times_of(folded, j, rank) == times_of(full, j, rank)
