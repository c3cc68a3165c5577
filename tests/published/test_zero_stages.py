"""ZeRO-2 takes fewer seconds a step than ZeRO-3 on mT5-XXL, also with batches other than that of the job card.

A measurement of five mT5 models under DeepSpeed (arXiv 2310.05350), whose batches are not at hand.
"""

from __future__ import annotations

import pytest

from clustersim.study.reproduce import Runs
from clustersim.study.reproduce.mt5_zero_stages import step_time

RUNS = Runs()


@pytest.mark.parametrize(("micro_batch", "micro_batches"), [(4, 1), (2, 4)])
@pytest.mark.parametrize("nodes", [2, 4, 8])
def test_stage_two_is_faster(nodes: int, micro_batch: int, micro_batches: int) -> None:
    two, three = (
        step_time(RUNS, nodes, stage, micro_batch=micro_batch, micro_batches=micro_batches) for stage in (2, 3)
    )
    assert two < three
