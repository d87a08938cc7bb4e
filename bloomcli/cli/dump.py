"""bloom dump"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from bloomcli.cli import grouped, options, output
from bloomcli.cli.reports import check_new_file, new_output, output_option
from bloomcli.commands.options import ProbeOptions
from bloomcli.errors import UsageError

if TYPE_CHECKING:
    from bloomcli.model.inspect import FilterDump


@grouped.command(
    short_help="Dump one filter's bits.",
    epilog="""\b
Examples:
  bloom dump orders.parquet --column id
  bloom dump orders.parquet --column id --row-group 3 --format raw -o id.bits
  bloom dump orders.parquet --column id --format npy -o id.npy
  bloom dump orders.parquet --column id --format png -o id.png
  python -c "import numpy; print(numpy.load('id.npy').shape)"    # (blocks, 8)""",
)
@options.file_argument
@options.options_of(ProbeOptions, only=("column",))
@grouped.option("-g", "--row-group", type=click.IntRange(min=0), default=0, show_default=True, help="Counted from 0.")
@grouped.option(
    "-s", "--stripe", type=click.IntRange(min=0), default=0, show_default=True, help="ORC: counted from 0."
)
@grouped.option(
    "--engine-filter",
    metavar="KIND",
    help="Of a filter that an engine keeps for the file, as `bloom inspect` names it.",
)
@options.format_option("hex", "raw", "json", "npy", "csv", "png")
@options.key_options
@output_option
def command(
    file: str,
    column: str | None,
    row_group: int,
    stripe: int,
    engine_filter: str | None,
    form: str,
    target: str | None,
    keys: Any,
) -> int:
    """Dump one filter's bits.

    hex: one block of 256 bits per line, its eight words as hexadecimal numbers. raw: the bitset's
    bytes, as in the file. npy: a NumPy array of unsigned 32-bit words, one row per block. ORC filters
    have no blocks, so hex, npy and csv have 64-bit words instead. csv: one row per block with its
    eight words as hexadecimal numbers. json: facts, header and bitset, with
    bytes as hexadecimal digits.

    png: a picture, which needs Pillow: every bit of up to 4,096 blocks; for larger
    filters, the share of set bits of each block, in file order. Empty and full blocks have special
    colours.
    """
    from bloomcli.commands.dump import dump

    binary = form in {"raw", "npy", "png"}
    if binary and target is None and sys.stdout.isatty():
        raise UsageError(f"--format {form} is binary, not for a terminal", hint="name a file with -o")
    if target is not None:
        check_new_file(target)
    filter_ = dump(file, column=column, row_group=row_group, stripe=stripe, engine_filter=engine_filter, keys=keys)
    with new_output(target, binary=binary) as stream:
        if binary:
            _write_bytes(filter_, form, stream)
        elif form == "csv":
            from bloomcli.report import csv

            csv.write_words(filter_, stream)
        elif form == "json":
            output.write("dump", filter_, form, lambda _: (), stream)
        else:
            from bloomcli.report import text_inspect

            stream.writelines(line + "\n" for line in text_inspect.hex_dump(filter_))
    if filter_.unverified:
        output.say(f"note: {filter_.unverified}", err=True)
    return 0


def _write_bytes(filter_: FilterDump, form: str, stream: Any) -> None:
    """Write the filter in a binary form."""
    from bloomcli.report import bitset

    data = bitset.write(filter_) if form == "png" else filter_.bitset
    if form == "npy":  # whole words: some engines' filters end within one
        data += bytes(-len(data) % 8)
        data = bitset.header(len(data), blocks=filter_.facts.blocks is not None) + data
    stream.flush()
    binary = getattr(stream, "buffer", stream)
    binary.write(data)
    binary.flush()
