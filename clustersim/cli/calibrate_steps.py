"""``clustersim calibrate steps``: what whole steps miss, from predictions beside measurements."""

from __future__ import annotations

from pathlib import Path

from clustersim.cli.output import OK, print_json

__all__ = ["calibrate_steps"]


def calibrate_steps(files: tuple[Path, ...], *, name: str, out: Path | None, as_json: bool) -> int:
    """Learn the residual of steps; parameters as of the command."""
    from clustersim.study.steps.calibrate_files import calibrate_step_files

    made = calibrate_step_files(files, name=name)
    written = []
    if out is not None:
        target = out / "residuals" / f"{name}.toml"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(made.text, encoding="utf-8")
        written.append(str(target))
    if as_json:
        told = {"centre": made.residual.centre, "spread": made.residual.spread, "inside": made.inside}
        print_json({"num_rows": made.num_rows, "num_sources": made.num_sources, **told, "written": written})
        return OK
    print(f"{made.num_rows} measured steps of {made.num_sources} sources\n")
    print(f"  centre  {made.residual.centre:+.3f} of ln(measured / predicted time)")
    print(f"  spread  {made.residual.spread:.3f} beside kernels and collectives")
    print(f"  inside  {made.inside:.1%} of rows in intervals made from other sources\n")
    print("\n".join(f"wrote {path}" for path in written) or "nothing was written: --out FOLDER saves the card")
    return OK
