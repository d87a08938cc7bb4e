"""Small ORC files with runs, chunks and messages that decompress to gigabytes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bloomcli.formats.orc import spec
from support import orcfiles, orcruns
from support.orcfiles import BLOOM_FILTER_UTF8, ROW_INDEX, File

PRESENT, DATA, LENGTH, DICTIONARY_DATA, SECONDARY = 0, 1, 2, 3, 5
DICTIONARY_V2: Final = 3
BLOCK: Final = 1 << 23
"""The largest block that a file may have."""
MOST: Final = 1 << 27
"""Maximum number of values of a column in a stripe that are read (bloomcli.formats.orc.limits.VALUES_MAX)."""


def stream(file: File, pattern: bytes, size: int) -> bytes:
    """A compressed stream of `size` bytes or slightly more: a repeated pattern."""
    times = max(min(BLOCK, size) // len(pattern), 1)
    chunk = file.codec._replace(block_size=BLOCK).compress(pattern * times)
    return chunk * -(-size // (times * len(pattern)))


def sized(file: File, rows: int, stride: int) -> None:
    """Make a file claim `rows` rows, and blocks of the largest size."""
    file.footer.number_of_rows = file.stripes[0].info.number_of_rows = rows
    file.footer.row_index_stride = stride
    file.postscript.compression_block_size = BLOCK


def claiming(
    folder: Path, values: pa.Array, rows: int, streams: dict[int, tuple[bytes, int]], stride: int = 1 << 20
) -> Path:
    """A file of one column `c` that claims `rows` rows. `streams`: (pattern, size) of each stream by kind."""

    def edit(file: File) -> None:
        sized(file, rows, stride)
        for kind, (pattern, size) in streams.items():
            file.stripes[0].streams[file.place(kind, 1)] = stream(file, pattern, size)

    plain = orcfiles.write(folder / "plain", {"c": values}, compression="zstd", dictionary_key_size_threshold=0.0)
    return orcfiles.edited(plain, folder / "hostile.orc", edit)


ONE: Final = orcruns.fixed_delta(5, 0, 512, signed=True)
"""512 times the same value, in 4 bytes."""
STEPS: Final = orcruns.fixed_delta(5, 3, 512, signed=True)
"""512 different values, in one run."""


def runs(count: int, run: bytes) -> tuple[bytes, int]:
    """This number of values, in runs of 512."""
    return run, -(-count // 512) * len(run)


def equal_integers(folder: Path) -> Path:
    """2^27 times the same number."""
    return claiming(folder, pa.array([1, 2]), MOST, {DATA: runs(MOST, ONE)}, 10_000)


def growing_integers(folder: Path) -> Path:
    """2^26 numbers in one row group: 512 different ones, repeated."""
    return claiming(folder, pa.array([1, 2]), MOST // 2, {DATA: runs(MOST // 2, STEPS)}, 1 << 30)


def too_many_values(folder: Path) -> Path:
    """2^40 times the same number."""
    return claiming(folder, pa.array([1, 2]), 1 << 40, {DATA: runs(MOST, ONE)}, 1 << 31)


def nothing_but_nulls(folder: Path) -> Path:
    """2^27 nulls."""
    return claiming(
        folder, pa.nulls(2, pa.int64()), MOST, {PRESENT: (orcruns.byte_run(0, 130), MOST // 8 // 130 * 2 + 2)}
    )


def lists_of_lists(folder: Path) -> Path:
    """512 lists of 2^31 - 1 elements each."""
    lengths = {LENGTH: runs(512, orcruns.fixed_delta((1 << 31) - 1, 0, 512, signed=False))}
    return claiming(folder, pa.array([[1], [2]]), 512, lengths)


def one_long_string(folder: Path) -> Path:
    """Two strings of 1 GiB."""
    lengths = orcruns.direct([1 << 30] * 2, signed=False)
    return claiming(folder, pa.array(["a", "b"]), 2, {DATA: (bytes(1024), 2 << 30), LENGTH: (lengths, len(lengths))})


def many_long_strings(folder: Path) -> Path:
    """A million times a string of 1 MiB."""
    size = runs(1 << 20, orcruns.fixed_delta(1 << 20, 0, 512, signed=False))
    return claiming(folder, pa.array(["a", "b"]), 1 << 20, {DATA: (b"abcdefgh", 1 << 31), LENGTH: size})


def equal_strings(folder: Path) -> Path:
    """2^26 empty strings and 2^26 strings of one letter."""
    lengths = orcruns.fixed_delta(0, 0, 512, signed=False) + orcruns.fixed_delta(1, 0, 512, signed=False)
    return claiming(
        folder,
        pa.array(["a", "b"]),
        MOST,
        {DATA: (b"x", MOST // 2), LENGTH: (lengths, MOST // 1024 * len(lengths))},
    )


def a_large_dictionary(folder: Path) -> Path:
    """A dictionary of 2^24 empty strings."""
    return dictionary(folder, 1 << 24)


def too_large_a_dictionary(folder: Path) -> Path:
    """A dictionary of 2^32 - 1 empty strings."""
    return dictionary(folder, (1 << 32) - 1)


def dictionary(folder: Path, entries: int) -> Path:
    """Two rows, and a dictionary of empty strings."""
    count = min(entries, 1 << 26)
    zeros = runs(count, orcruns.fixed_delta(0, 0, 512, signed=False))
    path = claiming(folder, pa.array(["a", "b"]), 2, {LENGTH: zeros})

    def edit(file: File) -> None:
        column = file.stripes[0].footer.columns[1]
        column.kind, column.dictionary_size = DICTIONARY_V2, entries
        file.stripes[0].streams[file.place(DATA, 1)] = file.packed(orcruns.direct([0, 1], signed=False))
        file.insert(file.place(LENGTH, 1), DICTIONARY_DATA, 1, b"")

    return orcfiles.edited(path, path, edit)


def decimals(folder: Path) -> Path:
    """2^26 decimals in 1 GiB, without equal neighbours: the values that take longest to decode."""
    count = MOST // 2
    scales = runs(count, orcruns.fixed_delta(2, 0, 512, signed=True))
    return claiming(
        folder, pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)), count,
        {DATA: (bytes(range(128)), count), SECONDARY: scales, PRESENT: (orcruns.byte_run(0xFF, 128), count // 512)},
    )  # fmt: skip


def equal_moments(folder: Path) -> Path:
    """2^24 times a timestamp that readers read differently: 256 MiB of seconds and nanoseconds, and with both hashes
    and their owners more than a process may take."""
    count = MOST // 8
    old = runs(count, orcruns.fixed_delta(-(1 << 32), 0, 512, signed=True))
    path = claiming(
        folder, pa.array([0, 1], pa.timestamp("us")), count, {DATA: old, SECONDARY: runs(count, ONE[:2] + b"\0\0")}
    )
    return orcfiles.edited(path, path, lambda f: setattr(f.stripes[0].footer, "writer_timezone", "Europe/Amsterdam"))


def filters_of_a_gibibyte(folder: Path) -> Path:
    """A filter stream that decompresses to 1 GiB."""
    return with_filters(folder, b"\0", 1 << 30)


def a_million_filters(folder: Path) -> Path:
    """A filter stream of 2^26 empty filters."""
    return with_filters(folder, b"\x0a\0", MOST)


def one_large_filter(folder: Path) -> Path:
    """A filter of 120 MiB, which is read."""
    size = 120 << 20
    head = b"\x08\x07\x1a" + orcruns.varint(size)
    return with_filters(folder, b"\0", size, b"\x0a" + orcruns.varint(len(head) + size) + head)


def with_filters(folder: Path, pattern: bytes, size: int, head: bytes = b"") -> Path:
    """A file whose column has a filter stream of a pattern."""
    path = orcfiles.write(folder / "plain", {"c": [1, 2]}, compression="zstd", blooms=[1])

    def edit(file: File) -> None:
        sized(file, 2, 1 << 27 if head else 10_000)
        first = file.codec._replace(block_size=BLOCK).compress(head)
        body = stream(file, pattern, size) if len(pattern) > 1 or not head else exactly(file, size)
        file.stripes[0].streams[file.place(BLOOM_FILTER_UTF8, 1)] = first + body

    return orcfiles.edited(path, folder / "hostile.orc", edit)


def exactly(file: File, size: int) -> bytes:
    """A stream of this number of zeros."""
    whole = stream(file, b"\0", size // BLOCK * BLOCK)
    return whole + file.codec._replace(block_size=BLOCK).compress(bytes(size % BLOCK))


def a_large_row_index(folder: Path) -> Path:
    """A row index of 2^26 empty entries."""
    path = orcfiles.write(folder / "plain", {"c": [1, 2]}, compression="zstd", blooms=[1])

    def edit(file: File) -> None:
        sized(file, 2, 10_000)
        file.stripes[0].streams[file.place(ROW_INDEX, 1)] = stream(file, b"\x0a\0", MOST)

    return orcfiles.edited(path, folder / "hostile.orc", edit)


def large_footer(pattern: bytes, size: int) -> Callable[[Path], Path]:
    """A file whose footer has a repeated pattern after its own fields."""

    def make(folder: Path) -> Path:
        path = orcfiles.write(folder / "plain", {"c": [1, 2]}, compression="zstd")
        data, file = path.read_bytes(), orcfiles.split(path)
        postscript = spec.message("PostScript")()
        postscript.CopyFrom(file.postscript)
        postscript.compression_block_size = BLOCK
        footer = file.codec.compress(file.footer.SerializeToString()) + stream(file, pattern, size)
        at = len(data) - 1 - data[-1] - file.postscript.footer_length
        postscript.footer_length = len(footer)
        raw = postscript.SerializeToString()
        (folder / "hostile.orc").write_bytes(data[:at] + footer + raw + bytes([len(raw)]))
        return folder / "hostile.orc"

    return make


def large_stripe_footer(folder: Path) -> Path:
    """A stripe footer of 2^26 empty streams."""
    path = orcfiles.write(folder / "plain", {"c": [1, 2]}, compression="zstd")
    file = orcfiles.split(path)
    sized(file, 2, 10_000)
    packed: Any = file.packed
    first = [True]

    def pack(data: bytes) -> bytes:
        """The stripe's footer is the first message that is compressed."""
        done = packed(data) + (stream(file, b"\x0a\0", MOST) if first else b"")
        first.clear()
        return bytes(done)

    file.packed = pack  # type: ignore[method-assign]
    (folder / "hostile.orc").write_bytes(file.join())
    return folder / "hostile.orc"


