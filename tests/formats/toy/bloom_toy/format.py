"""The record of toy files."""

from __future__ import annotations

from bloomcli.formats.format import Format, Magic

TOY = Format(
    name="toy",
    title="Toy",
    opener="bloom_toy.file:ToyFile",
    writers=("bloom_toy.plan",),
    magics=(Magic(b"TOYF", -4),),
    suffixes=(".toy",),
)

FORMATS = (TOY,)
