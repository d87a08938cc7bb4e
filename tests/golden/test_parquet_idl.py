"""Parquet's metadata as thriftpy2 decodes it, by the IDL: what the tables and the compiled walk say is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import parquet_idl
from support.golden import FIXTURES
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.transport import TMemoryBuffer

from bloomcli.formats.parquet import bloom_filter, spec
from bloomcli.formats.parquet.footer import read_footer
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.storage.registry import open_source

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
ENCRYPTED_FOOTER = b"PARE"


def files() -> Iterator[Path]:
    for folder in (FIXTURES, CORPUS):
        for path in sorted(folder.rglob("*.parquet")):
            if path.read_bytes()[-4:] != ENCRYPTED_FOOTER:
                yield path


def compare(walked: Struct, decoded: Any) -> int:
    """Compare a structure field by field; returns how many values there were."""
    seen = 0
    for name, (_, kind) in spec.FIELDS[walked.name].items():
        value = getattr(decoded, name)
        if kind.startswith("list<"):
            if kind.removeprefix("list<").removesuffix(">") in spec.FIELDS:
                starts = walked.list_starts(name)
                below = [Struct(kind[5:-1], walked.data, start, walked.location) for start in starts[:-1]]
                assert len(below) == len(value or ())
                seen += sum(map(compare, below, value or ()))
            continue
        if kind in spec.FIELDS:
            nested = walked.struct(name, kind)
            assert (nested is None) == (value is None)
            seen += 0 if nested is None else compare(nested, value)
            continue
        read = {"binary": walked.binary, "bool": walked.truth, "i8": walked.byte}.get(kind, walked.integer)
        assert read(name) == value, f"{walked.name}.{name}"
        seen += value is not None
    return seen


def test_thriftpy2_reads_the_same_tables_from_the_idl() -> None:
    assert parquet_idl.fields() == spec.FIELDS
    assert parquet_idl.enums() == spec.ENUMS


@pytest.mark.parametrize("path", list(files()), ids=lambda path: path.name)
def test_thriftpy2_decodes_the_same_footer(path: Path) -> None:
    with open_source(path) as source:
        footer = read_footer(source)
    decoded = spec.structures().FileMetaData()
    decoded.read(TCompactProtocol(TMemoryBuffer(footer.raw), decode_response=False))
    assert compare(Struct("FileMetaData", footer.raw, 0, Location("", 0, "")), decoded) > 5
    assert footer.rows == decoded.num_rows


@pytest.mark.parametrize("variant", [bloom_filter.CURRENT, bloom_filter.HEADER, bloom_filter.PAGE])
def test_thriftpy2_decodes_the_headers_that_are_written(variant: str) -> None:
    raw = bloom_filter.write_header(1 << 20, variant)
    name = "PageHeader" if variant == bloom_filter.PAGE else "BloomFilterHeader"
    decoded = getattr(spec.structures(), name)()
    decoded.read(TCompactProtocol(TMemoryBuffer(raw), decode_response=False))
    assert compare(Struct(name, raw, 0, Location("", 0, "")), decoded) >= 1


@pytest.mark.parametrize("size", [32, 64, 1 << 13, 1 << 20, 1 << 27])
def test_today_s_header_is_what_thriftpy2_writes(size: int) -> None:
    structs = spec.structures()
    header = structs.BloomFilterHeader(
        numBytes=size,
        algorithm=structs.BloomFilterAlgorithm(BLOCK=structs.Empty()),
        hash=structs.BloomFilterHash(XXHASH=structs.Empty()),
        compression=structs.BloomFilterCompression(UNCOMPRESSED=structs.Empty()),
    )
    out = TMemoryBuffer()
    header.write(TCompactProtocol(out))
    assert bloom_filter.write_header(size) == out.getvalue()
    assert bloom_filter.is_usual(out.getvalue())


def test_a_value_that_the_idl_has_no_name_for_keeps_its_number() -> None:
    assert spec.enum_name("Type", 7) == "FIXED_LEN_BYTE_ARRAY"
    assert spec.enum_name("Type", 99) == "CODE 99"
