"""Files by other writers, each with a column of every type that the writer supports.

The column `n` numbers the rows, in no order. A file has the values of even numbers or those of odd numbers, which lie
between them: a value of one file is absent from the other, and no minimum or maximum excludes it.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Context
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from support.clickhouse import running

ROWS: Final = 2000
GROUP: Final = 500
STEP: Final = 1237  # has no factor in common with ROWS

_DAY: Final = dt.datetime(2024, 1, 1)
_EXACT: Final = Context(prec=76)


def numbers(parity: int) -> list[int]:
    """The numbers of the rows of a file, in its order."""
    return [i * STEP % ROWS * 2 + parity for i in range(ROWS)]


def _few(n: int, count: int) -> int:
    """One of `count` numbers with the parity of n."""
    return n % count // 2 * 2 + n % 2


def _decimal(whole: int, scale: int) -> Callable[[int], Any]:
    return lambda n: _EXACT.scaleb(_EXACT.create_decimal(10**whole + n - ROWS), -scale)


def _after(**unit: int) -> Callable[[int], dt.datetime]:
    (name,) = unit
    return lambda n: _DAY + dt.timedelta(**{name: n * unit[name]})


_ARROW: Final[dict[str, tuple[pa.DataType, Callable[[int], Any]]]] = {
    "int8": (pa.int8(), lambda n: _few(n, 250) - 125),
    "int16": (pa.int16(), lambda n: n * 8 - 16_000),
    "int32": (pa.int32(), lambda n: n * 1000 - 7),
    "int64": (pa.int64(), lambda n: n * 10**12 - 7),
    "uint8": (pa.uint8(), lambda n: _few(n, 250)),
    "uint16": (pa.uint16(), lambda n: n * 16),
    "uint32": (pa.uint32(), lambda n: n + 2**31 - ROWS),
    "uint64": (pa.uint64(), lambda n: n + 2**63 - ROWS),
    "float16": (pa.float16(), lambda n: _few(n, 2000) / 4),
    "float32": (pa.float32(), lambda n: n / 4 + 1),
    "float64": (pa.float64(), lambda n: n + 0.1),
    "decimal32": (pa.decimal32(7, 2), _decimal(6, 2)),
    "decimal64": (pa.decimal64(15, 2), _decimal(12, 2)),
    "decimal9": (pa.decimal128(9, 2), _decimal(8, 2)),
    "decimal18": (pa.decimal128(18, 4), _decimal(15, 4)),
    "decimal30": (pa.decimal128(30, 4), _decimal(28, 4)),
    "decimal38": (pa.decimal128(38, 4), _decimal(37, 4)),
    "decimal50": (pa.decimal256(50, 4), _decimal(17, 4)),
    "string": (pa.string(), lambda n: f"text {n:06} ä"),
    "large_string": (pa.large_string(), lambda n: f"text {n:06}"),
    "binary": (pa.binary(), lambda n: b"\xff\0" + f"{n:06}".encode()),
    "large_binary": (pa.large_binary(), lambda n: f"{n:06}".encode()),
    "fixed": (pa.binary(6), lambda n: f"{n:06}".encode()),
    "uuid": (pa.uuid(), lambda n: uuid.UUID(int=(n + 1) * 0x1234567890ABCDEF1234567)),
    "date32": (pa.date32(), lambda n: _after(days=1)(n).date()),
    "date64": (pa.date64(), lambda n: _after(days=1)(n).date()),
    "time32": (pa.time32("ms"), lambda n: _after(milliseconds=1001)(n).time()),
    "time64": (pa.time64("us"), lambda n: _after(microseconds=1001)(n).time()),
    "time64_ns": (pa.time64("ns"), lambda n: _after(microseconds=1001)(n).time()),
    **{f"timestamp_{u}": (pa.timestamp(u), _after(seconds=1)) for u in ("s", "ms", "us", "ns")},
    **{f"timestamp_{u}_utc": (pa.timestamp(u, "UTC"), _after(seconds=1)) for u in ("s", "ms", "us", "ns")},
    "duration": (pa.duration("us"), lambda n: dt.timedelta(seconds=n)),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), lambda n: f"entry {_few(n, 100):03}"),
}


PAIR: Final = ("pair.left", "pair.right")
"""Two fields of a struct."""


def table(parity: int, columns: Sequence[str]) -> pa.Table:
    """Columns of Arrow's types, with nulls."""
    found = numbers(parity)
    arrays: dict[str, Any] = {"n": pa.array(found, pa.int64())}
    for at, name in enumerate(_ARROW):
        kind, value = _ARROW[name]
        arrays[name] = pa.array([None if (i + at) % 13 == 12 else value(n) for i, n in enumerate(found)], kind)
    arrays["pair"] = pa.StructArray.from_arrays([arrays["int64"], arrays["string"]], ["left", "right"])
    return pa.table(arrays).select(["n", *_tops(columns)])


