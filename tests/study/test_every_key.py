"""No value of any key ends in anything but a job or faults."""

from __future__ import annotations

import pytest

from clustersim.faults import BadInput
from clustersim.library.job import load_job
from clustersim.library.keys import KEYS
from clustersim.library.settings import read_settings
from clustersim.study.point import Point, prepare

JOBS = ("llama-2-7b-tp8-dp2", "mlp-offload-40b")


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("key", KEYS)
def test_nonsense_is_refused_by_name(key: str, job: str) -> None:
    """What is refused by itself is not compared with others as if it were a number; storage needs rates first."""
    for text in ("x", "-1", "1e30", "{a: 1}"):
        values, faults = read_settings([f"{key}={text}"])
        try:
            made = prepare(load_job(job).with_values(values), faults)
        except BadInput as bad:
            table = key.rpartition(".")[0]
            told = {fault.key for fault in bad.faults}
            whole = {other for other in KEYS if other.startswith("storage.")} if table == "storage" else set()
            assert told & ({key, table, f"{table}.policy"} | whole)
        else:
            assert isinstance(made, Point)
            assert not faults
