"""Values from Arrow data, a series, or a column of a data frame of Pandas, Polars or another library."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.values import Value, texts
from bloomcli.errors import UsageError, near_names
from bloomcli.formats.arrays import binaries

VALUES_COLUMN: Final = "--values-column"


def texts_of(values: Value | Sequence[Value] | pa.Array) -> pa.LargeBinaryArray:
    """The texts of Python or Arrow values. Raises UsageError for a value without a usual text form."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not isinstance(values, pa.Array):
        return binaries([text.encode("utf-8", "surrogateescape") for text in texts(values)])
    kind = values.type
    if pa.types.is_dictionary(kind):
        return texts_of(values.dictionary_decode())
    if pa.types.is_string_view(kind):
        return texts_of(values.cast(pa.large_string()))
    types = pa.types
    try:
        if types.is_boolean(kind) or types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind):
            return pc.cast(pc.cast(values.drop_null(), pa.large_string()), pa.large_binary())
    except pa.ArrowException as error:
        raise UsageError(f"the values can't be read: {error}") from None
    return texts_of(values.drop_null().to_pylist())


def chosen_column(columns: Sequence[str], column: str | None, path: str | None) -> str:
    """The column, or the only one. Raises UsageError, also for a name that several columns have."""
    if column is not None and columns.count(column) > 1:
        raise UsageError(f"the values have {columns.count(column)} columns {column!r}", path=path, hint="rename them")
    if column in columns or (column is None and len(columns) == 1):
        return columns[0] if column is None else column
    names = ", ".join(columns[:20]) + (f", and {len(columns) - 20:,} more" if len(columns) > 20 else "")
    if column is None:
        raise UsageError(f"the values are in one of {len(columns)} columns: {names}", path=path, hint=_named(columns))
    near = near_names(column, tuple(columns))
    hint = f"did you mean {' or '.join(near)}?" if near else f"it has {names}"
    raise UsageError(f"the values have no column {column!r}", path=path, hint=hint)


def _named(columns: Sequence[str]) -> str:
    first = columns[0] if columns else "NAME"
    return f"name it: {VALUES_COLUMN} {shlex.quote(first)}, in Python values_column={first!r}"


def arrow_of(values: Any, column: str | None) -> pa.Array | pa.ChunkedArray | None:
    """Arrow data, an array of NumPy, a series, or a column of a data frame of Pandas, Polars or another library as an
    Arrow array.

    Returns None for other values. Raises UsageError for a column that isn't there, or isn't named, for a frame of
    Spark, and for values without a usual text form, such as lists.
    """
    array = _arrow_of(values, column)
    if array is None:
        if column is not None:
            lazy = hasattr(values, "collect")
            raise UsageError("values_column is for a data frame", hint="collect() it" if lazy else "leave it out")
        return None
    kind = array.type
    of_user = isinstance(kind, pa.BaseExtensionType) and not kind.extension_name.startswith("arrow.")
    if of_user or pa.types.is_nested(kind):
        raise UsageError(f"values of the type {kind} have no usual text form", hint="convert them to text")
    return array


def _arrow_of(values: Any, column: str | None) -> pa.Array | pa.ChunkedArray | None:
    library = type(values).__module__.partition(".")[0]
    if library == "pyspark":
        raise UsageError(
            "a frame of Spark is searched on its executors",
            hint="bloomcli.spark.find(spark, paths, frame, column=..., values_column=...)",
        )
    if library == "pandas" and hasattr(values, "__len__"):  # whose NaN is a null; a Timestamp is one value
        if hasattr(values, "columns"):
            names = list(map(str, values.columns))
            values = values.iloc[:, names.index(chosen_column(names, column, None))]
        try:
            return pa.Array.from_pandas(values)
        except (pa.ArrowException, OverflowError):  # objects without one Arrow type: of a class, large, mixed
            return texts_of(values.dropna().tolist()).cast(pa.large_string())
    if library == "numpy" and values.ndim < 2:
        try:
            return pa.array(values.reshape(-1))
        except (pa.ArrowException, OverflowError):
            return None
    if isinstance(values, pa.Array | pa.ChunkedArray):
        array = pa.chunked_array(values.chunks if isinstance(values, pa.ChunkedArray) else [values], values.type)
    elif hasattr(values, "__arrow_c_stream__"):
        array = pa.chunked_array(values)
    elif hasattr(values, "__arrow_c_array__"):
        array = pa.chunked_array([pa.array(values)])
    else:
        return None
    if pa.types.is_struct(array.type):
        name = chosen_column([field.name for field in array.type], column, None)
        at = array.type.get_field_index(name)
        return pa.chunked_array([chunk.flatten()[at] for chunk in array.chunks], array.type.field(at).type)
    return array


def texts_of_frame(values: Any, column: str | None) -> tuple[str, ...]:
    """The texts of values, or of a column of them. Raises as `arrow_of` and `texts_of`."""
    return tuple(text.decode("utf-8", "surrogateescape") for text in column_texts(values, column).to_pylist())


def column_texts(values: Any, column: str | None) -> pa.LargeBinaryArray:
    """The UTF-8 of the texts of values, or of a column of them. Raises as `arrow_of` and `texts_of`."""
    array = arrow_of(values, column)
    return texts_of(values if array is None else array)
