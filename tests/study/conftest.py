"""A job that runs in milliseconds."""

from __future__ import annotations

import pytest

from clustersim.library.job import JobSetup


@pytest.fixture
def tiny() -> JobSetup:
    """GPT-2 on one node of eight."""
    return JobSetup.of("tiny", model="gpt2", topology="dgx-h100", global_batch=16, seq_len=128)
