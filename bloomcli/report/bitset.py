"""A filter's bits as a NumPy file and as a PNG picture.

In a NumPy file, a split-block bitset has the shape (blocks, 8) and little-endian unsigned 32-bit words; others are
one-dimensional, with little-endian unsigned 64-bit words.

Source: the NPY format, version 1.0 (numpy.lib.format). The bitset's bytes follow the header unchanged.

A picture shows every bit of a small filter, and the fill of each block of a larger one. Blocks are in the order of
the file, row by row from the upper left corner. Hashed values result in even noise, in which empty and full blocks
are visible: both have their own colours. In a filter without blocks (ORC, Mosaic), 256 bits in the order of the file
are drawn as a block.

    blocks                  a cell is
    up to 4,096             a block: 8 words below each other, each with 32 bits, bit 0 at the left
    up to 1,048,576         a block, in the shade of its share of set bits
    more                    as many blocks in a row as are needed for 1,048,576 cells: their mean share
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli.errors import needed
from bloomcli.filters.sizing import BLOCK_BYTES, WORD_BITS, WORDS
from bloomcli.report.human import count, printable, row_group_text
from bloomcli.version import __version__
from bloomcli.words import counted, plural, rate

if TYPE_CHECKING:
    from PIL.Image import Image

    from bloomcli.model.inspect import FilterDump


_MAGIC: Final = b"\x93NUMPY\x01\x00"
_ALIGNMENT: Final = 64


def header(nbytes: int, *, blocks: bool) -> bytes:
    """Return the header for a bitset of `nbytes` bytes. The header's length is a multiple of 64 bytes."""
    kind, shape = ("<u4", f"({nbytes // 32}, 8)") if blocks else ("<u8", f"({nbytes // 8},)")
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode("ascii")
    padding = -(len(_MAGIC) + 2 + len(text) + 1) % _ALIGNMENT
    text += b" " * padding + b"\n"
    return _MAGIC + len(text).to_bytes(2, "little") + text


BITS_SHOWN: Final = 4096
"""Blocks of the largest filter whose bits are drawn."""
CELLS: Final = 1 << 20
"""Cells of the largest picture of blocks."""
_WIDTH: Final = 1056
"""The most pixels that the picture of a small filter is wide."""
_LEAST_WIDTH: Final = 720
"""Pixels that the caption needs."""
_STRIP: Final = 1 << 16
"""Blocks that are drawn at a time."""
_LINE: Final = 20
_MARGIN: Final = 12

_GROUND: Final = (255, 255, 255)
_INK: Final = (26, 31, 36)
EMPTY: Final = (255, 205, 160)
"""No bit of a block is set."""
FULL: Final = (120, 10, 20)
"""All bits of a block are set."""
LOW: Final = (214, 226, 238)
"""A bit isn't set, or few bits of a block are set."""
HIGH: Final = (20, 60, 104)
_EMPTY, _FULL, _ALL = 0, 248, 255
"""Positions in the palette: a block with n set bits has the position 248 n / 256, and the background has `_ALL`."""
_ONES: Final = bytes(31 * n.bit_count() for n in range(256))
"""For each byte, 31 times the number of its set bits. The mean over a block's 32 bytes is 0 only if the block is
empty, and 248 only if it is full."""


class _Grid(NamedTuple):
    """The layout of a picture's cells."""

    across: int
    down: int
    pixels: int
    """The width and height in pixels of a bit, or of a cell of blocks."""
    blocks: int
    """The number of blocks in a cell."""


def write(dump: FilterDump) -> bytes:
    """Return the picture of a filter as PNG. Raises UnsupportedError if Pillow isn't installed."""
    with needed("pictures need", "report"):
        import PIL.Image
        from PIL.PngImagePlugin import PngInfo
    blocks = len(dump.bitset) // BLOCK_BYTES
    fills = b"".join(_fills(dump.bitset, 1))
    picture = _bits(dump.bitset, fills) if blocks <= BITS_SHOWN else _blocks(dump.bitset, fills)
    captions = list(_captions(dump, blocks, fills))
    page = PIL.Image.new(
        "RGB",
        (max(picture.width, _LEAST_WIDTH) + 2 * _MARGIN, picture.height + 3 * _MARGIN + _LINE * (len(captions) + 1)),
        _GROUND,
    )
    page.paste(picture, (_MARGIN, _MARGIN))
    _write_below(page, picture.height + 2 * _MARGIN, captions, bits=blocks <= BITS_SHOWN)
    facts = PngInfo()
    facts.add_itxt("Title", captions[0])
    facts.add_itxt("Description", " ".join(captions[1:]))
    facts.add_itxt("Software", f"bloom {__version__}")
    stream = io.BytesIO()
    page.save(stream, format="PNG", pnginfo=facts, optimize=False)
    return stream.getvalue()


