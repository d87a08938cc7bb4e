"""Chooses a table's data files by a condition in SQL, from partition values and statistics, without Spark.

    text -> sqlglot -> tests of single columns, joined by AND and OR -> for each file: may a row meet the condition?

As in Iceberg and Delta, a file is left out if its partition values alone, or its statistics alone, show that no row
does. Sources: Iceberg's InclusiveMetricsEvaluator and ProjectionUtil, Delta's DataSkippingReader.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple

from sqlglot import condition, exp
from sqlglot.errors import SqlglotError

from bloomcli.checks.table_statistics import transformed
from bloomcli.datasets.spark_session import is_running
from bloomcli.errors import UnknownColumn, UnsupportedError, UsageError
from bloomcli.model.table_statistics import ColumnStatistics, FileStatistics, Key, Kind, PartitionValue
from bloomcli.tables.base import Leaf, TableSnapshot
from bloomcli.tables.columns import column_hint
from bloomcli.tables.java import settings
from bloomcli.values import calendar
from bloomcli.values.keys import parse_key
from bloomcli.values.literals import WIDE
from bloomcli.values.sql_constants import Value, constant

_MOST_LISTED: Final = 200
"""The longest IN list that Iceberg compares with bounds."""
_OFF: Final = 59 * 10**9
"""How far bounds of timestamps before `_MINUTES` in a Delta log may be off, in nanoseconds: Delta 3.2 and 3.3 cut the
zone's offset to minutes (delta-io/delta#5249)."""
_MINUTES: Final = calendar.parse_timestamp("1973-01-01 00:00:00")
"""Since then the offsets of all zones are whole minutes."""
_EXPONENT: Final = 100
"""The greatest exponent of a decimal: more than any column's."""
_FLOATS: Final = ("float", "double")
_WHOLE: Final = ("byte", "short", "integer", "int", "long")
_UNITS: Final[dict[str, int]] = {
    **dict.fromkeys(_WHOLE, 1),
    "date": calendar.DAY_NANOS,
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp_ntz"), 1000),
    **dict.fromkeys(("timestamp_ns", "timestamptz_ns"), 1),
}
_DATES: Final = ("year", "month", "day", "hour")
_TAKEN: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.NUMBER: ("number", "text"),
    Kind.BOOLEAN: ("boolean", "text"),
    Kind.TEXT: ("text",),
    Kind.BYTES: ("bytes",),
    **dict.fromkeys((Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT), ("time", "text")),
}
"""The kinds of constants that columns are compared with."""
_OPPOSITE: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.EQ: exp.NEQ, exp.LT: exp.GTE, exp.LTE: exp.GT, exp.NullSafeEQ: exp.NullSafeNEQ,
}  # fmt: skip
_NEGATED: Final = {**_OPPOSITE, **{negative: positive for positive, negative in _OPPOSITE.items()}}
_MIRRORED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
_SHOWN: Final = 100


class Range(NamedTuple):
    """The values from `low` to `high`, of which None is no end."""

    low: Key | None = None
    high: Key | None = None
    low_open: bool = False
    high_open: bool = False

    def overlaps(self, low: Key | None, high: Key | None) -> bool:
        """Whether a value may be in the range and between two others."""
        return not (
            _ends_before(self.high, low, is_open=self.high_open)
            or _ends_before(high, self.low, is_open=self.low_open)
        )


def _ends_before(high: Any, low: Any, *, is_open: bool) -> bool:
    return high is not None and low is not None and (high < low or (is_open and high == low))


class Test(NamedTuple):
    """Rows whose column has a value in one of the ranges or, with `nulls`, null."""

    leaf: Leaf
    ranges: tuple[Range, ...]
    nulls: bool = False
    form: str = ""
    """``in``: a list of values. ``not``: all values but those of a list or of a beginning."""


class Joined(NamedTuple):
    """Conditions that are joined by AND or, without `every`, by OR."""

    every: bool
    parts: tuple[Tree, ...]


Tree = bool | Test | Joined


