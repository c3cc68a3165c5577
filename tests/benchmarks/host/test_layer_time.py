"""The host's time of a layer is measured where PyTorch is there."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'clustersim[device]'")

from layer_time import layer_time


def test_a_layer_takes_its_host_a_time() -> None:
    measured = layer_time(layers=2, repeats=5)
    # seven products, a norm of six operators twice, rotations, attention, activation, residuals
    assert 25 < measured.forward_launches < 45
    assert measured.backward_launches > measured.forward_launches
    assert 0 < measured.inference < 1e-2
    assert 0 < measured.forward < 1e-2
    assert 0 < measured.backward < 2e-2
