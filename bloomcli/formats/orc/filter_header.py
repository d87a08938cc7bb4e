"""Reads a BLOOM_FILTER or BLOOM_FILTER_UTF8 stream: one filter for each row group, and whether readers may use them.

    BloomFilterIndex { BloomFilter { numHashFunctions, bitset (longs) | utf8bitset (the same longs, LE) } ... }

Only this module decides whether a filter can be used. Readers must ignore some well-formed filters;
`why_untrusted` says why (orc-core's StripePlanner and RecordReaderImpl, BloomFilterIO).
"""

from __future__ import annotations

from array import array
from typing import Any, Final, NamedTuple

from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.orc import spec
from bloomcli.formats.orc.footer import Footer, Stream, StripeFooter
from bloomcli.formats.orc.schema import SHORT_DIGITS, OrcType
from bloomcli.hints import replacing
from bloomcli.rules.writer_table import Part, faults
from bloomcli.words import counted

UTF8: Final = "BLOOM_FILTER_UTF8"
ORIGINAL: Final = "BLOOM_FILTER"
KINDS: Final = (UTF8, ORIGINAL)
"""The kinds of filter streams. Readers prefer the first."""

BLOOM_ENCODING: Final = 1
"""ColumnEncoding.bloomEncoding of columns with a BLOOM_FILTER_UTF8 stream: UTF-8 strings, UTC timestamps."""

_HIVE_12055: Final = 3
_ORC_135: Final = 6
_FUNCTIONS_MAX: Final = 1024
HINT_REPLACE: Final = replacing()


class LoadedStream(NamedTuple):
    """The filters of one column in one stripe."""

    stream: Stream
    filters: tuple[KirschMitzenmacherFilter, ...]
    """One for each row group."""
    untrusted: str | None
    """Why readers must not use them; None if they may."""

    @property
    def utf8(self) -> bool:
        """Whether it is a BLOOM_FILTER_UTF8 stream."""
        return self.stream.kind == UTF8


def problem(reason: str, footer: Footer, stream: Stream, stripe: int, id: str) -> FilterProblem:  # noqa: A002
    """The error about a filter stream."""
    error = FilterProblem(
        reason,
        path=footer.path,
        offset=stream.offset,
        field=f"stripes[{stripe}].streams[{stream.position}]",
        hint=HINT_REPLACE,
    )
    error.id = id
    return error


def load(footer: Footer, stripe_footer: StripeFooter, stream: Stream) -> LoadedStream:
    """Read a filter stream. Raises FilterProblem."""
    stripe = stripe_footer.stripe
    try:
        data = footer.read_stream(stream, stripe)
        index = spec.parse("BloomFilterIndex", data, footer.path, stream.offset, stripe.field)
    except (CorruptFile, UnsupportedError) as error:
        raise problem(
            f"the stream can't be read: {error.reason}", footer, stream, stripe.ordinal, "filter-header"
        ) from None
    del data  # up to 128 MiB, and the message is as large
    wanted = footer.row_groups(stripe)
    if len(index.bloom_filter) != wanted:
        raise problem(
            f"{counted(len(index.bloom_filter), 'filter')} for {counted(wanted, 'row group')}",
            footer,
            stream,
            stripe.ordinal,
            "filter-count",
        )
    filters = tuple(_filter(item, footer, stream, stripe.ordinal) for item in index.bloom_filter)
    orc = footer.types[stream.column]
    return LoadedStream(
        stream=stream, filters=filters, untrusted=why_untrusted(footer, stripe_footer, orc, stream.kind)
    )


def _filter(item: Any, footer: Footer, stream: Stream, stripe: int) -> KirschMitzenmacherFilter:
    if stream.kind == UTF8:
        bits = item.utf8bitset
    else:
        longs = array("Q", item.bitset)
        bits = longs.tobytes()
    if not bits or len(bits) % 8:
        raise problem(
            f"a bitset of {counted(len(bits), 'byte')}; it has to be a positive multiple of 8",
            footer,
            stream,
            stripe,
            "filter-num-bytes",
        )
    if not 1 <= item.num_hash_functions <= _FUNCTIONS_MAX:
        raise problem(
            f"{item.num_hash_functions} hash functions can't be", footer, stream, stripe, "filter-hash-functions"
        )
    return KirschMitzenmacherFilter(bits, item.num_hash_functions)


def bad_writer(footer: Footer) -> bool:
    """Whether the file's writer hashed wrongly: readers ignore all filters of such a file."""
    return any(fault.part is Part.FILTER for fault in faults(footer.created_by))


def holds_lengths(footer: Footer, orc: OrcType) -> bool:
    """Whether the filters are ORC C++'s for lists, maps or unions: it inserts nothing for batches without nulls.

    Predicates are on leaf columns, so no reader uses these filters, and no row is lost.
    """
    return footer.message.writer == spec.ORC_CPP and orc.kind in {"LIST", "MAP", "UNION"}


def why_untrusted(footer: Footer, stripe_footer: StripeFooter, orc: OrcType, kind: str) -> str | None:
    """Why readers must not use the filters of a column; None if they may."""
    if bad_writer(footer):
        shown = spec.text(footer.message.software_version) or "of an unknown version, before 1.6.11"
        return f"ORC C++ {shown} hashed values wrongly"
    if holds_lengths(footer, orc):
        return "ORC C++ leaves lengths of lists and maps, and tags of unions, out where a batch has no nulls"
    if orc.kind == "DECIMAL" and orc.precision <= SHORT_DIGITS and footer.version not in spec.VERSIONS:
        version = ".".join(map(str, footer.version))
        return f"orc-core hashes short decimals as numbers in files of version {version}, and looks texts up"
    writer = footer.postscript.writer_version
    if kind == ORIGINAL:
        if orc.kind in {"STRING", "CHAR", "VARCHAR"} and writer < _HIVE_12055:
            return "strings were hashed in the writer's own character set before HIVE-12055"
        if orc.kind == "DECIMAL":
            return "decimals in BLOOM_FILTER streams were hashed wrongly before ORC-101"
        if orc.kind == "TIMESTAMP" and writer < _ORC_135:
            return "timestamps were hashed in the writer's local time before ORC-135"
        return None
    encoding = stripe_footer.bloom_encoding(orc.id)
    if encoding is not None and encoding > BLOOM_ENCODING:
        return f"bloomEncoding {encoding} is not known"
    if not encoding and orc.kind == "TIMESTAMP":
        return "without bloomEncoding 1 timestamps are in the writer's local time"
    return None


def sound_for_old_readers(footer: Footer, orc: OrcType) -> bool:
    """Whether old readers may use a BLOOM_FILTER stream with the bits of the BLOOM_FILTER_UTF8 stream."""
    if orc.kind in {"STRING", "CHAR", "VARCHAR"}:
        return int(footer.postscript.writer_version) >= _HIVE_12055
    return orc.kind not in {"DECIMAL", "TIMESTAMP"}