def _fills(bitset: bytes, blocks: int) -> Iterator[bytes]:
    """Yield the fills of cells of `blocks` blocks, as positions in the palette, in strips of many cells."""
    from PIL import Image

    step = max(_STRIP // blocks, 1) * blocks * BLOCK_BYTES
    for at in range(0, len(bitset), step):
        part = bitset[at : at + step].translate(_ONES)
        part += bytes(-len(part) % BLOCK_BYTES)
        cells = math.ceil(len(part) / BLOCK_BYTES / blocks)
        strip = Image.frombytes("L", (BLOCK_BYTES, len(part) // BLOCK_BYTES), part)
        yield strip.resize((1, cells), Image.Resampling.BOX).tobytes()


def grid(blocks: int) -> _Grid:
    """Return the layout for a filter of `blocks` blocks: about as high as wide, with a power of two of cells in a
    row."""
    if blocks <= BITS_SHOWN:
        wide, high = WORD_BITS + 1, WORDS + 1
        across = _power(math.sqrt(blocks * high / wide))
        return _Grid(across, math.ceil(blocks / across), max(min(_WIDTH // (across * wide), 16), 1), 1)
    each = math.ceil(blocks / CELLS)
    cells = math.ceil(blocks / each)
    across = min(_power(math.sqrt(cells)), 1024)
    return _Grid(across, math.ceil(cells / across), max(_WIDTH // across, 1), each)


def _power(least: float) -> int:
    return 1 << max(math.ceil(math.log2(least)), 0) if least > 1 else 1


def _palette() -> list[int]:
    colours = [_GROUND] * 256
    for place in range(_EMPTY + 1, _FULL):
        share = place / _FULL
        colours[place] = tuple(round(a + (b - a) * share) for a, b in zip(LOW, HIGH, strict=True))  # type: ignore[assignment]
    colours[_EMPTY], colours[_FULL] = EMPTY, FULL
    return [part for colour in colours for part in colour]


def _blocks(bitset: bytes, fills: bytes) -> Image:
    """The picture of the blocks' fills."""
    from PIL import Image

    layout = grid(len(bitset) // BLOCK_BYTES)
    cells = fills if layout.blocks == 1 else b"".join(_fills(bitset, layout.blocks))
    cells += bytes([_ALL]) * (layout.across * layout.down - len(cells))
    image = Image.frombytes("P", (layout.across, layout.down), cells)
    image.putpalette(_palette())
    size = (layout.across * layout.pixels, layout.down * layout.pixels)
    return image.resize(size, Image.Resampling.NEAREST).convert("RGB")


def _bits(bitset: bytes, fills: bytes) -> Image:
    """The picture of every bit, with a space of one pixel between blocks."""
    from PIL import Image

    layout = grid(len(fills))
    wide, high = WORD_BITS * layout.pixels + 1, WORDS * layout.pixels + 1
    image = Image.new("RGB", (layout.across * wide - 1, layout.down * high - 1), _GROUND)
    size = (WORD_BITS * layout.pixels, WORDS * layout.pixels)
    for number, fill in enumerate(fills):
        if fill in {_EMPTY, _FULL}:
            block = Image.new("RGB", size, EMPTY if fill == _EMPTY else FULL)
        else:
            words = bitset[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES].ljust(BLOCK_BYTES, b"\0")
            # "1;R": the lowest bit of a byte comes first, and the lowest byte of a little-endian word does
            bits = Image.frombytes("1", (WORD_BITS, WORDS), words, "raw", "1;R")
            block = Image.new("RGB", size, LOW)
            block.paste(HIGH, mask=bits.resize(size, Image.Resampling.NEAREST))
        image.paste(block, (number % layout.across * wide, number // layout.across * high))
    return image


def _captions(dump: FilterDump, blocks: int, fills: bytes) -> Iterator[str]:
    facts = dump.facts
    measured = "" if facts.fill is None else f", {rate(facts.fill)} of the bits set"
    where = row_group_text(facts.stripe, facts.row_group)
    yield f"{printable(dump.path)}: {where}, {printable(facts.column)}: {plural(blocks, 'block')}{measured}"
    layout = grid(blocks)
    if blocks <= BITS_SHOWN:
        cell = f"a block: 8 words of {WORD_BITS} bits, bit 0 at the left"
    elif layout.blocks == 1:
        cell = "a block, by its share of set bits"
    else:
        cell = f"{counted(layout.blocks, 'block')}, by their mean share of set bits"
    yield f"A cell is {cell}; {count(layout.across)} across, in file order, row by row."
    yield f"{plural(fills.count(_EMPTY), 'block')} without a set bit, {count(fills.count(_FULL))} with all bits set."


def _write_below(page: Image, top: int, captions: list[str], *, bits: bool) -> None:
    """Write the captions and the legend of the colours. Captions are ASCII: Pillow's font has few other
    characters."""
    from PIL import ImageDraw, ImageFont

    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(13)
    room = page.width - 2 * _MARGIN
    for number, text in enumerate(captions):
        shown = text.encode("ascii", "backslashreplace").decode("ascii")
        while shown and draw.textlength(shown, font=font) > room:
            shown = shown[:-4] + "..." if not shown.endswith("...") else shown[:-7] + "..."
        draw.text((_MARGIN, top + number * _LINE), shown, fill=_INK, font=font)
    at, top = _MARGIN, top + len(captions) * _LINE
    low, high = ("bit not set", "bit set") if bits else ("few bits set", "most bits set")
    for text, colour in (("empty block", EMPTY), (low, LOW), (high, HIGH), ("full block", FULL)):
        draw.rectangle((at, top, at + 14, top + 12), fill=colour, outline=_INK)
        draw.text((at + 20, top), text, fill=_INK, font=font)
        at += 40 + round(draw.textlength(text, font=font))
