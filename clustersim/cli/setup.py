"""The job that a command was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clustersim.faults import Fault
    from clustersim.library.job import JobSetup

__all__ = ["setup_of"]


def setup_of(
    job: str | None, model: str | None, topology: str | None, settings: tuple[str, ...]
) -> tuple[JobSetup, list[Fault]]:
    """What was asked for, and the settings that were refused one by one.

    Parameters
    ----------
    job : str, optional
        a card, a file or the folder of an earlier run
    model, topology : str, optional
        over those of the job
    settings : tuple[str, ...]
        each ``KEY=VALUE``

    Raises
    ------
    BadInput
        when there is no such job, or its card has faults: with those of the settings
    """
    from clustersim.faults import BadInput
    from clustersim.library.job import JobSetup, load_job
    from clustersim.library.settings import read_settings

    named = [f"{key}={value}" for key, value in (("model", model), ("topology", topology)) if value is not None]
    values, faults = read_settings([*named, *settings])
    try:
        setup = JobSetup.of() if job is None else load_job(job)
    except BadInput as error:
        raise BadInput([*error.faults, *faults]) from None
    return setup.with_values(values), faults
