"""The record of Mosaic files."""

from __future__ import annotations

from typing import Final, TypedDict

from bloomcli.formats.format import Format, Magic, Option

DRAFT: Final = Option(
    name="mosaic_draft",
    help="Mosaic: write version 2, the draft with filters, which released readers refuse to open.",
    noun="version",
    ignored_elsewhere=True,
    in_tables=False,
)

MOSAIC: Final = Format(
    name="mosaic",
    title="Mosaic",
    opener="bloomcli.formats.mosaic.file:MosaicFile",
    writers=("bloomcli.formats.mosaic.plan",),
    magics=(Magic(b"MOSA", -4),),
    suffixes=(".mosaic",),
    options=(DRAFT,),
    needs=(DRAFT.flag,),
)

FORMATS: Final = (MOSAIC,)


class Keywords(TypedDict, total=False):
    """The options as keywords of `bloomcli.add`, for editors and type checkers."""

    mosaic_draft: bool
