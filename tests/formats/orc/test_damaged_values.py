"""ORC columns whose streams are damaged: a BloomError that names the stream, and nothing written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from support import orcfiles, orcruns
from support.orcfiles import File, replaced

import bloomcli
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.formats.orc import limits as orc_limits

ROWS = 40
PRESENT, DATA, LENGTH, DICTIONARY_DATA, SECONDARY = 0, 1, 2, 3, 5
DICTIONARY, DIRECT_V2, DICTIONARY_V2 = 1, 2, 3
PYORC = Path(__file__).parents[3] / "fixtures" / "orc" / "pyorc_types.orc"
IDS = {"i": 1, "b": 2, "d": 3, "t": 4, "k": 5, "li": 6, "li._elem": 7, "n": 8, "m": 9, "ts": 10}


ROOT = Path(__file__).parents[3]
UNION = 13


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A column for each way of storing values: `t` back to back, `k` with a dictionary, `n` with nulls."""
    table = pa.table(
        {
            "i": pa.array(range(ROWS), pa.int32()),
            "b": pa.array(range(ROWS), pa.int8()),
            "d": [i / 4 for i in range(ROWS)],
            "t": [f"text {i}" for i in range(ROWS)],
            "k": [f"key {i % 4}" for i in range(ROWS)],
            "li": [[i, i + 1] for i in range(ROWS)],
            "n": [None if i % 3 else i for i in range(ROWS)],
            "m": pa.array([Decimal("1.23")] * ROWS, pa.decimal128(9, 2)),
            "ts": pa.array([0] * ROWS, pa.timestamp("us")),
        }
    )
    orcfiles.write(tmp_path / "f", table, dictionary_key_size_threshold=0.5)
    encodings = [c.kind for c in orcfiles.split(tmp_path / "f").stripes[0].footer.columns]
    assert encodings[IDS["t"]] == DIRECT_V2
    assert encodings[IDS["k"]] == DICTIONARY_V2
    return tmp_path / "f"


def refused(path: Path, column: str, edit: Callable[[File], object], match: str, error: type[BloomError]) -> None:
    """`add` refuses the edited file with the location of the damage, and leaves no other file."""
    folder = path.parent / "work"
    folder.mkdir()
    bad = orcfiles.edited(path, folder / "bad", edit)
    with pytest.raises(error, match=match) as caught:
        bloomcli.add(bad, [column], output=folder / "out")
    assert caught.value.path == str(bad)
    assert "stripes[0]" in str(caught.value)
    assert list(folder.iterdir()) == [bad]


def stream(column: str, kind: int, data: bytes) -> Callable[[File], None]:
    """Replace a stream by other bytes."""
    return replaced(kind, IDS[column], data)


def encoding(column: str, **fields: int) -> Callable[[File], None]:
    """Change a column's encoding."""

    def edit(file: File) -> None:
        for name, value in fields.items():
            setattr(file.stripes[0].footer.columns[IDS[column]], name, value)

    return edit


def repeated(value: int, *, signed: bool = False) -> bytes:
    """A stream of a value for each row."""
    return orcruns.direct([value] * ROWS, signed=signed)