READ: Final[dict[str, Callable[[Path], Path]]] = {
    "growing integers": growing_integers,
    "nothing but nulls": nothing_but_nulls,
    "one long string": one_long_string,
    "a large dictionary": a_large_dictionary,
    "equal strings": equal_strings,
    "equal integers": equal_integers,
    "decimals": decimals,
    "equal moments": equal_moments,
}
"""Files that filters can be added to: they have all the data that they claim."""

REFUSED: Final[dict[str, tuple[Callable[[Path], Path], str]]] = {
    "too many values": (too_many_values, "more than 134217728 values"),
    "lists of lists": (lists_of_lists, "more than 134217728 values"),
    "many long strings": (many_long_strings, "a stream of more than 4294967296 bytes"),
    "too large a dictionary": (too_large_a_dictionary, "more than the 16777216 that are read"),
    "filters of a gibibyte": (filters_of_a_gibibyte, "a stream of more than 134217728 bytes"),
    "a million filters": (a_million_filters, "a BloomFilterIndex message of more than"),
    "a large footer": (large_footer(b"\x22\0", 1 << 30), "a stream of more than 33554432 bytes"),
    "a footer of empty types": (large_footer(b"\x22\0", 1 << 24), "a Footer message of more than"),
    "a footer of an unknown field": (large_footer(b"\xfa\x7f\x02ab", 1 << 30), "a stream of more than"),
    "a large stripe footer": (large_stripe_footer, "a stream of more than 33554432 bytes"),
}
"""Files that exceed a named ceiling."""
