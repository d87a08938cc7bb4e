"""Parses the four header forms of split-block filters, which their bytes distinguish.

    parquet                numBytes, BLOCK, XXHASH, UNCOMPRESSED as Thrift             today's
    parquet-2018-12byte    u32 LE numBytes, u32 0 (hash), u32 0 (algorithm)            parquet-mr's branch
    parquet-2018-header    BloomFilterHeader without field 4                           the first draft
    parquet-2018-page      the same as field 9 of a PageHeader whose type is 4         the second draft

The drafts hash with Murmur3 and pick blocks by a mask. Their hash union's member 1 was MURMUR3 and is XXHASH
today, so the header doesn't name the hash: the missing field 4 does. Thrift starts with 0x15, a 12-byte
header with a multiple of 32; in a PageHeader field 2 is an integer, in a BloomFilterHeader a structure.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from bloomcli import kernels
from bloomcli.filters.split_block import MaskedSplitBlockFilter, SplitBlockFilter
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.spec import Location, Struct

CURRENT: Final = "parquet"
TWELVE_BYTES: Final = "parquet-2018-12byte"
HEADER: Final = "parquet-2018-header"
PAGE: Final = "parquet-2018-page"
DRAFTS: Final = (TWELVE_BYTES, HEADER, PAGE)

_DRAFT_HASH: Final = "MURMUR3"
_NO_COMPRESSION: Final = "UNCOMPRESSED"
_TWELVE: Final = 12
_BLOCK: Final = 32

_FIRST: Final = b"\x15"
"""Field 1, numBytes."""
_REST: Final = b"\x1c\x1c\x00\x00" * 3
"""Fields 2 to 4, the algorithm, the hash and the compression: member 1 of each, empty."""
_USUAL: Final = re.compile(_FIRST + rb"[\x80-\xff]{0,3}[\x00-\x7f]" + _REST + b"\x00")
"""The current header as writers usually encode it. Others, and numbers of five bytes, are walked."""
_NEWER: Final = re.compile(
    _FIRST + rb"(?:[\x80-\xff]{1,4}[\x01-\x7f]|[\x00-\x7f])" + _REST + rb".*\x00",
    re.DOTALL,
)
"""The same, with numBytes in as few bytes as possible, and unknown fields after the known ones."""


class FilterHeader(NamedTuple):
    """A filter's header: names as in the specification's unions, sizes in bytes."""

    num_bytes: int
    header_bytes: int
    algorithm: str
    hash: str
    compression: str
    variant: str = CURRENT

    @property
    def draft(self) -> bool:
        """Whether it is a header of the 2018 drafts: Murmur3, blocks selected by a mask."""
        return self.variant != CURRENT


def parse_header(data: bytes, location: Location) -> FilterHeader:
    """Parse the header, of any variant, at the start of `data`. The bitset after it isn't read.

    Raises CorruptFile.
    """
    if len(data) >= _TWELVE and data[0] % _BLOCK == 0:
        num_bytes, hash_code, algorithm = (int.from_bytes(data[at : at + 4], "little") for at in (0, 4, 8))
        if num_bytes and hash_code == algorithm == 0:
            return FilterHeader(
                num_bytes=num_bytes,
                header_bytes=_TWELVE,
                algorithm="BLOCK",
                hash=_DRAFT_HASH,
                compression=_NO_COMPRESSION,
                variant=TWELVE_BYTES,
            )
    usual = _USUAL.match(data)
    if usual is not None:
        return FilterHeader(
            num_bytes=kernels.compact_int(data, 1),
            header_bytes=usual.end(),
            algorithm="BLOCK",
            hash="XXHASH",
            compression=_NO_COMPRESSION,
        )
    outer = Struct("PageHeader", data, 0, location)
    second = outer.span("uncompressed_page_size")
    if second is not None and second.kind == spec.I32:
        kind = spec.enum_name("PageType", outer.required_int("type"))
        if kind != "BLOOM_FILTER_PAGE":
            raise location.fault(f"a page header of type {kind} where a filter should be", 0)
        inner = outer.struct("bloom_filter_page_header", "BloomFilterHeader")
        if inner is None:
            raise location.fault("the page header has no bloom_filter_page_header", 0)
        return _thrift(inner, outer.end, PAGE)
    return _thrift(Struct("BloomFilterHeader", data, 0, location), None, HEADER)


def is_usual(raw: bytes) -> bool:
    """Whether a header of the current variant is encoded as by all writers, except for newer fields."""
    return _NEWER.fullmatch(raw) is not None


def _thrift(walked: Struct, end: int | None, draft: str) -> FilterHeader:
    compression = _member(walked, "compression", "BloomFilterCompression")
    is_draft = compression == "missing" or draft == PAGE
    hash_name = _member(walked, "hash", "BloomFilterHash")
    return FilterHeader(
        num_bytes=walked.required_int("numBytes", minimum=-(1 << 31)),
        header_bytes=walked.end if end is None else end,
        algorithm=_member(walked, "algorithm", "BloomFilterAlgorithm"),
        hash=_DRAFT_HASH if is_draft and hash_name == "XXHASH" else hash_name,
        compression=_NO_COMPRESSION if is_draft else compression,
        variant=draft if is_draft else CURRENT,
    )


def _member(header: Struct, field: str, union: str) -> str:
    """The name of the union's member that is set; ``unknown (5)`` if the specification doesn't have it."""
    walked = header.struct(field, union)
    if walked is None:
        return "missing"
    names = {number: name for name, number in spec.field_ids(union).items()}
    ids = list(walked.spans)
    if len(ids) != 1:
        return "empty" if not ids else "several"
    return names.get(ids[0], f"unknown ({ids[0]})")


def write_header(num_bytes: int, variant: str = CURRENT) -> bytes:
    """The header of a bitset of `num_bytes`, 12 to 32 bytes."""
    if variant == TWELVE_BYTES:
        return num_bytes.to_bytes(4, "little") + bytes(8)
    if variant == CURRENT:
        return _FIRST + spec.zigzag(num_bytes) + _REST + b"\x00"
    idl = structures()
    header = idl.BloomFilterHeader(
        numBytes=num_bytes,
        algorithm=idl.BloomFilterAlgorithm(BLOCK=idl.Empty()),
        hash=idl.BloomFilterHash(XXHASH=idl.Empty()),  # member 1, which was MURMUR3
    )
    if variant == PAGE:
        header = idl.PageHeader(
            type=idl.PageType.BLOOM_FILTER_PAGE,
            uncompressed_page_size=num_bytes,
            compressed_page_size=num_bytes,
            bloom_filter_page_header=header,
        )
    return _encoded(header)


@cache
def structures() -> Any:
    """The IDL's structures as thriftpy2's classes. Loading them is slow, and only the drafts need them."""
    import thriftpy2

    return thriftpy2.load(str(Path(__file__).with_name("parquet.thrift")), module_name="bloomcli_parquet_thrift")


def _encoded(structure: Any) -> bytes:
    from thriftpy2.protocol.compact import TCompactProtocol
    from thriftpy2.transport import TMemoryBuffer

    out = TMemoryBuffer()
    structure.write(TCompactProtocol(out))
    return bytes(out.getvalue())


def filter_class(variant: str) -> type[SplitBlockFilter]:
    """The class of the variant's filters, which differ in how a hash selects a block."""
    return SplitBlockFilter if variant == CURRENT else MaskedSplitBlockFilter
