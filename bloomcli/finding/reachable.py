"""`find --reachable`: looks values up in all that a table reaches, and certifies that nothing is left.

table: files, bounds, texts -> executors: files with values -> of these, live rows -> places, or a certificate
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow.compute as pc

from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions, ProbeOptions
from bloomcli.commands.table_options import TableOptions
from bloomcli.datasets.hadoop_paths import portable
from bloomcli.datasets.spark_session import checked_session
from bloomcli.errors import BloomError, UsageError
from bloomcli.finding.job import FileWork, Job
from bloomcli.finding.lake import Search, failed
from bloomcli.finding.on_spark import SearchFiles, cores_of, of_table
from bloomcli.finding.spark_lake import searched
from bloomcli.model.dataset import gravest
from bloomcli.model.find import FileFound
from bloomcli.model.reachable import Certificate, LookedAt, Place, ReachableReport
from bloomcli.model.table_statistics import ColumnStatistics, Key
from bloomcli.model.table_statistics import Kind as Type
from bloomcli.storage.base import FileEntry
from bloomcli.tables.columns import check_columns
from bloomcli.tables.reachable import Keeper, Kind, Reachable, ReachedFile
from bloomcli.tables.registry import open_table
from bloomcli.values.keys import parse_key
from bloomcli.version import __version__

_TIMES: Final = (Type.TIMESTAMP, Type.INSTANT)
_MILLI: Final = 1_000_000
_ENDS: Final = ("\x7f", "\U0010ffff")
"""The characters that Delta appends to the beginning of a greatest text."""
_WORD: Final = re.compile(r"'([^']*)'|([^\s'\"(),=<>\[\]\\]+)")
"""A quoted text, or a number, in a condition in SQL."""
_ORDER: Final = (
    "DELETE",
    "rewrite_",
    "REORG",
    "ALTER TABLE .* DROP",
    "expire_",
    "SET ",
    "VACUUM",
    "remove_orphan",
    "",
)
"""The order of statements: a rewrite leaves old files to the expiry of snapshots."""


def find_reachable(spark: Any, which: TableOptions, values: Values, options: FindOptions) -> ReachableReport:
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
    which, options = which.checked(), options.checked()
    if which.where is not None or which.snapshot is not None or which.as_of is not None:
        raise UsageError(
            "--reachable looks in all snapshots and files of a table",
            hint="leave out --where, --snapshot and --as-of",
        )
    if replace(options, column="") != FindOptions():
        raise UsageError("--reachable shows no rows", hint="leave out the options on rows and files")
    began = datetime.now(UTC)
    table = open_table(spark, which.table)
    check_columns(table, ProbeOptions(column=options.column), table.names())
    reached = table.reachable(options.column)
    texts = [text.decode("utf-8", "surrogateescape") for text in pc.unique(values.texts).to_pylist()]
    looked = _Looked(spark, reached, values, options)
    looked.look_in_files()
    looked.look_in_metadata(texts)
    looked.look_for_live_rows()
    found, errors = looked.places(), looked.errors
    report = ReachableReport(
        table=which.table,
        column=options.column,
        values=len(texts),
        values_found=len(looked.found),
        looked_at=looked.looked_at(),
        metadata_files=reached.metadata_files,
        places=tuple(found),
        statements=tuple(sorted({text for place in found for text in place.ends}, key=_order)),
        notes=reached.notes if found else (),
        not_looked_at=reached.not_looked_at,
        errors=tuple(errors),
        exit_code=gravest({error.exit_code for error in errors}) if errors else int(bool(found)),
    )
    if report.exit_code:
        return report
    salt = secrets.token_bytes(16)
    hashes = (hashlib.sha256(salt + text.encode("utf-8", "surrogateescape")).hexdigest() for text in texts)
    certificate = Certificate(
        table=which.table,
        location=reached.location,
        format=table.format,
        column=options.column,
        time=f"{began:%Y-%m-%dT%H:%M:%SZ}",
        bloom=__version__,
        version=table.version,
        versions=reached.versions,
        refs=reached.refs,
        looked_at=report.looked_at,
        metadata_files=reached.metadata_files,
        not_looked_at=reached.not_looked_at,
        values=len(texts),
        salt=salt.hex(),
        value_hashes=tuple(sorted(hashes)),
    )
    return replace(report, certificate=certificate)


def _order(statement: str) -> tuple[int, str]:
    return next(at for at, start in enumerate(_ORDER) if re.search(start, statement)), statement


class _Looked:
    """What was found, so far, in what a table reaches."""

    def __init__(self, spark: Any, reached: Reachable, values: Values, options: FindOptions) -> None:
        self._spark, self._reached, self._values, self._options = spark, reached, values, options
        self._results: dict[str, FileFound] = {}
        """By the files' paths as the table spells them. A file's rows are those of all columns of the name."""
        self._values_of: defaultdict[str, set[str]] = defaultdict(set)
        self._live: defaultdict[str, int] = defaultdict(int)
        self._in_metadata: list[Place] = []
        self.found: set[str] = set()
        """The values that were found."""

    @property
    def errors(self) -> list[FileFound]:
        """The files that couldn't be searched."""
        return [found for found in self._results.values() if found.error is not None]

    def look_in_files(self) -> None:
        """Search all files that have rows."""
        files = [file for file in self._reached.files if file.kind is not Kind.VECTOR]
        for names in self._reached.names:
            options = replace(self._options, select=(self._options.column,), names=names)
            for file, found, texts in self._search(files, Job(options, of_table=True)):
                before = self._results.get(file.path)
                if before is None or found.error is not None or (before.error is None and found.rows >= before.rows):
                    self._results[file.path] = found
                self._values_of[file.path] |= texts
                self.found |= texts

    def _search(self, files: Sequence[ReachedFile], job: Job) -> Iterator[tuple[ReachedFile, FileFound, set[str]]]:
        work, entries = [], []
        for file in files:
            path, result = file.path, None
            try:
                path = portable(file.path)
            except BloomError as error:
                result = failed(file.path, error)
            work.append(FileWork(path, found=result))
            entries.append(FileEntry(path, file.size, path, walked=False))
        parts = SearchFiles(job, work, entries, cores_of(self._spark)).parts
        for file, (found, batches, *_) in zip(files, searched(self._spark, parts, self._values), strict=True):
            texts = set()
            for batch in batches:
                given = batch.column(batch.schema.get_field_index("value")).unique().to_pylist()
                texts |= {text.decode("utf-8", "surrogateescape") for text in given}
            yield file, found, texts

    def look_for_live_rows(self) -> None:
        """Search the newest snapshots for rows that aren't deleted, in the files that have values."""
        heads: defaultdict[str, set[str]] = defaultdict(set)
        for file in self._reached.files:
            for head in file.keeper.heads if self._values_of.get(file.path) else ():
                heads[head].add(portable(file.path))
        for head, paths in heads.items():
            options = replace(self._options, select=(self._options.column,))
            every = of_table(self._spark, TableOptions(table=head), options, typed=False)
            chosen = [pair for pair in zip(every.files, every.listed, strict=True) if pair[0].path in paths]
            some = every._replace(files=[file for file, _ in chosen], listed=[entry for _, entry in chosen])
            for result in searched(self._spark, some.parts, self._values):
                self._live[result.found.path] += result.found.rows
                for _ in result.batches:
                    pass

    def look_in_metadata(self, texts: Sequence[str]) -> None:
        """Compare the values with bounds and texts of the metadata.

        The beginning of a value, or a cut time, in the bounds of a file without the value is that of another value.
        """
        known: dict[Type, _Known] = {}
        for path, kind, data_file, bounds, keeper in self._reached.bounds:
            if bounds.kind not in known:
                known[bounds.kind] = _Known(texts, bounds.kind)
            exact, part = known[bounds.kind].of(bounds)
            result = self._results.get(data_file)
            if result is not None and result.error is None and not result.rows:
                part = set()
            if exact or part:
                self._add(kind, path, exact | part, keeper, data_file=data_file, part=not exact)
        wanted, name = set(texts), self._options.column.rpartition(".")[2]
        for one in self._reached.texts:
            if name in one.text:
                words = {quoted or word for quoted, word in _WORD.findall(one.text)}
                if here := wanted & words:
                    self._add(Kind.COMMIT, one.path, here, one.keeper)

    def _add(self, kind: Kind, path: str, values: Collection[str], keeper: Keeper, **facts: Any) -> None:
        self.found.update(values)
        self._in_metadata.append(
            Place(kind=kind, path=path, values=len(values), kept_by=keeper.kept, ends=keeper.ends, **facts)
        )

    def places(self) -> list[Place]:
        """All places, files first."""
        found = []
        for file in self._reached.files:
            if not self._values_of.get(file.path):
                continue
            live = self._live[portable(file.path)]
            first = [f"DELETE FROM {head} WHERE {self._options.column} IN (...)" for head in file.keeper.heads]  # noqa: S608  shown
            found.append(
                Place(
                    kind=file.kind,
                    path=file.path,
                    values=len(self._values_of[file.path]),
                    rows=self._results[file.path].rows,
                    live_rows=live,
                    kept_by=file.keeper.kept,
                    ends=(*(first if live else ()), *file.keeper.ends),
                )
            )
        return [*found, *dict.fromkeys(self._in_metadata)]

    def looked_at(self) -> tuple[LookedAt, ...]:
        """The files by kind."""
        kinds: defaultdict[Kind, list[FileFound | None]] = defaultdict(list)
        for file in self._reached.files:
            kinds[file.kind].append(self._results.get(file.path))
        return tuple(
            LookedAt(
                kind=kind,
                files=len(found),
                by_scan=sum(one is not None and one.error is None and one.pages_read > 0 for one in found),
                by_filter=sum(one is not None and one.error is None and not one.pages_read for one in found),
                without_values=sum(one is None for one in found),
            )
            for kind, found in kinds.items()
        )


