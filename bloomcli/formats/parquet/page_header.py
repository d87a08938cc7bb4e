"""A page's header, parsed in compiled code. If it is invalid, a walk over all fields finds the fault.

Files with small pages have a header for every few hundred values, so parsing headers takes much of a column's time.
"""

from __future__ import annotations

from typing import Final

from bloomcli import kernels
from bloomcli.errors import UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.spec import Location, Struct

_HEADS: Final = {
    "DATA_PAGE": ("data_page_header", "DataPageHeader"),
    "DATA_PAGE_V2": ("data_page_header_v2", "DataPageHeaderV2"),
    "DICTIONARY_PAGE": ("dictionary_page_header", "DictionaryPageHeader"),
}
_DICTIONARY: Final = ("PLAIN", "PLAIN_DICTIONARY")
"""The encodings of a dictionary's entries: the second is its old name."""


class PageHeader(kernels.PageHeader):
    """A page header. `required` and `required_of_head` read its fields, and reject impossible values."""

    __slots__ = ("location",)

    location: Location
    """The header's location, for errors; set by the caller of `parse`."""

    def required(self, field: str) -> int:
        """Return a required integer field, which must be at least 0. Raises CorruptFile."""
        value: int = getattr(self, field)
        return value if value >= 0 else self._walked().required_int(field)

    def required_of_head(self, field: str) -> int:
        """Return a required integer field of the structure for the page's type, which must exist."""
        value: int = getattr(self, field)
        if value >= 0:
            return value
        name, struct = _HEADS[self.kind]
        head = self._walked().struct(name, struct)
        assert head is not None  # noqa: S101  the caller checks has_head
        return head.required_int(field)

    @property
    def kind(self) -> str:
        """The name of the page's type. Raises CorruptFile if it is missing."""
        return spec.enum_name("PageType", self.required("type"))

    @property
    def is_packed(self) -> bool:
        """Whether the chunk's codec has compressed the page's values.

        Arrow before 3.0 compressed pages of version 2 and wrote `is_compressed` = false (ARROW-10353): their sizes
        contradict the field.
        """
        return self.is_compressed or self.compressed_page_size != self.uncompressed_page_size

    @property
    def head_field(self) -> str | None:
        """The name of the structure for the page's type; None if the IDL has none."""
        found = _HEADS.get(self.kind)
        return None if found is None else found[0]

    def encoding_name(self) -> str:
        """The encoding of the page's values. Raises CorruptFile if it is missing, and UnsupportedError for a
        dictionary whose entries aren't PLAIN, which Arrow refuses too."""
        name = spec.enum_name("Encoding", self.required_of_head("encoding"))
        if self.kind == "DICTIONARY_PAGE" and name not in _DICTIONARY:
            raise UnsupportedError(
                f"a dictionary in the encoding {name}",
                path=self.location.path,
                offset=self.location.base,
                field=self.location.field,
                hint="the header is damaged; get the file from its source again",
            )
        return name

    def head(self) -> Struct | None:
        """The structure for the page's type, walked; None if the header or the IDL has none."""
        found = _HEADS.get(self.kind)
        return None if found is None or not self.has_head else self._walked().struct(*found)

    def _walked(self) -> Struct:
        return Struct("PageHeader", self.data[self.start : self.end], 0, self.location)


def parse(data: bytes, start: int, end: int) -> PageHeader:
    """Parse the header at `start` of bytes that end at `end`. Raises CompactError."""
    return PageHeader(data, start, end, parquet_limits.THRIFT_MAX_DEPTH)