def _tops(columns: Sequence[str]) -> list[str]:
    """The top-level columns of leaf paths."""
    return list(dict.fromkeys(column.partition(".")[0] for column in columns))


def arrow(path: Path, parity: int, columns: Sequence[str]) -> None:
    """Arrow C++, without dictionaries."""
    pq.write_table(table(parity, columns), path, row_group_size=GROUP, use_dictionary=False)


def arrow_integers(path: Path, parity: int, columns: Sequence[str]) -> None:
    """Arrow C++, with decimals in integers where they fit, dictionaries, page indexes, pages of version 2."""
    pq.write_table(
        table(parity, columns),
        path,
        row_group_size=GROUP,
        store_decimal_as_integer=True,
        write_page_index=True,
        data_page_version="2.0",
        compression="zstd",
    )


def arrow_rs(path: Path, parity: int, columns: Sequence[str]) -> None:
    """arrow-rs with its defaults: dictionaries and page indexes."""
    from arro3.io import write_parquet

    write_parquet(table(parity, columns), path, max_row_group_size=GROUP, compression="zstd(1)")


_LABELS: Final = ", ".join(f"'l{i}'" for i in range(250))

_DUCKDB: Final = {
    "tiny": "(few250 - 125)::TINYINT",
    "small": "(n * 8 - 16000)::SMALLINT",
    "whole": "(n * 1000 - 7)::INTEGER",
    "big": "n * 1000000000000 - 7",
    "huge": "n::HUGEINT * 10000000000000000",
    "utiny": "few250::UTINYINT",
    "usmall": "(n * 16)::USMALLINT",
    "uwhole": "(n + 2147481648)::UINTEGER",
    "ubig": "(n::UHUGEINT + 9223372036854773808)::UBIGINT",
    "uhuge": "n::UHUGEINT",
    "single": "(n / 4)::FLOAT",
    "double": "(n + 0.1)::DOUBLE",
    "decimal4": "(few250 / 10)::DECIMAL(4, 1)",
    "decimal9": "(n / 10)::DECIMAL(9, 2)",
    "decimal18": "(n / 10)::DECIMAL(18, 4)",
    "decimal38": "(n / 10)::DECIMAL(38, 10)",
    "text": "'text ' || n || ' ä'",
    "blob": "('bytes ' || n)::BLOB",
    "bits": "n::INTEGER::BIT",
    "label": f"('l' || few250)::ENUM({_LABELS})",
    "id": "('00000000-0000-4000-8000-' || lpad(n::VARCHAR, 12, '0'))::UUID",
    "day": "DATE '2024-01-01' + n::INTEGER",
    "clock": "TIME '01:00:00' + to_seconds(n)",
    "moment": "TIMESTAMP '2024-01-01' + to_seconds(n)",
    "moment_s": "(TIMESTAMP '2024-01-01' + to_seconds(n))::TIMESTAMP_S",
    "moment_ms": "(TIMESTAMP '2024-01-01' + to_seconds(n))::TIMESTAMP_MS",
    "moment_ns": "(TIMESTAMP '2024-01-01' + to_seconds(n))::TIMESTAMP_NS",
    "instant": "(TIMESTAMP '2024-01-01' + to_seconds(n))::TIMESTAMPTZ",
    "interval": "to_days(n::INTEGER)",
    "json": "('{\"n\": ' || n || '}')::JSON",
    "pair": "{'left': n, 'right': 'r' || n}",
}


