"""Parts of layers that are to be graphs, of which the job has none."""

from __future__ import annotations

from clustersim.study.given_setting import GivenSetting
from clustersim.workload.captured import module_of

__all__ = ["nothing_captured", "partly_captured"]


def nothing_captured(case: GivenSetting) -> str | None:
    """Whether the job has no op of any of the modules; where nothing is launched, the plan's own note says so."""
    if case.job.plan["launch"] not in ("layers", "modules"):
        return None
    lacking = _lacking(case)
    return f"the job has no {' and no '.join(lacking)}" if len(lacking) == len(set(case.value)) else None


def partly_captured(case: GivenSetting) -> str | None:
    """Whether it has none of some of the modules."""
    lacking = _lacking(case)
    return f"{', '.join(lacking)}: no effect: the job has none" if lacking else None


def _lacking(case: GivenSetting) -> list[str]:
    found = {module_of(op) for op in case.ops}
    return [name for name in dict.fromkeys(case.value) if name not in found]