class Condition:
    """A condition of a table's rows.

    Args:
        where: the condition, in Spark's SQL.
        table: the table.
        leaves: its leaf columns outside of lists and maps.

    Attributes:
        columns: the paths of the columns that it names.

    Raises:
        UsageError: the text isn't a condition, or names a column that the table doesn't have, or a value that isn't
            of its column's type.
        UnsupportedError: the condition can't be evaluated.
    """

    def __init__(self, where: str, table: TableSnapshot, leaves: Iterable[Leaf]) -> None:
        self._table, self._leaves, self.columns = table, list(leaves), set[str]()
        try:
            self._tree = self._read(condition(where, dialect="spark"), negated=False)
        except (SqlglotError, RecursionError):
            what = f"--where {where[:_SHOWN]!r} isn't a condition in Spark's SQL"
            raise UsageError(what, path=table.name, hint="--where \"day >= '2026-11-01'\"") from None

    def may_be_met(self, file: FileStatistics) -> bool:
        """Whether rows of a file may meet the condition.

        Args:
            file: what the table says about the file, at least about `columns`.
        """
        by_path = {column.path: column for column in file.columns}

        def by_statistics(test: Test) -> bool:
            return _by_statistics(test, by_path.get(test.leaf.path), file)

        def by_partition(test: Test) -> bool:
            return all(_by_partition(test, value) for value in file.partition if value.path == test.leaf.path)

        return file.rows != 0 and _may_be_met(self._tree, by_statistics) and _may_be_met(self._tree, by_partition)

    def _read(self, node: exp.Expr, *, negated: bool) -> Tree:
        while isinstance(node, exp.Paren | exp.Not):
            negated ^= isinstance(node, exp.Not)
            node = node.this
        if node.args.get("negate"):  # NOT LIKE
            negated = not negated
        match node:
            case exp.And() | exp.Or():
                parts = tuple(self._read(part, negated=negated) for part in node.flatten())
                return Joined(isinstance(node, exp.And) != negated, parts)
            case exp.Between():
                ends = ((exp.GTE, node.args["low"]), (exp.LTE, node.args["high"]))
                return Joined(not negated, tuple(self._compared(node, kind, node.this, end, negated=negated)
                                                 for kind, end in ends))  # fmt: skip
            case exp.Boolean():
                return bool(node.this) != negated
            case exp.Null():
                return False
            case exp.Is(this=this, expression=exp.Null() | exp.Boolean() as value):
                return self._compared(node, exp.NullSafeEQ, this, value, negated=negated)
            case exp.In(this=this, expressions=[_, *_] as values) if not node.args.get("query"):
                return self._listed(node, this, values, negated=negated)
            case exp.Like(this=this, expression=exp.Literal(is_string=True) as pattern):
                return self._like(node, this, pattern, negated=negated)
            case exp.Column() | exp.Dot():
                return self._compared(node, exp.EQ, node, exp.Boolean(this=not negated), negated=False)
        if type(node) in _NEGATED:
            return self._compared(node, type(node), node.this, node.expression, negated=negated)
        raise self._refusal(node)

    def _compared(
        self, node: exp.Expr, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr, *, negated: bool
    ) -> Tree:
        """The test of a comparison."""
        if constant(left) is not None:
            left, right, kind = right, left, _MIRRORED.get(kind, kind)
        leaf, values = self._leaf(node, left), self._values(node, [right])
        kind = _NEGATED[kind] if negated else kind
        if not values:  # NULL
            if kind not in {exp.NullSafeEQ, exp.NullSafeNEQ}:
                return False
            is_null = kind is exp.NullSafeEQ
            return Test(leaf, () if is_null else (Range(),), nulls=is_null)
        key = self._key(leaf, values[0])
        below, above = Range(high=key, high_open=True), Range(low=key, low_open=True)
        ranges: dict[type[exp.Expr], tuple[Range, ...]] = {
            **dict.fromkeys((exp.EQ, exp.NullSafeEQ), (Range(key, key),)),
            **dict.fromkeys((exp.NEQ, exp.NullSafeNEQ), (below, above)),
            exp.LT: (below,),
            exp.LTE: (Range(high=key),),
            exp.GT: (above,),
            exp.GTE: (Range(low=key),),
        }
        return Test(leaf, _closed(ranges[kind], leaf), nulls=kind is exp.NullSafeNEQ)

    def _listed(self, node: exp.Expr, left: exp.Expr, members: Sequence[exp.Expr], *, negated: bool) -> Tree:
        """The test of an IN list."""
        leaf, values = self._leaf(node, left), self._values(node, members)
        keys: list[Any] = sorted({self._key(leaf, value) for value in values})
        if not negated:
            return Test(leaf, _closed([Range(key, key) for key in keys], leaf), form="in")
        if len(values) < len(members) or not keys:  # with NULL, the list's negation is never true
            return False
        ends = zip((None, *keys), (*keys, None), strict=True)
        return Test(leaf, _closed([Range(low, high, True, True) for low, high in ends], leaf), form="not")

    def _like(self, node: exp.Expr, left: exp.Expr, pattern: exp.Literal, *, negated: bool) -> Tree:
        """The test of LIKE 'beginning%'."""
        leaf, text = self._leaf(node, left), str(pattern.this)
        beginning = text.removesuffix("%")
        if leaf.kind is not Kind.TEXT or set("%_\\") & set(beginning):
            raise self._refusal(node)
        if beginning == text:
            return self._compared(node, exp.EQ, left, pattern, negated=negated)
        low = beginning.encode("utf-8", "surrogatepass")
        high = low[:-1] + bytes([low[-1] + 1]) if low else None
        if not negated:
            return Test(leaf, (Range(low, high, high_open=True),))
        return Test(leaf, (Range(high=low, high_open=True), Range(high)) if low else (), form="not")

    def _leaf(self, node: exp.Expr, column: exp.Expr) -> Leaf:
        """The column that a part of a condition compares, without regard to case."""
        if not isinstance(column, exp.Column | exp.Dot) or constant(column) is not None:
            raise self._refusal(node)
        path = ".".join(part.name for part in column.parts)
        leaves = [leaf for leaf in self._leaves if leaf.path == path] or [
            leaf for leaf in self._leaves if leaf.path.lower() == path.lower()
        ]
        if len(leaves) != 1 or leaves[0].kind not in _TAKEN:
            columns = [name.path for name in self._table.names().columns]
            if leaves or path.lower() in map(str.lower, columns):
                raise self._refusal(node)
            hint = column_hint(path, columns, str)
            raise UnknownColumn(f"the table has no column {path!r}", path=self._table.name, hint=hint)
        self.columns.add(leaves[0].path)
        return leaves[0]

    def _values(self, node: exp.Expr, nodes: Iterable[exp.Expr]) -> list[Value]:
        """The values of constants, without NULLs."""
        constants: list[Value] = []
        for expression in nodes:
            values = constant(expression)
            if values is None or None in values:
                raise self._refusal(node)
            constants += [value for value in values if value is not None]
        return constants

    def _key(self, leaf: Leaf, value: Value) -> Key:
        """The key of a constant, as Spark's analyser casts it to the column's type. Raises UsageError."""
        assert leaf.kind is not None  # noqa: S101  `_leaf` has checked it
        text, hint = value.text.strip() if leaf.kind is not Kind.TEXT else value.text, None
        try:
            kinds = _TAKEN[leaf.kind] if leaf.type != "uuid" else ("text", "uuid")
            if leaf.type == "char" or value.kind not in kinds:
                raise ValueError
            if leaf.kind in {Kind.TIMESTAMP, Kind.INSTANT}:
                has_zone, moment = calendar.split_zone(text)[1] is not None, "TIMESTAMP'2026-11-01 10:00:00"
                if has_zone != (leaf.kind is Kind.INSTANT):
                    hint = f"it has instants: {moment}Z'" if not has_zone else f"its times have no zone: {moment}'"
                    raise ValueError
            if value.kind == "text" and leaf.type in _WHOLE:
                text = str(int(text))
            key_text = text.removeprefix("0x").replace("-", "") if leaf.kind is Kind.BYTES else text
            key = parse_key(key_text, leaf.kind, float_bytes=8 if leaf.type in _FLOATS else None)
            if key is not None and not (isinstance(key, Decimal) and abs(int(key.as_tuple().exponent)) > _EXPONENT):
                return key
        except (ValueError, ArithmeticError):
            pass
        raise UsageError(
            f"--where compares the column {leaf.path}, of the type {leaf.type}, with {text[:_SHOWN]!r}",
            path=self._table.name,
            hint=hint or "give a value of this type, such as 5, 'text', DATE'2026-11-01' or X'4142'",
        )

    def _refusal(self, node: exp.Expr) -> UnsupportedError:
        words = [] if is_running() else settings(self._table.format)
        line = shlex.join(["--engine", "spark", "--table", self._table.name_in_sql, *words])
        return UnsupportedError(
            f"--where {node.sql('spark')[:_SHOWN]!r} can't be evaluated without Spark",
            path=self._table.name,
            hint="compare columns with constants, by =, <>, <, <=, >, >=, <=>, IN, BETWEEN, IS NULL or LIKE"
            f" 'beginning%'; or let Spark evaluate it: {line}",
        )


