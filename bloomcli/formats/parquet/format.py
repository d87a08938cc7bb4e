"""The format records of Parquet files and of files with a single Parquet filter."""

from __future__ import annotations

from typing import Final, TypedDict

from bloomcli.formats.format import Format, Magic, Option, Sizes

PARQUET: Final = Format(
    name="parquet",
    title="Parquet",
    opener="bloomcli.formats.parquet.file:ParquetFile",
    takes_keys=True,
    indexed_values="bloomcli.formats.parquet.lookups:hashed_values",
    writers=("bloomcli.formats.parquet.plan", "bloomcli.formats.parquet.plan"),
    magics=(
        Magic(b"PAR1", -4),
        Magic(b"PARE", -4),
        Magic(b"PAR1", 0, alone=False),
        Magic(b"PARE", 0, alone=False),
    ),
    suffixes=(".parquet", ".parq", ".pq"),
    options=(
        Option(
            name="variant",
            help="For tests and old readers only: write filters of the 2018 drafts, which today's readers misread.",
            noun="variant of filter",
            choices=("parquet", "parquet-2018-12byte", "parquet-2018-header", "parquet-2018-page"),
            old_readers=frozenset({"parquet-2018-12byte", "parquet-2018-header", "parquet-2018-page"}),
            fact="variant",
        ),
    ),
    sizes=Sizes.ANY,
)

BARE_FILTER: Final = Format(
    name="parquet-filter",
    title="bare Parquet filter",
    opener="bloomcli.formats.parquet.file:BareFilter",
    detector="bloomcli.formats.parquet.file:is_bare",
    sizes=Sizes.ANY,
)

FORMATS: Final = (PARQUET, BARE_FILTER)


class Keywords(TypedDict, total=False):
    """The options as keywords of `bloomcli.add`, for editors and type checkers."""

    variant: str | None
