"""The trace on disk: one Parquet file, with the version of its columns in the file's metadata."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clustersim.faults import BadInput, Fault
from clustersim.trace.formats.whole_file import whole_file
from clustersim.trace.schema import COLUMNS, SCHEMA_VERSION

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read", "write"]

_VERSION_KEY = b"clustersim.schema_version"


def write(trace: pd.DataFrame, path: str | Path) -> Path:
    """Write a trace; :func:`read` gives back the same one, labels, types, categories and ``attrs`` included.

    Parameters
    ----------
    trace : DataFrame
    path : str or Path
        ``trace.parquet``

    Returns
    -------
    Path
        of the file
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(trace)
    metadata = (table.schema.metadata or {}) | {_VERSION_KEY: str(SCHEMA_VERSION).encode()}
    with whole_file(path) as place:
        pq.write_table(table.replace_schema_metadata(metadata), place, compression="zstd")
    return Path(path)


def read(path: str | Path) -> pd.DataFrame:
    """Read a trace that :func:`write` has written.

    Raises
    ------
    BadInput
        when the file is no Parquet, holds no trace, or one of another version
    OSError
        when it cannot be opened
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise BadInput([Fault(key="trace", value=str(error), rule="must be a Parquet file", file=str(path))]) from None
    version = (table.schema.metadata or {}).get(_VERSION_KEY, b"").decode()
    faults = []
    if version != str(SCHEMA_VERSION):
        rule = "must be the version that this release reads"
        faults.append(
            Fault(key="schema_version", value=version or None, rule=rule, nearest=SCHEMA_VERSION, file=str(path))
        )
    missing = [column.name for column in COLUMNS if column.name not in table.column_names]
    if missing:
        faults.append(Fault(key="columns", value=missing, rule="must not be missing", file=str(path)))
    if faults:
        raise BadInput(faults)
    trace: pd.DataFrame = table.to_pandas()
    return trace
