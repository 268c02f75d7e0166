"""Rows as a data frame of pandas or polars, whichever is asked for or installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, get_args

from debate.errors import ConfigError
from debate.evaluation import Evaluation, FrameLibrary
from debate.export.tables import CELL_COLUMNS, FOUND_COLUMNS, cell_rows, found_row
from debate.export.writer import Row
from debate.types import check_choice

_REAL = ("score", "spread", "mass", "margin", "cv")
"""Columns of numbers in which NaN stands for what is missing."""


def data_frame(rows: Sequence[Row], columns: Sequence[str], library: FrameLibrary | None = None) -> Any:
    """The rows as a `DataFrame` with these columns; what a row does not have is missing there.

    Args:
        rows: by column.
        columns: their names, in order.
        library: which makes it; None takes pandas where it is installed, else polars.

    Raises:
        ConfigError: when that library is not installed.
    """
    if library is not None:
        check_choice("library", library, FrameLibrary)
    name, made = _library(library)
    full = [{each: row.get(each) for each in columns} for row in rows]
    if name == "pandas":
        return made.DataFrame(full, columns=list(columns)).astype({each: float for each in columns if each in _REAL})
    if not full:
        return made.DataFrame(schema=list(columns))
    return made.DataFrame(full, infer_schema_length=None, strict=False)


def cells_frame(evaluations: Sequence[Evaluation], library: FrameLibrary | None = None) -> Any:
    """A row for each cell of the tensors."""
    columns = [each for each in CELL_COLUMNS if each != "run"]
    return data_frame([row for each in evaluations for row in cell_rows(each)], columns, library)


def found_frame(evaluations: Sequence[Evaluation], library: FrameLibrary | None = None) -> Any:
    """A row for each evaluation."""
    return data_frame([found_row(each) for each in evaluations], FOUND_COLUMNS, library)


def _library(wanted: FrameLibrary | None) -> tuple[str, Any]:
    """The name and the module."""
    for name in get_args(FrameLibrary) if wanted is None else (wanted,):
        try:
            return name, import_module(name)
        except ImportError:
            continue
    hint = f"pip install {wanted or 'pandas'}" + (" or polars" if wanted is None else "") + ", or use .table()"
    raise ConfigError("a data frame needs a library", hint=hint)
