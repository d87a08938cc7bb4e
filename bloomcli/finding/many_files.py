"""Looks blocks of values up in the filters of many files. Each block is converted once, not once for each file.

This works for local files with the schema of a first file (`FilterLookup`). Other files, and files that change during
the lookup, are searched one by one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.columns import only_column
from bloomcli.commands.find import selected
from bloomcli.commands.options import FindOptions
from bloomcli.errors import BloomError
from bloomcli.formats.registry import open_file
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import open_source

if TYPE_CHECKING:
    from bloomcli.finding.values import Block, Blocks
    from bloomcli.formats.column_search import ColumnSearch
    from bloomcli.formats.filter_lookup import FilterAnswer, FilterLookup
    from bloomcli.formats.wanted_values import WantedValues

_REMAINING_BYTES: Final = 64 << 20
"""Limit for the remaining values of all files. Beyond it, the file with most of them is searched alone."""
_TRIES: Final = 3
"""Limit for the files that are opened to get a `FilterLookup`."""

Stamp = tuple[int, int, int]


@dataclass(slots=True)
class RemainingValues:
    """The values that a file's filters don't rule out, and the file's state at the lookup."""

    values: list[pa.Array] = field(default_factory=list)
    """Values of the frame, an array for each block."""
    answer: FilterAnswer | None = None
    """The answer for the last block."""
    format: str | None = None
    bytes_read: int = 0
    stamp: Stamp | None = None
    """The file's inode, size and modification time. A change of the file changes them."""

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return sum(array.nbytes for array in self.values)


def remaining_values(paths: Sequence[str | None], options: FindOptions, blocks: Blocks) -> dict[int, RemainingValues]:
    """The values that the filters of each file don't rule out.

    Args:
        paths: the files; None for a file to leave out.
        options: the options of `find`.
        blocks: the values, in more than one block.

    Returns:
        The remaining values by the file's position, for the files that this lookup can decide.
    """
    by_file = {at: RemainingValues() for at, path in enumerate(paths) if path is not None}
    if len(by_file) == 1:  # the search of a single file also converts the values and reads the filters once
        return {}
    for at in list(by_file)[:_TRIES]:
        looked_up = 0
        try:
            with _search_of(paths[at] or "", options) as (search, columns):
                for block in blocks.each():
                    wanted = search.wanted(block.values.texts)
                    lookup = search.filter_lookup(wanted, columns)
                    if lookup is None:
                        break
                    _look_up(by_file, paths, lookup, block, wanted)
                    looked_up += 1
                else:
                    return by_file
        except BloomError:  # the file's own search reports it
            del by_file[at]
        if looked_up:
            return {}
    return {}


@contextmanager
def _search_of(path: str, options: FindOptions) -> Iterator[tuple[ColumnSearch, list[str] | None]]:
    """The search of a file's column, and the columns of its records."""
    with convert_os_errors(path), open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        yield file.search(only_column(file, options.column, purpose="find")), selected(file, options)


def _look_up(
    by_file: dict[int, RemainingValues],
    paths: Sequence[str | None],
    lookup: FilterLookup,
    block: Block,
    wanted: WantedValues,
) -> None:
    """Add the remaining values of a block. Removes files whose filters give no answer."""
    for at, remaining in list(by_file.items()):
        answer, stamp = _answer_of(lookup, paths[at] or "")
        if answer is None or remaining.stamp not in {None, stamp}:
            del by_file[at]
            continue
        remaining.answer, remaining.stamp, remaining.format = answer, stamp, answer.format
        remaining.bytes_read += answer.bytes_read
        if answer.forms is not None:
            texts = wanted.with_form(pa.concat_arrays(answer.forms.values()))
            remaining.values.append(block.given.take(texts.take(pc.array_sort_indices(texts))))
    sizes = {at: remaining.nbytes for at, remaining in by_file.items()}
    total = sum(sizes.values())
    for at in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if total <= _REMAINING_BYTES:
            break
        total -= sizes[at]
        del by_file[at]


def _answer_of(lookup: FilterLookup, path: str) -> tuple[FilterAnswer | None, Stamp | None]:
    try:
        with convert_os_errors(path), open_source(path) as source:
            descriptor = source.fileno()
            if descriptor is None:
                return None, None
            answer, stamp = lookup.look_up(source), _stamp(os.fstat(descriptor))
            known = answer is not None and (answer.ruled_out or answer.forms is not None)
            return answer if known else None, stamp
    except BloomError:  # the file's own search reports it
        return None, None


def is_same(path: str, remaining: RemainingValues) -> bool:
    """Whether a file is still the one whose filters were read."""
    try:
        return _stamp(os.stat(path)) == remaining.stamp  # noqa: PTH116  as it was listed
    except OSError:
        return False


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns
