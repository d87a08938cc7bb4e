"""ORC files with a change in one filter or in a footer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bloomcli.model.file import FilterFacts
from support.mutants import OriginalFile
from support.orcfiles import BLOOM_FILTER, BLOOM_FILTER_UTF8, File
from support.orcwalk import Orc

_CPP: Final = 1


def parts(whole: OriginalFile) -> File:
    """The file in parts."""
    return File.split(whole.data)


def checkable(whole: OriginalFile) -> list[FilterFacts]:
    """The filters that can be compared with the column and that a reader uses."""
    by_cpp = parts(whole).footer.writer == _CPP
    return [
        f
        for f in whole.sound
        if f.problem is None
        and f.untrusted is None
        and f.physical != "union"
        and not (f.physical == "boolean" and by_cpp)
        and not (f.physical == "timestamp" and f.encoding == "BLOOM_FILTER")
    ]


def ids(whole: OriginalFile) -> dict[str, int]:
    """Column ids by path."""
    path = whole.work.with_name("for_ids")
    path.write_bytes(whole.data)
    return Orc(path).columns


def kind_of(fact: FilterFacts) -> int:
    """The stream's kind."""
    return {"BLOOM_FILTER": BLOOM_FILTER, "BLOOM_FILTER_UTF8": BLOOM_FILTER_UTF8}[fact.encoding or ""]


def edited(whole: OriginalFile, fact: FilterFacts, edit: Callable[[Any], None]) -> bytes:
    """The file with one filter's message edited."""
    file, column, stripe = parts(whole), ids(whole)[fact.column], fact.stripe or 0
    index = file.filters(column, stripe, kind_of(fact))
    edit(index.bloom_filter[fact.row_group])
    file.set_filters(column, index, stripe, kind_of(fact))
    return file.join()


def bitset(item: Any) -> bytes:
    """A filter's bits."""
    return item.utf8bitset or b"".join(v.to_bytes(8, "little") for v in item.bitset)


def set_bitset(item: Any, bits: bytes) -> None:
    """Replace the bits, in the same form."""
    if item.utf8bitset:
        item.utf8bitset = bits
    else:
        item.bitset[:] = [int.from_bytes(bits[at : at + 8], "little") for at in range(0, len(bits), 8)]


def message(whole: OriginalFile, fact: FilterFacts) -> Any:
    """A filter's message."""
    index = parts(whole).filters(ids(whole)[fact.column], fact.stripe or 0, kind_of(fact))
    return index.bloom_filter[fact.row_group]


def lying(file: File) -> bytes:
    """The edited file, with correct lengths of the footers."""
    claims = [(part, part.info.offset, part.info.index_length) for part in file.stripes]
    lengths = [[s.length for s in part.footer.streams] for part in file.stripes]
    out = bytearray()
    for part, sizes in zip(file.stripes, lengths, strict=True):
        for stream, size in zip(part.footer.streams, sizes, strict=True):
            stream.length = size
        out += part.gap + b"".join(part.streams) + part.rest
        footer = file.packed(part.footer.SerializeToString())
        part.info.footer_length = len(footer)
        out += footer
    assert claims == [(part, part.info.offset, part.info.index_length) for part in file.stripes]
    out += file.metadata
    tail = file.packed(file.footer.SerializeToString())
    file.postscript.footer_length = len(tail)
    postscript = file.postscript.SerializeToString()
    return bytes(out) + tail + postscript + bytes([len(postscript)])