def duckdb(path: Path, parity: int, columns: Sequence[str]) -> None:
    """DuckDB: dictionaries; not the filters that it writes by default."""
    import duckdb as engine

    chosen = ", ".join(
        f"CASE WHEN i % 13 <> {at % 13} THEN {_DUCKDB[name]} END AS {name}" for at, name in enumerate(_tops(columns))
    )
    rows = f"SELECT i, i * {STEP} % {ROWS} * 2 + {parity} AS n FROM range({ROWS}) r(i)"
    few = f"SELECT *, n % 250 // 2 * 2 + {parity} AS few250 FROM ({rows})"
    with engine.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET threads = 1")
        connection.execute(
            f"COPY (SELECT n, {chosen} FROM ({few})) TO '{path}' (FORMAT parquet, WRITE_BLOOM_FILTER false)"
        )


_CLICKHOUSE: Final = {
    "i8": "toInt8(few - 125)",
    "i16": "toInt16(n * 8 - 16000)",
    "i32": "toInt32(n * 1000 - 7)",
    "i64": "toInt64(n * 1000000000000 - 7)",
    "i128": "toInt128(n) * 1000000000000000000 * 1000",
    "i256": "toInt256(n) * 1000000000000000000 * 1000000000000000000",
    "u8": "toUInt8(few)",
    "u16": "toUInt16(n * 16)",
    "u32": "toUInt32(n + 2147481648)",
    "u64": "toUInt64(n + 9223372036854773808)",
    "u128": "toUInt128(n) * 1000000000000000000 * 1000",
    "u256": "toUInt256(n) * 1000000000000000000 * 1000000000000000000",
    "f32": "toFloat32(n / 4)",
    "f64": "n + 0.1",
    "d9": "toDecimal32(n / 10, 2)",
    "d18": "toDecimal64(n / 10, 4)",
    "d38": "toDecimal128(n / 10, 10)",
    "d76": "toDecimal256(n / 10, 10)",
    "text": "concat('text ', toString(n), ' ä')",
    "fixed": "toFixedString(leftPad(toString(n), 6, '0'), 6)",
    "few_texts": "toLowCardinality(concat('entry ', toString(few)))",
    "label": f"CAST(concat('l', toString(few)), $$Enum16({_LABELS})$$)",
    "id": "toUUID(concat('00000000-0000-4000-8000-', leftPad(toString(n), 12, '0')))",
    "ip4": "toIPv4(toUInt32(n + 167772160))",
    "ip6": "toIPv6(concat('2001:db8::', hex(n)))",
    "day": "toDate(toDate('2024-01-01') + n)",
    "day32": "toDate32(toDate32('2024-01-01') + n)",
    "moment": "toDateTime('2024-01-01 00:00:00', 'UTC') + n",
    "moment_ms": "toDateTime64('2024-01-01 00:00:00', 3, 'UTC') + n",
    "moment_us": "toDateTime64('2024-01-01 00:00:00', 6, 'UTC') + n",
    "moment_ns": "toDateTime64('2024-01-01 00:00:00', 9, 'UTC') + n",
    "maybe": "if(i % 13 = 12, NULL, toInt64(n))",
    "maybe_text": "if(i % 13 = 11, NULL, toString(n))",
}


def clickhouse(path: Path, parity: int, columns: Sequence[str]) -> None:
    """ClickHouse: dictionaries and page indexes; not the filters that it writes by default."""
    chosen = ", ".join(f"{_CLICKHOUSE[name]} AS {name}" for name in columns)
    rows = f"SELECT number AS i, toInt64(i * {STEP} % {ROWS} * 2 + {parity}) AS n FROM numbers({ROWS})"
    few = f"SELECT *, intDiv(n % 250, 2) * 2 + {parity} AS few FROM ({rows})"
    with running() as server:
        server.ask(
            f"INSERT INTO FUNCTION file('{path}', Parquet) SELECT n, {chosen} FROM ({few})"
            f" SETTINGS max_threads = 1, output_format_parquet_row_group_size = {GROUP},"
            " output_format_parquet_write_bloom_filter = 0"
        )


