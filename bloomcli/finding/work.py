"""Searches files for all values, one block at a time; on an executor, a task's files one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands import find
from bloomcli.commands.columns import kind_of, only_column
from bloomcli.concurrency.threads import Stop
from bloomcli.datasets.record_shape import apply_shape, leaves, struct_of
from bloomcli.datasets.task import OTHER_KIND
from bloomcli.datasets.value_blocks import BLOCK_VALUES, Block, Blocks, block_of
from bloomcli.errors import BloomError, LiteralError, UnknownColumn, UnknownFormat, UnsupportedError
from bloomcli.finding.search_files import FileWork, Job, Part, failed
from bloomcli.finding.spool import Spool
from bloomcli.finding.value_file import with_line
from bloomcli.formats.column_search import Candidates
from bloomcli.formats.registry import known_suffix, open_file
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.model.find import FileFound
from bloomcli.model.paths import shown
from bloomcli.storage.base import Fingerprint
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import open_source
from bloomcli.storage.sources import CachingSource


def search(part: Part, blocks: Blocks) -> Iterator[pa.RecordBatch | FileFound]:
    """Yield the rows of each file, none of a file that fails, and then the file's result. Closes the blocks."""
    files, job = part
    try:
        for file in files:
            spool = Spool()
            try:
                result = search_file(job, file, blocks, spool)
            except Exception as error:  # noqa: BLE001  a bug in one file's handling must not stop the others
                reason = f"{shown(file.path)}: a bug: {type(error).__name__}: {error}"
                result = FileFound(path=file.path, error=reason, exit_code=70)
            yield from spool.batches() if result.error is None else ()
            yield result
    finally:
        blocks.close()


def search_file(job: Job, file: FileWork, blocks: Blocks, spool: Spool, stop: Stop | None = None) -> FileFound:
    """Search a file; `spool` takes the rows.

    Args:
        job, file: the file, and what all files share.
        blocks: the values.
        spool: takes the rows, converted to the record's types.
        stop: cancels the search.
    """
    if file.found is not None:
        return file.found
    try:
        with convert_os_errors(file.path):
            return _File(job, file, spool, stop).search(blocks)
    except UnknownFormat as error:
        if file.walked and not known_suffix(file.path):
            return FileFound(path=file.path, reason=OTHER_KIND)
        return failed(file.path, error)
    except UnknownColumn as error:
        if not job.of_table:  # a table has the column, even if the file doesn't
            return failed(file.path, error)
        if job.why_not_lacking is not None:
            return failed(file.path, UnsupportedError(job.why_not_lacking, path=file.path))
        return FileFound(path=file.path)  # the column is null in all of its rows
    except BloomError as error:
        if isinstance(error, LiteralError) and blocks.only is not None:
            error = with_line(error, blocks.only.values)
        return failed(file.path, error)


class _File:
    """The search of one file.

    Args:
        job: the job.
        file: the file.
        spool: takes the rows, converted to the record's types.
        stop: cancels the search.
    """

    def __init__(self, job: Job, file: FileWork, spool: Spool, stop: Stop | None) -> None:
        self.job, self.file, self.spool, self._stop = job, file, spool, stop
        self._rows = 0
        self._indexed = file.indexed
        self._fingerprint: Fingerprint | None = None
        """Fingerprint of the file whose filters were read."""
        options = job.options
        self._counts_rows = options.files_only and file.deleted is not None
        if file.deleted is not None and not options.maybe:
            options = replace(options, limit=None, files_only=False)
        if job.of_table and options.rows and (options.select or self._counts_rows):
            read = leaves(job.read or ())
            options = replace(options, select=(*read, *({options.column} - set(read))))
        self.options = options

    def search(self, blocks: Blocks) -> FileFound:
        """Find the rows."""
        if self.file.indexed_column is not None:
            row_groups = self._indexed_as(self.file.indexed_column)
            if row_groups is not None and self._indexed is not None and not self._indexed.row_groups:
                return FileFound(path=self.file.path, row_groups=row_groups)
        if blocks.only is not None:
            return self._with_rows(self._block(blocks.only, self.spool))
        parts = [FileFound(path=self.file.path)]
        rows = Spool()
        parts.extend(self._block(block, rows) for block in self._possible(blocks, parts))
        with open_source(self.file.path) as source:  # each block has opened it
            if source.fingerprint != self._fingerprint:
                raise source.changed("changed")
        self._in_order(rows)
        return self._with_rows(_sum(parts))

    def _indexed_as(self, path: str) -> int | None:
        """The number of the file's row groups; None if the column has another path in the file, so that the index
        has no answer for it."""
        with find.opened(self.file.path, self._indexed) as source:
            column = only_column(
                open_file(source, self.options.names, self.options.keys), self.options.column, purpose="find"
            )
            file = open_file(source, keys=self.options.keys)
            same = self._indexed is not None and self._indexed.possible(source) is not None
            if same and next((leaf.path for leaf in file.columns if leaf.index == column.index), None) == path:
                return len(file.row_group_rows()) if file.indexable else 0
            self._indexed = None
            return None

    def _block(self, block: Block, spool: Spool) -> FileFound:
        def emit(batch: pa.RecordBatch) -> None:
            converted = _converted(self.job, self.file, batch, block)
            if converted.num_rows:
                self._rows += converted.num_rows
                if not self._counts_rows:
                    spool.add(converted)

        path, answer = self.file.path, self.file.answer
        return find.run(path, self.options, block.values, emit, self._stop, self._indexed, answer)

    def _with_rows(self, result: FileFound) -> FileFound:
        if self.options.rows:
            rows = min(self._rows, 1) if self._counts_rows else self._rows
            return replace(result, rows=rows)
        return result

    def _possible(self, blocks: Blocks, parts: list[FileFound]) -> Iterator[Block]:
        """Yield blocks of the values that the file may have."""
        waiting: list[pa.Array] = []
        options, values = self.options, pa.nulls(0)
        with CachingSource(open_source(self.file.path)) as source:  # each block is looked up in the same filters
            self._fingerprint = source.fingerprint
            file = open_file(source, options.names, options.keys)
            column = only_column(file, options.column, purpose="find")
            finder = file.search(column)
            indexed = None if self._indexed is None else self._indexed.possible(source)
            for values, wanted in blocks.wanted(kind_of(file, column), finder.wanted, self.file.path):
                owners = [_owners(group, wanted) for group in finder.candidates(wanted) if _may_have(group, indexed)]
                if owners:
                    waiting.append(values.take(pc.unique(pa.concat_arrays(owners))))
                if sum(map(len, waiting)) >= BLOCK_VALUES:
                    yield block_of(pa.concat_arrays(waiting))
                    waiting = []
            parts.append(replace(parts[0], bytes_read=source.bytes_read))
        yield block_of(pa.concat_arrays(waiting) if waiting else values.slice(0, 0))

    def _in_order(self, rows: Spool) -> None:
        """Sort the rows that were found block by block, and drop duplicates: a list may have several values."""
        batches = list(rows.batches())
        if not batches:
            return
        table = pa.Table.from_batches(batches).combine_chunks()
        table = table.take(pc.sort_indices(table["row"]))
        numbers = table["row"].combine_chunks()
        is_duplicate = pa.concat_arrays([pa.array([False]), pc.equal(numbers[1:], numbers[:-1])])
        if find.ALSO in table.column_names and pc.any(is_duplicate).as_py():
            table = _with_values_of_duplicates(table, is_duplicate)
        table = table.filter(pc.invert(is_duplicate))
        self._rows = table.num_rows
        for batch in table.to_batches():
            self.spool.add(batch)


