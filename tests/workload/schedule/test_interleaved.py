import pytest

from clustersim.workload.schedule import interleaved


def test_groups_of_p_go_through_the_chunks_in_turn() -> None:
    forward = [str(u) for u in interleaved(2, 2, 4)[0] if u.kind == "F"]
    backward = [str(u) for u in interleaved(2, 2, 4)[0] if u.kind == "B"]
    assert forward == ["F0.0", "F1.0", "F0.1", "F1.1", "F2.0", "F3.0", "F2.1", "F3.1"]
    assert backward == ["B0.1", "B1.1", "B0.0", "B1.0", "B2.1", "B3.1", "B2.0", "B3.0"]


@pytest.mark.parametrize(("p", "v", "m"), [(4, 2, 8), (2, 3, 8), (8, 2, 32)])
def test_the_warm_up_of_each_stage(p: int, v: int, m: int) -> None:
    for stage, row in enumerate(interleaved(p, v, m)):
        # One more forward than the warm-up itself: the steady phase begins with one.
        assert [u.kind for u in row].index("B") == 2 * (p - 1 - stage) + (v - 1) * p + 1


@pytest.mark.parametrize(("p", "v"), [(8, 3), (35, 3), (4, 2)])
def test_chunks_in_flight_on_the_first_stage(p: int, v: int) -> None:
    held = highest = 0
    for unit in interleaved(p, v, 2 * p)[0]:
        held += 1 if unit.kind == "F" else -1
        highest = max(highest, held)
    # Korthikanti et al. 2022, section 4.2.3: L·(1 + (p - 1)/(p·v)) layers; a chunk has L/(p·v).
    assert highest == p * v + p - 1


def test_short_batches_are_all_warm_up() -> None:
    kinds = "".join(u.kind for u in interleaved(4, 2, 4)[0])
    assert kinds == "F" * 8 + "B" * 8


def test_refuses_what_does_not_divide() -> None:
    with pytest.raises(ValueError, match="multiple of the 4 stages"):
        interleaved(4, 2, 6)
