"""What people ask of offloading to the CPU, answered by the commands of docs/questions.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Asked = Callable[[str], list[dict[str, Any]]]


def test_superoffload_is_for_superchips(asked: Asked) -> None:
    """More than 1.5 on C2C, less than 1.2 behind PCIe."""
    steps = [found["step_time_s"] for found in asked("DeepSpeed #7966")]
    on_c2c, on_pcie, as_released = (steps[k] / steps[k + 1] for k in (0, 2, 4))
    assert on_c2c > 1.5
    assert 1 < on_pcie < 1.2
    assert 0.9 < as_released < 1.2