class _Known:
    """Values as keys of one type, to find bounds that equal one, or the beginning of one."""

    def __init__(self, texts: Sequence[str], kind: Type) -> None:
        self._kind = kind
        self._exact: defaultdict[Key, set[str]] = defaultdict(set)
        """Numbers also as the nearest floats, because the column's type isn't known."""
        self._beginnings: dict[int, dict[bytes, set[str]]] = {}
        for text in texts:
            plain = re.sub(r"^0x|-", "", text) if kind is Type.BYTES else text
            with suppress(ValueError, ArithmeticError):
                for float_bytes in (None, 4, 8) if kind is Type.NUMBER else (None,):
                    key = parse_key(plain, kind, float_bytes=float_bytes)
                    if key is not None:
                        self._exact[self._cut(key)].add(text)

    def _cut(self, key: Key) -> Key:
        return int(key) // _MILLI if self._kind in _TIMES else key

    def of(self, bounds: ColumnStatistics) -> tuple[set[str], set[str]]:
        """The values that bounds equal, and those of which they have a part."""
        keys = [key for key in (bounds.low, bounds.high) if key is not None]
        same = {text for key in keys for text in self._exact.get(self._cut(key), ())}
        if self._kind in _TIMES:
            return set(), same
        if self._kind not in {Type.TEXT, Type.BYTES}:
            return same, set()
        part = set()
        for beginning in (bounds.low, self._before(bounds.high)):
            if isinstance(beginning, bytes) and beginning:
                part |= self._beginning(len(beginning)).get(beginning, set())
        return same, part - same

    def _beginning(self, length: int) -> dict[bytes, set[str]]:
        """The values by their first bytes."""
        if length not in self._beginnings:
            found: dict[bytes, set[str]] = {}
            for key, texts in self._exact.items():
                if isinstance(key, bytes) and len(key) > length:
                    found.setdefault(key[:length], set()).update(texts)
            self._beginnings[length] = found
        return self._beginnings[length]

    def _before(self, high: Key | None) -> bytes | None:
        """The beginning of a greatest value that was cut: Iceberg raises its last character, Delta appends one."""
        if not isinstance(high, bytes) or not high:
            return None
        if self._kind is Type.BYTES:
            return high[:-1] + bytes([max(high[-1] - 1, 0)])
        text = high.decode("utf-8", "surrogatepass")
        if text.endswith(_ENDS):
            return text[:-1].encode("utf-8", "surrogatepass")
        return (text[:-1] + chr(max(ord(text[-1]) - 1, 0))).encode("utf-8", "surrogatepass")
