"""`bloom dump --format png`: each bit and each block is where the documentation says."""

from __future__ import annotations

import io
import random
import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from support import blooms
from support.cli import Bloom

import bloomcli
from bloomcli.cli import run
from bloomcli.errors import UnsupportedError, install
from bloomcli.model.inspect import FilterDump
from bloomcli.report import bitset as picture

MARGIN = 12


def drawn(dump: FilterDump, bitset: bytes) -> Image.Image:
    """The picture of these bits."""
    return Image.open(io.BytesIO(picture.write(replace(dump, bitset=bitset)))).convert("RGB")


def corner(block: int, blocks: int) -> tuple[int, int]:
    """The upper left pixel of a small filter's block."""
    found = picture.grid(blocks)
    wide, high = 32 * found.pixels + 1, 8 * found.pixels + 1
    return MARGIN + block % found.across * wide, MARGIN + block // found.across * high


@pytest.fixture(scope="module")
def dump(fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> FilterDump:
    """A filter's facts."""
    path = tmp_path_factory.mktemp("png") / "f.parquet"
    bloomcli.add(fixtures / "parquet" / "orders.parquet", ["id"], output=path)
    return bloomcli.dump(path, column="id")


@pytest.mark.parametrize("blocks", [1, 3, 64, 1000, 4096])
def test_every_bit_of_a_small_filter_is_a_square_of_pixels(dump: FilterDump, blocks: int) -> None:
    bitset = random.Random(blocks).randbytes(32 * blocks)
    image = drawn(dump, bitset)
    found = picture.grid(blocks)
    for block in {0, 1, blocks // 2, blocks - 1} & set(range(blocks)):
        left, top = corner(block, blocks)
        for word in range(8):
            (number,) = struct.unpack_from("<I", bitset, block * 32 + word * 4)
            for bit in range(32):
                colour = image.getpixel((left + bit * found.pixels, top + word * found.pixels))
                assert colour == (picture.HIGH if number >> bit & 1 else picture.LOW), (block, word, bit)


@pytest.mark.parametrize("blocks", [4097, 20_000, (1 << 20) + 5])
def test_a_block_of_a_large_filter_has_the_shade_of_its_set_bits(dump: FilterDump, blocks: int) -> None:
    found = picture.grid(blocks)
    half, empty, full = b"\x0f" * 32, bytes(32), b"\xff" * 32
    cells = [half, empty, full, b"\x01" + bytes(31), b"\x7f" + b"\xff" * 31]
    bitset = b"".join(cell * found.blocks for cell in cells)
    bitset += half * (blocks - len(bitset) // 32)
    image = drawn(dump, bitset)
    pixel = [image.getpixel((MARGIN + at * found.pixels, MARGIN)) for at in range(6)]
    assert pixel[1] == picture.EMPTY
    assert pixel[2] == picture.FULL
    assert pixel[3] != picture.EMPTY
    assert pixel[4] != picture.FULL, "one bit that isn't set makes a block not full"
    assert all(abs(p - (a + b) / 2) <= 2 for p, a, b in zip(pixel[0], picture.LOW, picture.HIGH, strict=True))
    assert pixel[5] == pixel[0]


def test_saturation_truncation_and_exchanged_halves_are_seen(dump: FilterDump) -> None:
    def values(number: int) -> list[bytes]:
        return [struct.pack("<q", i * 7919) for i in range(number)]

    healthy = blooms.build(values(2500), 4096)
    colours = dict(map(reversed, drawn(dump, healthy).getcolors(1 << 20)))  # type: ignore[arg-type]
    saturated = dict(map(reversed, drawn(dump, blooms.build(values(60_000), 4096)).getcolors(1 << 20)))  # type: ignore[arg-type]
    key = 15 * 13  # the swatch of the legend
    assert colours.get(picture.FULL, 0) < key < saturated[picture.FULL]
    cut = drawn(dump, healthy[:3000] + bytes(1096))
    assert [cut.getpixel(corner(block, 128)) == picture.EMPTY for block in (0, 93, 94, 127)] == [
        False,
        False,
        True,
        True,
    ]
    half = blooms.build(values(50), 2048) + blooms.build(values(1000), 2048)
    swapped = drawn(dump, half[2048:] + half[:2048])
    left, top = corner(64, 128)
    assert left == MARGIN
    wide, high = 600, top - MARGIN - 1
    upper = (left, MARGIN, left + wide, MARGIN + high)
    lower = (left, top, left + wide, top + high)
    assert drawn(dump, half).crop(upper).tobytes() == swapped.crop(lower).tobytes()
    assert drawn(dump, half).crop(lower).tobytes() == swapped.crop(upper).tobytes()


def test_the_picture_says_what_it_shows_and_the_largest_filter_stays_small(dump: FilterDump) -> None:
    data = picture.write(replace(dump, bitset=b"\xa5" * (32 << 20)))
    image = Image.open(io.BytesIO(data))
    assert max(image.size) < 1300
    assert "row group 0, id: 1,048,576 blocks" in image.text["Title"]  # type: ignore[attr-defined]
    assert "0 blocks without a set bit" in image.text["Description"]  # type: ignore[attr-defined]
    odd = replace(dump, facts=replace(dump.facts, column="\u202e名前\n"))
    assert "\\u202e名前\\n" in Image.open(io.BytesIO(picture.write(odd))).text["Title"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["orc/java_types.orc", "mosaic/draft_types.mosaic"])
def test_filters_of_other_formats_are_drawn(name: str, fixtures: Path, tmp_path: Path, bloom: Bloom) -> None:
    out = tmp_path / "filter.png"
    assert bloom("dump", fixtures / name, "-c", "text", "--format", "png", "-o", out).code == 0
    assert Image.open(io.BytesIO(out.read_bytes())).format == "PNG"


def test_the_picture_is_written_to_standard_output_as_to_a_file(
    fixtures: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    out = tmp_path / "filter.png"
    arguments = ["dump", str(fixtures / "orc/java_types.orc"), "-c", "text", "--format", "png"]
    assert run([*arguments, "-o", str(out)]) == 0
    capfdbinary.readouterr()
    assert run(arguments) == 0
    assert capfdbinary.readouterr().out == out.read_bytes()


def test_without_pillow_the_error_names_the_extra(dump: FilterDump, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UnsupportedError) as raised:
        picture.write(dump)
    assert raised.value.hint == install("report")
