import pytest

from clustersim.workload.schedule.building_block import BuildingBlock


def test_one_stage_by_hand() -> None:
    block = BuildingBlock(down=1, up=1, turn=1, loss=2, back=3)
    # Slots 0 to 3 are taken; the W of chunk 1 takes slot 4, that of chunk 0 slot 5.
    assert " ".join(map(str, block.row(0, 2))) == ("F0.0 F0.1 I0.1 I0.0 W0.1 W0.0 F1.0 F1.1 I1.1 I1.0 W1.1 W1.0")


def test_units_that_collide() -> None:
    with pytest.raises(ValueError, match=r"stage 1: .* must be in different slots of 6"):
        BuildingBlock(down=1, up=1, turn=2, loss=3, back=7).row(1, 2)