ENDS = "the stream ends before the stripe's last value"
DIGITS = "a decimal with more digits than its column allows"
NANOS = "more nanoseconds than a second has"
CASES = [
    ("i", stream("i", DATA, b""), ENDS),
    ("i", stream("i", DATA, repeated(5, signed=True)[:-1]), ENDS),
    ("i", stream("i", DATA, repeated(1 << 31, signed=True)), "an integer that its column's 4 bytes can't hold"),
    ("i", stream("i", DATA, repeated(-(1 << 31) - 1, signed=True)), "an integer that its column's 4 bytes"),
    ("i", stream("i", DATA, bytes([0xC2, 0, 2, 2])), "an invalid run of integers"),
    ("i", encoding("i", kind=DICTIONARY), "column i, int, in the encoding DICTIONARY"),
    ("b", stream("b", DATA, orcruns.byte_run(7, ROWS - 1)), ENDS),
    ("b", stream("b", DATA, orcruns.byte_literals(bytes(ROWS))[:-1]), ENDS),
    ("b", encoding("b", kind=DIRECT_V2), "column b, tinyint, in the encoding DIRECT_V2"),
    ("d", stream("d", DATA, bytes(ROWS * 8 - 1)), ENDS),
    ("d", encoding("d", kind=DIRECT_V2), "in the encoding DIRECT_V2"),
    ("t", stream("t", DATA, b"text 1"), ENDS),
    ("t", stream("t", LENGTH, repeated(6)[:4]), ENDS),
    ("t", stream("t", LENGTH, repeated(-1)), "a length below 0"),
    ("t", stream("t", LENGTH, repeated(1000)), ENDS),
    ("k", stream("k", DATA, repeated(4)), "entry 4 of a dictionary with 4 entries"),
    ("k", stream("k", DATA, repeated(-1)), "entry 18446744073709551615 of a dictionary"),
    ("k", stream("k", DICTIONARY_DATA, b"key"), ENDS),
    ("k", encoding("k", dictionary_size=5), ENDS),
    ("k", encoding("k", dictionary_size=(1 << 32) - 1), "a dictionary of 4294967295 entries, more than the 16777216"),
    ("li._elem", stream("li", LENGTH, b""), ENDS),
    ("li._elem", stream("li", LENGTH, repeated(-1)), "a length below 0"),
    ("li._elem", stream("li", LENGTH, repeated(3)), ENDS),
    ("n", stream("n", PRESENT, b""), ENDS),
    ("n", stream("n", PRESENT, orcruns.byte_run(0xFF, 5)), ENDS),
    ("m", stream("m", SECONDARY, b""), ENDS),
    ("m", stream("m", DATA, b""), ENDS),
    ("m", stream("m", DATA, b"\x02" * (ROWS - 1) + b"\x80"), ENDS),
    ("m", stream("m", DATA, b"\xff" * 60), "a decimal of more than 128 bits"),
    ("m", stream("m", SECONDARY, repeated(3, signed=True)), DIGITS),
    ("m", stream("m", SECONDARY, repeated(-(1 << 63), signed=True)), DIGITS),
    ("m", stream("m", DATA, orcruns.varint(2 * 10**18) * ROWS), DIGITS),
    ("ts", stream("ts", SECONDARY, repeated(10**9 << 3)), NANOS),
    ("ts", stream("ts", SECONDARY, repeated(999 << 3 | 7)), NANOS),
    ("ts", stream("ts", SECONDARY, repeated(1 << 62)), NANOS),
    ("ts", stream("ts", SECONDARY, orcruns.direct([0] * 2, signed=False)), ENDS),
    ("ts", stream("ts", DATA, orcruns.direct([0] * 2, signed=True)), ENDS),
    ("t", stream("t", LENGTH, repeated((1 << 63) - 1)), "a length below 0, or of 2 GiB or more"),
    ("t", lambda f: f.drop(f.place(DATA, IDS["t"])), ENDS),
    ("n", stream("n", PRESENT, orcruns.byte_run(0, ROWS // 8)), "row group 0 holds no value of n, .* count 14"),
]


@pytest.mark.parametrize(("column", "edit", "match"), CASES, ids=[f"{c}: {m}" for c, _, m in CASES])
def test_a_stream_that_isnt_its_columns_values_is_refused(
    path: Path, column: str, edit: Callable[[File], None], match: str
) -> None:
    refused(path, column, edit, match, CorruptFile)


def test_an_encoding_of_the_future_is_not_supported(path: Path) -> None:
    refused(path, "i", encoding("i", kind=17), "column i, int, in the encoding CODE 17", UnsupportedError)


def test_a_stripe_of_too_many_values_is_not_supported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_limits, "VALUES_MAX", ROWS - 1)
    refused(path, "i", lambda _: None, f"a stripe with more than {ROWS - 1} values", UnsupportedError)


def test_where_all_is_null_no_stream_but_present_is_needed(path: Path) -> None:
    orcfiles.write(path, pa.table({"n": pa.nulls(ROWS, pa.int64())}))
    file = orcfiles.split(path)
    file.drop(file.place(DATA, 1))
    assert file.place(PRESENT, 1) is not None
    path.write_bytes(file.join())
    assert [c.values for c in bloomcli.add(path, ["n"], in_place=True).changes] == [0]


def test_a_column_without_an_encoding_is_refused_where_its_values_are_needed(path: Path) -> None:
    bloomcli.add(path, ["ts"], in_place=True)
    orcfiles.edited(path, path.with_name("bad"), lambda f: f.stripes[0].footer.columns.pop())
    with pytest.raises(CorruptFile, match="column ts has no encoding"):
        bloomcli.validate(path.with_name("bad"), deep=True)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"\x01\x00", "a chunk's header is cut off"),
        (b"\x11\x00\x00abc", "a chunk of 8 bytes runs past its stream, 3 are left"),
        (b"\x08\x00\x00\xff\xff\xff\xff", "a chunk can't be decompressed"),
        (b"\x01\x00\x00" * 50, ENDS),
    ],
)
def test_chunks_that_cant_be_are_refused_in_data_streams(tmp_path: Path, data: bytes, match: str) -> None:
    orcfiles.write(tmp_path / "f", {"i": range(1000)}, compression="zlib")
    refused(
        tmp_path / "f", "i", lambda f: f.stripes[0].streams.__setitem__(f.place(DATA, 1), data), match, CorruptFile
    )