def _with_values_of_duplicates(table: pa.Table, is_duplicate: pa.BooleanArray) -> pa.Table:
    """Rows whose first one has the values of its duplicates, too."""
    values, also = table["value"].to_pylist(), table[find.ALSO].to_pylist()
    first = 0
    for at, duplicate in enumerate(is_duplicate.to_pylist()):
        if duplicate:
            also[first] = sorted({*(also[first] or ()), values[at], *(also[at] or ())} - {values[first]}) or None
        else:
            first = at
    place = table.column_names.index(find.ALSO)
    return table.set_column(place, find.ALSO, pa.array(also, table.schema.field(place).type))


def _converted(job: Job, file: FileWork, batch: pa.RecordBatch, block: Block) -> pa.RecordBatch:
    """Leave out deleted rows, and convert the others to the record's types."""
    if job.shape is not None:
        read = job.read or job.shape
        record = apply_shape(batch.column("record"), read, file.path, file.constants)
        if file.deleted is not None:
            is_kept = file.deleted.kept(batch.column("row"), record)
            batch, record = batch.filter(is_kept), record.filter(is_kept)
        if len(read) > len(job.shape):
            columns = [record.field(field.name) for field in job.shape]
            record = pa.StructArray.from_arrays(columns, fields=list(struct_of(job.shape)))
        batch = _with(batch, "record", record)
    if job.typed:  # for a frame
        batch = _with(batch, "value", block.joined(batch.column("value"))).drop_columns(find.ALSO)
    return batch


def _with(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, column)


def _may_have(group: Candidates, indexed: frozenset[int] | None) -> bool:
    """Whether a row group may have values, by its filters and by the index."""
    return group.possible and (indexed is None or group.indexed_unit in indexed)


def _owners(group: Candidates, wanted: WantedValues) -> pa.Int64Array:
    """The positions of the values that a row group may have."""
    forms = group.forms
    if group.nan and wanted.nan is not None:
        forms = pa.concat_arrays([forms, pa.array([len(wanted.forms)], pa.int64())])
    return wanted.with_form(forms)


def _sum(parts: list[FileFound]) -> FileFound:
    """The result of a file that was searched in several steps."""
    last = parts[-1]
    each = [[*zip(part.stripes_possible or repeat(-1), part.row_groups_possible, strict=False)] for part in parts]
    groups = sorted(set(chain.from_iterable(each)))
    read = {group for part, some in zip(parts, each, strict=True) for group in some[: part.row_groups_read]}
    return replace(
        last,
        row_groups_possible=tuple(group for _, group in groups),
        stripes_possible=tuple(stripe for stripe, _ in groups if stripe >= 0),
        row_groups_read=len(read),
        pages_read=sum(part.pages_read for part in parts),
        pages_left_out=max(part.pages_left_out for part in parts),
        rows=max(part.rows for part in parts),
        bytes_read=sum(part.bytes_read for part in parts),
    )
