"""`find --reachable`: looks values up in all that a table reaches, and certifies that nothing is left.

table: files, bounds, texts -> executors: files with values -> of these, live rows -> places, or a certificate
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow.compute as pc

from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions, TableOptions
from bloomcli.datasets.hadoop_paths import portable
from bloomcli.datasets.spark_session import checked_session
from bloomcli.errors import BloomError, UnknownColumn, UsageError
from bloomcli.finding.lake import Search
from bloomcli.finding.on_spark import cores_of, of_table, searched
from bloomcli.finding.search_files import FileWork, Job, failed, parts_of
from bloomcli.finding.value_file import values_given
from bloomcli.model.dataset import gravest
from bloomcli.model.find import Certificate, FileFound, LookedAt, Place, ReachableReport
from bloomcli.model.table_statistics import ColumnStatistics, Key
from bloomcli.model.table_statistics import Kind as Type
from bloomcli.tables.base import Table, in_sql
from bloomcli.tables.columns import column_hint
from bloomcli.tables.opening import open_table
from bloomcli.tables.reachable import Keeper, Kind, Reachable, ReachedFile
from bloomcli.values.keys import parse_key
from bloomcli.version import __version__
from bloomcli.words import counted

_TIMES: Final = (Type.TIMESTAMP, Type.INSTANT)
_OF_DELTA: Final = (Kind.LOG, Kind.DIRECTORY)
_MILLI: Final = 1_000_000
_APPENDED: Final = ("\x7f", "\U0010ffff")
"""The characters that Delta appends to the beginning of a greatest text."""
_WORD: Final = re.compile(r"'([^']*)'|([^\s'\"(),=<>\[\]\\]+)")
"""A quoted text, or a number, in a condition in SQL."""
_NOT_LOOKED_AT: Final = (
    "texts of commits that don't name the column, or have a value in another form than the given one",
    "bounds in the metadata that aren't valid, or not of the column's type",
    "copies: clones and other tables with the same files, exports, backups, caches",
    "older versions of objects, and removed objects, that the store keeps",
    "streams and change feeds that others have read; logs and query histories of engines",
    "statistics of columns in a catalog or metastore",
    "what is written or committed after the time of this report",
)
_IN_LIST: Final = 1000
"""The most values in a printed DELETE."""
_PATTERN: Final = "DELETE ... IN (...) is a pattern: put in the condition that finds the rows with the values"
_ORDER: Final = ("DELETE", "rewrite_", "REORG", "DROP", "expire_", "SET spark", "VACUUM", "")
"""The order of statements: a rewrite leaves old files to the expiry of snapshots."""


def find_reachable(
    spark: Any, table: str, values: Any, *, column: str, values_column: str | None = None
) -> ReachableReport:
    """Look values up in all that an Iceberg or Delta table still reaches: older snapshots, branches, deleted rows,
    metadata. The driver gets the values.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table.
        values: as for `find_table`.
        column: leaf path of the table.
        values_column: the column of a frame of values.

    Raises:
        UsageError: no such table or column, or no values.
        UnsupportedError: the table is encrypted.
        UnreadableError, CorruptFile: the table's metadata can't be read.
    """
    driver_values = values.toArrow() if hasattr(values, "toArrow") else values
    wanted = values_given(driver_values, values_column)
    return find_in_reachable(spark, TableOptions(table=table), wanted, FindOptions(column=column))


def find_in_reachable(spark: Any, which: TableOptions, values: Values, options: FindOptions) -> ReachableReport:
    """Look values up in all that a table reaches.

    Args:
        spark: a classic session, with the table's catalog.
        which: the table.
        values: the values.
        options: the options of `find`; only the column.

    Raises:
        UsageError: no such table or column, no values, or a part of the table is chosen.
        UnsupportedError, UnreadableError, CorruptFile: as `Table.reachable`.
    """
    checked_session(spark)
    Search.checked_values(values)
    options = options.checked()
    if which != TableOptions(table=which.table):
        raise UsageError(
            "--reachable looks in all snapshots and files of a table",
            hint="leave out --where, --snapshot and --as-of",
        )
    if replace(options, column="") != FindOptions():
        raise UsageError("--reachable shows no rows", hint="leave out the options about rows and files")
    began = datetime.now(UTC)
    table = open_table(spark, which.table)
    reached = _reached(table, options.column)
    texts = pc.unique(values.texts).to_pylist()
    looked = _Looked(spark, which.table, reached, values, options)
    looked.look_in_files()
    looked.look_in_metadata([_text(text) for text in texts])
    looked.look_for_live_rows()
    places, errors = looked.places(), looked.errors
    certificate, others = None, reached.not_opened
    unopened = (
        [f"{counted(len(others), 'other file')} in the table's folders, such as {min(others)}"] if others else ()
    )
    if not places and not errors:
        salt = secrets.token_bytes(16)
        hashes = sorted(hashlib.sha256(salt + text).hexdigest() for text in texts)
        certificate = Certificate(salt=salt.hex(), value_hashes=tuple(hashes))
    return ReachableReport(
        table=which.table,
        location=reached.location,
        format=table.format,
        column=options.column,
        time=f"{began:%Y-%m-%dT%H:%M:%SZ}",
        bloom=__version__,
        version=table.version,
        versions=reached.versions,
        refs=reached.refs,
        values=len(texts),
        values_found=len(looked.found),
        looked_at=looked.looked_at(),
        metadata_files=reached.metadata_files,
        not_looked_at=(*unopened, *reached.not_looked_at, *_NOT_LOOKED_AT),
        places=tuple(places),
        statements=_in_order({text for place in places for text in place.ends}),
        notes=(*looked.notes, *reached.notes) if places else (),
        errors=tuple(errors),
        certificate=certificate,
        exit_code=gravest({error.exit_code for error in errors}) if errors else int(bool(places)),
    )


def _reached(table: Table, column: str) -> Reachable:
    """What a table reaches. Raises UnknownColumn for a column that it neither has nor had, or has by another name."""
    columns, reached = table.names().columns, table.reachable(column)
    if column in (paths := [own.path for own in columns]):
        return reached
    had = {own[1:3] for names in reached.names for own in names.columns if own.path == column}
    for now in (own.path for own in columns if own[1:3] in had):
        raise UnknownColumn(f"the column {column!r} is called {now!r} now", path=table.name, hint=f"--column {now}")
    if not had:
        reason = f"the table has no column {column!r}, and no schema that it still reaches has one"
        raise UnknownColumn(reason, path=table.name, hint=column_hint(column, paths, str))
    # the column was dropped: no row has it, so that none is deleted
    return reached._replace(files=[file._replace(keeper=file.keeper._replace(heads=())) for file in reached.files])


def _in_order(statements: Collection[str]) -> tuple[str, ...]:
    """Statements in the order in which they are run. The expiry until the latest time includes the others."""
    listed = sorted(statements, key=lambda text: (next(at for at, kind in enumerate(_ORDER) if kind in text), text))
    expiries = [
        text for text in listed if "system.expire_" in text and text.startswith("CALL") and "snapshot_ids" not in text
    ]
    return tuple(text for text in listed if text not in expiries[:-1])


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


class _Looked:
    """What was found so far.

    Attributes:
        found: the values that were found.
        errors: the files that couldn't be searched.
        notes: what the statements lack.
    """

    def __init__(self, spark: Any, table: str, reached: Reachable, values: Values, options: FindOptions) -> None:
        self._spark, self._table, self._reached, self._values = spark, table, reached, values
        self._options = replace(options, select=(options.column,))
        self._results: dict[str, list[FileFound]] = defaultdict(list)
        """By the files' paths as the table spells them: one for each column that the name has or had."""
        self._values_of: defaultdict[str, set[str]] = defaultdict(set)
        self._live: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._heads = {file.path: file.keeper.heads for file in reached.files}
        self._whole: defaultdict[str, set[str]] = defaultdict(set)
        """The values that the metadata give to all rows of a file."""
        self._in_metadata: list[Place] = []
        self.found: set[str] = set()
        self.errors: list[FileFound] = []
        self.notes: tuple[str, ...] = ()

    def look_in_files(self) -> None:
        """Search all files that have rows."""
        for names in (*self._reached.names, *self._reached.of_partitions):
            partitions = names in self._reached.of_partitions
            files = [
                file
                for file in self._reached.files
                if file.kind is not Kind.VECTORS and (file.kind is Kind.PARTITIONS) == partitions
            ]
            job = Job(replace(self._options, names=names), of_table=True)
            parts = parts_of([*map(_work, files)], [file.size for file in files], job, cores_of(self._spark))
            for file, (result, batches, *_) in zip(files, searched(self._spark, parts, self._values), strict=True):
                texts: set[str] = set()
                for batch in batches:
                    values = batch.column(batch.schema.get_field_index("value")).unique()
                    texts.update(map(_text, values.to_pylist()))
                self._results[file.path].append(result)
                self._values_of[file.path] |= texts
                self.found |= texts
                self.errors += [result] if result.error is not None else []

    def look_for_live_rows(self) -> None:
        """Search the newest snapshots for rows that aren't deleted, in the files that have values."""
        whole = {entry.data_file for entry in self._reached.bounds if entry.whole and entry.kind in _OF_DELTA}
        if live := [(head, path) for path in whole for head in self._heads.get(path, ())]:
            for head, path in live:  # files may have the column, but Delta reads it from the log alone
                self._live[head, portable(path)] = sum(file_found.rows for file_found in self._results[path])
            return
        heads: defaultdict[str, set[str]] = defaultdict(set)
        for file in self._reached.files:
            for head in file.keeper.heads if self._values_of[file.path] else ():
                heads[head].add(portable(file.path))
        for head, paths in heads.items():
            every = of_table(self._spark, TableOptions(table=head), self._options, typed=False)
            some = every.chosen(lambda file, paths=paths: file.path in paths)  # type: ignore[misc]
            for result in searched(self._spark, some.parts, self._values):
                self._live[head, result.found.path] = result.found.rows
                self.errors += [result.found] if result.found.error is not None else []

    def look_in_metadata(self, texts: Sequence[str]) -> None:
        """Compare the values with bounds and texts of the metadata.

        The beginning of a value, or a cut time, in the bounds of a file without the value is that of another value.
        """
        keys_by_kind: dict[Type, _Known] = {}
        for path, kind, data_file, bounds, keeper, whole in self._reached.bounds:
            if bounds.kind not in keys_by_kind:
                keys_by_kind[bounds.kind] = _Known(texts, bounds.kind)
            same, part = keys_by_kind[bounds.kind].of(bounds, whole=whole)
            results = self._results.get(data_file)
            lacks = any(result.format is result.error is None for result in results or ())
            if kind is Kind.DEFAULT and not lacks:
                continue
            if whole and (lacks or kind in _OF_DELTA):
                self._whole[data_file] |= same
            if whole or (results and not any(result.rows or result.error is not None for result in results)):
                part = set()
            self._add(kind, path, same | part, keeper, data_file=data_file, part=not same)
        parts = map(re.escape, self._options.column.split("."))
        name = re.compile(rf"(?<!\w)({'|'.join(parts)})(?!\w)", re.IGNORECASE)
        odd = {text: text.replace("\\", "") for text in texts if "'" in text or not _WORD.fullmatch(text)}
        for path, text, keeper in self._reached.texts:
            if name.search(text):
                words, sql = {quoted or word for quoted, word in _WORD.findall(text)}, text.replace("\\", "")
                values = words.intersection(texts) | {value for value, unescaped in odd.items() if unescaped in sql}
                self._add(Kind.COMMIT, path, values, keeper)

    def _add(self, kind: Kind, path: str, values: Collection[str], keeper: Keeper, **facts: Any) -> None:
        if values:
            self.found.update(values)
            place = Place(kind=kind, path=path, values=len(values), kept_by=keeper.kept, ends=keeper.ends, **facts)
            self._in_metadata.append(place)

    def places(self) -> list[Place]:
        """All places, files first."""
        places, statements = [], self._deletes()
        for path, _, kind, keeper in self._reached.files:
            if values := self._values_of[path]:
                live = {head: rows for head in keeper.heads if (rows := self._live[head, portable(path)])}
                places.append(
                    Place(kind=kind, path=path, values=len(values), live_rows=max(live.values(), default=0),
                          rows=sum(result.rows for result in self._results[path]), kept_by=keeper.kept,
                          ends=(*(statements[head] for head in live), *keeper.ends))
                )  # fmt: skip
        for place in dict.fromkeys(self._in_metadata):
            path = place.data_file or ""
            heads = self._heads.get(path, ()) if self._whole[path] else ()
            places.append(replace(place, ends=(*(statements[head] for head in heads), *place.ends)))
        return places

    def _deletes(self) -> dict[str, str]:
        """The DELETE for each of the newest snapshots that has rows."""
        values: defaultdict[str, set[str]] = defaultdict(set)
        for file in self._reached.files:
            for head in file.keeper.heads:
                live = self._live.get((head, portable(file.path)))
                if file_values := self._whole[file.path] | (self._values_of[file.path] if live else set()):
                    values[head] |= file_values
        parts: list[str] = self._options.column.split(".")
        kind: Any = self._spark.table(self._table).schema if values else None
        for part in parts:
            kind = kind[part].dataType if hasattr(kind, "fieldNames") and part in kind.fieldNames() else None
        name, deletes = in_sql(parts), {}
        for head, texts in values.items():
            literals = [] if kind is None else [_literal(text, kind.simpleString()) for text in sorted(texts)]
            if not literals or len(literals) > _IN_LIST:
                self.notes, literals = (_PATTERN,), ["..."]
            deletes[head] = f"DELETE FROM {head} WHERE {name} IN ({', '.join(literals)})"  # noqa: S608  to be printed
        return deletes

    def looked_at(self) -> tuple[LookedAt, ...]:
        """The files by kind."""
        kinds: defaultdict[Kind, list[list[FileFound]]] = defaultdict(list)
        for file in self._reached.files:
            kinds[file.kind].append(self._results.get(file.path, []))
        counts = []
        for kind, every in kinds.items():
            whole = [results for results in every if results and all(result.error is None for result in results)]
            scanned = sum(any(result.pages_read for result in results) for results in whole)
            counts.append(
                LookedAt(kind=kind, files=len(every), by_filter=len(whole) - scanned, by_scan=scanned,
                         without_values=every.count([]))
            )  # fmt: skip
        return tuple(counts)


