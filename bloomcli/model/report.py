"""What reports do in Python and in notebooks: a short `repr`, HTML, and their rows as an Arrow table."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from bloomcli.words import plural

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT_SHOWN: Final = 80
"""The most characters of a text in a `repr`."""
_NAMES_SHOWN: Final = 3
"""The most texts of a sequence in a `repr`; of a longer one, and of one of other objects, it shows the length."""


class Brief:
    """A dataclass whose `repr` shows only fields that differ from their defaults, and counts what is in sequences.

    Its classes are declared with ``repr=False``."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = (f"{name}={_brief(value)}" for name, value in _given(self))
        return f"{type(self).__name__}({', '.join(shown)})"


def _given(record: Any) -> Iterator[tuple[str, Any]]:
    for field in fields(record):
        value = getattr(record, field.name)
        if field.repr and value is not None and value != field.default:
            yield field.name, value


def _brief(value: Any) -> str:
    match value:
        case str():
            return repr(value if len(value) <= _TEXT_SHOWN else value[: _TEXT_SHOWN - 1] + "…")
        case bytes():
            return f"<{plural(len(value), 'byte')}>"
        case Mapping():
            return f"<{plural(len(value), 'key')}>"
        case Sequence() if len(value) > _NAMES_SHOWN or not all(isinstance(item, str) for item in value):
            return f"<{len(value):,} × {type(value[0]).__name__}>"
    return repr(value)


class Report(Brief):
    """The result of a command. Notebooks show it as HTML."""

    __slots__ = ()

    as_html: ClassVar[Callable[[Any], str] | None] = None
    """Writes a report as HTML. `bloomcli.report.show_in_notebooks` sets it, because this package can't import it."""

    def _repr_html_(self) -> str | None:
        return None if Report.as_html is None else Report.as_html(self)


class Rows(Report):
    """A report with rows: filters, findings, files. They are a table."""

    __slots__ = ()

    rows_in: ClassVar[tuple[type, str]]
    """The dataclass of the rows, and the field that has them."""

    def _rows(self) -> tuple[type, Sequence[Any]]:
        """The dataclass of the rows, and the rows."""
        kind, name = self.rows_in
        return kind, getattr(self, name)

    def to_arrow(self) -> pa.Table:
        """The rows as a `pyarrow.Table`, with a column for each field, named as in JSON.

        The fields of a nested object are columns, too: ``today.bytes.estimate``. Fields that have rows themselves are
        left out.
        """
        import pyarrow as pa

        kind, rows = self._rows()
        columns = {
            name: pa.array([_value(row, name) for row in rows], make_type()) for name, make_type in _columns(kind)
        }
        return pa.table(columns)

    def to_pandas(self) -> Any:
        """`to_arrow` as a data frame. Raises ModuleNotFoundError without pandas (``pip install pandas``)."""
        return self.to_arrow().to_pandas()


def _columns(kind: type, before: str = "") -> Iterator[tuple[str, Callable[[], pa.DataType]]]:
    """The columns of a table of dataclasses: their names, and functions that make their types."""
    import pyarrow as pa

    types: dict[Any, Callable[[], pa.DataType]] = {int: pa.int64, float: pa.float64, bool: pa.bool_}
    for name, hint in typing.get_type_hints(kind).items():
        choices = [argument for argument in typing.get_args(hint) if argument is not NoneType]
        if typing.get_origin(hint) is tuple:
            if choices[0] is str:
                yield before + name, lambda: pa.list_(pa.string())
        elif is_dataclass(choice := choices[0] if choices else hint):
            yield from _columns(typing.cast("type", choice), f"{before}{name}.")
        else:
            yield before + name, types.get(choice, pa.string)


def _value(row: Any, name: str) -> Any:
    """A value of a row, as Arrow takes it. Bytes of paths that aren't UTF-8 become escapes."""
    for part in name.split("."):
        row = getattr(row, part, None)  # None has no attributes
    if isinstance(row, tuple):
        return [_text(item) for item in row]
    return _text(row) if isinstance(row, str) else row


def _text(text: str) -> str:
    return str(text).encode("utf-8", "backslashreplace").decode()
