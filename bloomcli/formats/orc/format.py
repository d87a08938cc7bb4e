"""The record of ORC files."""

from __future__ import annotations

from typing import Final, TypedDict

from bloomcli.formats.format import Format, Magic, Option, Sizes
from bloomcli.formats.orc.limits import RATE_MARGIN

ORC: Final = Format(
    name="orc",
    title="ORC",
    opener="bloomcli.formats.orc.file:OrcFile",
    writers=("bloomcli.formats.orc.plan",),
    # the postscript ends with the magic and its length follows, the last byte; the oldest writers left the magic out
    magics=(Magic(b"ORC", -4), Magic(b"ORC", 0)),
    suffixes=(".orc",),
    unit="stripe",
    options=(
        Option(
            name="kind",
            help="ORC: 'both' also writes BLOOM_FILTER streams, for readers before ORC 1.4, where that is sound.",
            noun="kind of filter",
            choices=("utf8", "both"),
        ),
    ),
    rate_margin=RATE_MARGIN,
    sizes=Sizes.OWN,  # any multiple of 64 bits
    hashed_by_width=False,  # integers of every width are hashed as 64 bits, floats as doubles
)

FORMATS: Final = (ORC,)


class Keywords(TypedDict, total=False):
    """The options as keywords of `bloomcli.add`, for editors and type checkers."""

    kind: str | None