def _may_be_met(tree: Tree, test: Callable[[Test], bool]) -> bool:
    if isinstance(tree, bool):
        return tree
    if isinstance(tree, Joined):
        return (all if tree.every else any)(_may_be_met(part, test) for part in tree.parts)
    return test(tree)


def _by_statistics(test: Test, facts: ColumnStatistics | None, file: FileStatistics) -> bool:
    """Whether a row may meet a test, by the statistics of its column."""
    if facts is None or (test.nulls and facts.nulls != 0):
        return True
    values = file.rows if facts.values is None else facts.values
    if values is not None and values == facts.nulls:
        return False
    low: Any = facts.low
    high: Any = facts.high
    ranges = test.ranges
    if file.source == "log":
        # Delta compares the ends of a list, and no negation of a list or a beginning
        if test.form == "in" and ranges:
            ranges = (Range(ranges[0].low, ranges[-1].high),)
        if test.leaf.kind in {Kind.TIMESTAMP, Kind.INSTANT}:
            low, high = (end if end is None or end > _MINUTES else end + off
                         for end, off in ((low, -_OFF), (high, _OFF)))  # fmt: skip
    if test.leaf.type == "uuid" or len(ranges) > _MOST_LISTED or (file.source == "log" and test.form == "not"):
        low = high = None  # writers order UUIDs in two ways
    if test.leaf.type in _FLOATS and facts.nans != 0 and not facts.nan_is_greatest:  # for Spark, NaN is above all
        only = facts.nans is not None and facts.nans + (facts.nulls or 0) == values
        return any(range_.high is None or (not only and range_.overlaps(low, high)) for range_ in ranges)
    return any(range_.overlaps(low, high) for range_ in ranges)


