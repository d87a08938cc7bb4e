"""The options of bloom's own formats as keywords of `bloomcli.add`, for editors and type checkers."""

from __future__ import annotations

from bloomcli.formats.format import OptionValues
from bloomcli.formats.mosaic import format as mosaic
from bloomcli.formats.orc import format as orc
from bloomcli.formats.parquet import format as parquet


class TableFormatKeywords(orc.Keywords, parquet.Keywords, total=False):
    """The options of formats that tables have (`Option.in_tables`), and those of other packages' formats by name."""

    format_options: OptionValues


class FormatKeywords(mosaic.Keywords, total=False):
    """The options of the other formats."""
