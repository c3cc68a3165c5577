"""Which layers have the window."""

import pytest

from clustersim.workload.shape.sliding_window import SlidingWindow


@pytest.mark.parametrize(
    ("window", "slides"),
    [
        (SlidingWindow(tokens=8), [1, 1, 1, 1]),
        (SlidingWindow(tokens=8, full_every=2), [1, 0, 1, 0]),
        (SlidingWindow(tokens=8, full_every=3), [1, 1, 0, 1]),
        (SlidingWindow(tokens=8, first_full=3), [0, 0, 0, 1]),
    ],
)
def test_slides(window: SlidingWindow, slides: list[int]) -> None:
    assert [window.slides(i) for i in range(4)] == slides


@pytest.mark.parametrize(("field", "value"), [("tokens", 0), ("full_every", 1), ("full_every", -1), ("first_full", -1)])
def test_refused(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{field}: {value} must be"):
        SlidingWindow(**({"tokens": 8} | {field: value}))