def _literal(text: str, kind: str) -> str:
    """A value as a literal of a type of Spark's."""
    if kind == "binary":
        return f"X'{re.sub('^0x|-', '', text)}'"
    quoted = "'" + text.replace("\\", r"\\").replace("'", r"\'") + "'"
    if kind.startswith(("string", "char", "varchar")):
        return quoted if text.isprintable() else f"CAST(X'{text.encode('utf-8', 'surrogateescape').hex()}' AS STRING)"
    return f"CAST({quoted} AS {kind.upper()})"


def _work(file: ReachedFile) -> FileWork:
    try:
        return FileWork(portable(file.path))
    except BloomError as error:
        return FileWork(file.path, found=failed(file.path, error))


class _Known:
    """Values as keys of one type, to find bounds that equal one, or the beginning of one."""

    def __init__(self, texts: Sequence[str], kind: Type) -> None:
        self._kind = kind
        self._exact: defaultdict[Key, set[str]] = defaultdict(set)
        """Numbers also as the nearest floats, because the width of the column's type isn't known."""
        self._cut: defaultdict[int, set[str]] = defaultdict(set)
        """Times, by their milliseconds."""
        self._beginnings: dict[int, defaultdict[bytes, set[str]]] = {}
        for text in texts:
            key_text = re.sub(r"^0x|-", "", text) if kind is Type.BYTES else text
            for float_bytes in (None, 4, 8) if kind is Type.NUMBER else (None,):
                with suppress(ValueError, ArithmeticError):
                    if (key := parse_key(key_text, kind, float_bytes=float_bytes)) is not None:
                        self._exact[key].add(text)
                        if kind in _TIMES:
                            self._cut[int(key) // _MILLI].add(text)

    def of(self, bounds: ColumnStatistics, *, whole: bool = False) -> tuple[set[str], set[str]]:
        """The values that bounds equal, and those of which they have a part. Bounds of times are cut, unless they
        are a value."""
        keys = [key for key in (bounds.low, bounds.high) if key is not None]
        if self._kind in _TIMES and not whole:
            return set(), {text for key in keys for text in self._cut.get(int(key) // _MILLI, ())}
        same = {text for key in keys for text in self._exact.get(key, ())}
        part: set[str] = set()
        for start in (bounds.low, self._start_of(bounds.high)):
            if isinstance(start, bytes) and start:
                part |= self._beginning(len(start)).get(start, set())
        return same, part - same

    def _beginning(self, length: int) -> defaultdict[bytes, set[str]]:
        """The values by their first bytes."""
        if length not in self._beginnings:
            self._beginnings[length] = defaultdict(set)
            for key, texts in self._exact.items():
                if isinstance(key, bytes) and len(key) > length:
                    self._beginnings[length][key[:length]] |= texts
        return self._beginnings[length]

    def _start_of(self, high: Key | None) -> bytes | None:
        """The beginning of a greatest value that was cut: Iceberg raises its last character, Delta appends one."""
        if not isinstance(high, bytes) or not high:
            return None
        if self._kind is Type.BYTES:
            return high[:-1] + bytes([max(high[-1] - 1, 0)])
        text = high.decode("utf-8", "surrogatepass")
        start = text[:-1] if text.endswith(_APPENDED) else text[:-1] + chr(max(ord(text[-1]) - 1, 0))
        return start.encode("utf-8", "surrogatepass")