def _by_partition(test: Test, value: PartitionValue) -> bool:
    """Whether a row may meet a test, by the value of a partition field of its column."""
    if value.problem is not None or value.transform == "unknown":
        return True
    if value.value is None:
        return test.nulls
    if value.transform == "identity":
        return any(range_.overlaps(value.value, value.value) for range_ in test.ranges)
    return any(_in_partition(range_, value, test.leaf) for range_ in test.ranges)


def _in_partition(range_: Range, value: PartitionValue, leaf: Leaf) -> bool:
    """Whether values of a range may be in the partition of a transform that isn't the identity."""
    try:
        low, high = (None if end is None else transformed(end, value, leaf.kind, leaf.scale) for end in range_[:2])
    except (ArithmeticError, ValueError):
        return True
    if value.transform == "bucket":
        return low is None or range_.low != range_.high or low == value.value
    if value.transform in _DATES and isinstance(high, int) and high < 0:
        # an old writer's values before 1970 are one more
        high += calendar.DAY_NANOS if value.transform == "day" else 1
    return Range(low, high).overlaps(value.value, value.value)


def _closed(ranges: Iterable[Range], leaf: Leaf) -> tuple[Range, ...]:
    """Ranges whose ends are values of the column, if its values have a next one, without empty ranges."""
    is_decimal = leaf.type == "decimal"
    if not is_decimal and leaf.type not in _UNITS:
        return tuple(ranges)
    unit = Fraction(1, 10**leaf.scale) if is_decimal else Fraction(_UNITS[leaf.type])

    def end(key: Any, is_open: bool, step: int) -> Any:
        if key is None:
            return key
        count = Fraction(key) / unit
        whole = math.ceil(count) if step > 0 else math.floor(count)
        whole += step if is_open and whole == count else 0
        return Decimal(whole).scaleb(-leaf.scale, context=WIDE) if is_decimal else whole * int(unit)

    closed = (Range(end(range_.low, range_.low_open, 1), end(range_.high, range_.high_open, -1)) for range_ in ranges)
    return tuple(range_ for range_ in closed if not _ends_before(range_.high, range_.low, is_open=False))