def test_values_that_are_missing_are_shown_without_decoding_what_was_never_read(path: Path) -> None:
    bloomcli.add(path, ["t", "b"], in_place=True)

    def edit(file: File) -> None:
        file.put(LENGTH, IDS["t"], repeated(1) + repeated(1 << 40))
        file.put(DATA, IDS["b"], orcruns.byte_run(200, ROWS))

    orcfiles.edited(path, path.with_name("bad"), edit)
    found = {f.column: f.missing for f in bloomcli.validate(path.with_name("bad"), deep=True).findings if f.missing}
    assert found["b"] == ("-56",)
    assert found["t"] == ("t", "e", "x", " ", "0")


@pytest.mark.slow
@pytest.mark.parametrize("column", ["name.1", "id"])
@pytest.mark.parametrize("tag", [2, 255])
def test_a_tag_of_no_member_of_a_union_is_refused_before_arrow_crashes_by_it(
    tmp_path: Path, tag: int, column: str
) -> None:
    source, path = ROOT / "fixtures" / "rules" / "filter-not-checked" / "broken.orc", tmp_path / "f.orc"

    def edit(file: File) -> None:
        union = next(at for at, kind in enumerate(file.footer.types) if kind.kind == UNION)
        for stripe, part in zip(file.footer.stripes, file.stripes, strict=True):
            at = next(at for at, s in enumerate(part.footer.streams) if (s.column, s.kind) == (union, DATA))
            part.streams[at] = file.packed(bytes([stripe.number_of_rows - 3, tag]))  # a run of one byte

    orcfiles.edited(source, path, edit)
    words = [sys.executable, "-m", "bloomcli", "find", "-v", "3", "-c", column, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, "in a member that the type can't have" in done.stderr) == (3, True), done.stderr


@pytest.mark.slow
def test_lengths_beyond_the_bytes_of_texts_are_refused_before_arrow_crashes_by_them(path: Path) -> None:
    bad = orcfiles.edited(path, path.with_name("bad"), stream("t", LENGTH, repeated(1 << 40)))
    words = [sys.executable, "-m", "bloomcli", "find", "-v", "3", "-c", "i", str(bad)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 3, done.stderr
    words[-1:] = ["--select", "i", str(bad)]
    assert subprocess.run(words, capture_output=True, check=False, cwd=ROOT).returncode == 0
