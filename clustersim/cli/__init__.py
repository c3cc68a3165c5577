"""The command line: thin commands over the public functions, each loading what it needs when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

    from clustersim.faults import Fault

__all__ = ["app", "main"]


def app() -> App:
    """All commands."""
    from cyclopts import App, Parameter

    from clustersim import __version__
    from clustersim.cli import (
        calibrate,
        collective,
        compare,
        export,
        listing,
        memory,
        plot,
        reproduce,
        run,
        show,
        validate,
    )

    commands = App(
        name="clustersim",
        help="Simulate training jobs on GPU clusters.",
        version=__version__,
        default_parameter=Parameter(negative="", show_default=False),
    )
    commands.command(run.run)
    commands.command(collective.collective)
    commands.command(memory.memory)
    commands.command(calibrate.calibrate)
    commands.command(validate.validate)
    commands.command(reproduce.reproduce)
    commands.command(compare.compare)
    commands.command(plot.plot)
    commands.command(export.export)
    commands.command(listing.list_, name="list")
    commands.command(show.show)
    return commands


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    tokens : Sequence[str], optional
        what was typed after ``clustersim``; that of this process when None

    Returns
    -------
    int
        0: it went well; 1: the run failed, its answer is printed all the same; 2: the input has faults, all of them on
        stderr, and as JSON on stdout when asked for
    """
    from cyclopts import CycloptsError

    from clustersim.cli.output import FAILED, print_json, refuse
    from clustersim.faults import BadInput

    typed = list(sys.argv[1:] if tokens is None else tokens)
    as_json = "--json" in typed
    try:
        command, bound, *_ = app().parse_args(typed, exit_on_error=False, print_error=False)
        return int(command(*bound.args, **bound.kwargs) or 0)
    except CycloptsError as error:
        return refuse([_usage(error)], as_json)
    except BadInput as error:
        return refuse(error.faults, as_json)
    except KeyboardInterrupt:
        print("interrupted before there was a result", file=sys.stderr)
        if as_json:
            print_json({"status": "interrupted"})
        return FAILED
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stderr.close()
        return FAILED
    except OSError as error:  # a full disk, a file that went away
        print(f"{error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return FAILED


def _usage(error: CycloptsError) -> Fault:
    """A mistake in the command itself."""
    from clustersim.faults import Fault

    return Fault(key="command line", value=None, rule=" ".join(str(error).split()))