_POLARS: Final = (
    *(
        "i8",
        "i16",
        "i32",
        "i64",
        "int128",
        "u8",
        "u16",
        "u32",
        "u64",
        "f16",
        "f32",
        "f64",
        "d9",
        "d38",
        "text",
        "blob",
    ),
    *("label", "category", "day", "clock", "span", "moment_ms", "moment_us", "moment_ns", "instant", "pair"),
)


def _polars(parity: int) -> dict[str, Any]:
    """Expressions of Polars' types. Not UInt128: Polars writes its minimum and maximum big-endian and its values
    little-endian, so readers lose rows with and without filters."""
    import polars as pl

    n = pl.col("n")
    few = n % 250 // 2 * 2 + parity
    moment = pl.lit(_DAY) + pl.duration(seconds=n)
    return {
        "i8": (few - 125).cast(pl.Int8),
        "i16": (n * 8 - 16_000).cast(pl.Int16),
        "i32": (n * 1000 - 7).cast(pl.Int32),
        "i64": n * 10**12 - 7,
        "int128": n.cast(pl.Int128) * 10**12 * 10**12,
        "u8": few.cast(pl.UInt8),
        "u16": (n * 16).cast(pl.UInt16),
        "u32": (n + 2**31 - ROWS).cast(pl.UInt32),
        "u64": n.cast(pl.UInt64) + 2**63 - ROWS,
        "f16": (n % 2000 / 4).cast(pl.Float16),
        "f32": (n / 4).cast(pl.Float32),
        "f64": n + 0.1,
        "d9": (n.cast(pl.Decimal(9, 2)) / 4).cast(pl.Decimal(9, 2)),
        "d38": (n.cast(pl.Decimal(38, 4)) / 4).cast(pl.Decimal(38, 4)),
        "text": pl.format("text {} ä", n),
        "blob": pl.format("bytes {}", n).cast(pl.Binary),
        "label": pl.format("l{}", few).cast(pl.Enum([f"l{i}" for i in range(250)])),
        "category": pl.format("c{}", few).cast(pl.Categorical),
        "day": pl.lit(_DAY.date()) + pl.duration(days=n),
        "clock": moment.dt.time(),
        "span": pl.duration(seconds=n),
        **{f"moment_{u}": moment.cast(pl.Datetime(u)) for u in ("ms", "us", "ns")},
        "instant": moment.cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
        "pair": pl.struct(left=n, right=pl.format("r{}", n)),
    }


def polars(path: Path, parity: int, columns: Sequence[str]) -> None:
    """Polars."""
    import polars as pl

    known, index = _polars(parity), pl.int_range(pl.len())
    chosen = [pl.when(index % 13 != at % 13).then(known[name]).alias(name) for at, name in enumerate(_tops(columns))]
    pl.DataFrame({"n": numbers(parity)}).with_columns(*chosen).write_parquet(path, row_group_size=GROUP)


class Writer(NamedTuple):
    """A writer, and the leaf columns that it writes."""

    columns: tuple[str, ...]
    write: Callable[[Path, int, Sequence[str]], None]


def _leaves(names: Iterable[str]) -> tuple[str, ...]:
    return (*(name for name in names if name != "pair"), *PAIR)


WRITERS: Final = {
    "arrow": Writer(_leaves(_ARROW), arrow),
    "arrow_integers": Writer(_leaves(_ARROW), arrow_integers),
    "arrow_rs": Writer(_leaves(_ARROW), arrow_rs),
    "duckdb": Writer(_leaves(_DUCKDB), duckdb),
    "clickhouse": Writer(tuple(_CLICKHOUSE), clickhouse),
    "polars": Writer(_leaves(_POLARS), polars),
}
