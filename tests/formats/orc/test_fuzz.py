"""Seeded mutations of small ORC files: for any bytes, the only exceptions are BloomErrors, and no temporary file is
left."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support import orcfiles
from support.orcfiles import BLOOM_FILTER, BLOOM_FILTER_UTF8, ROW_INDEX, File
from support.survival import Command, flipped, survives

import bloomcli

pytestmark = pytest.mark.slow

CASES_EACH = 45
INTERESTING = (0x00, 0x01, 0x08, 0x0A, 0x12, 0x1A, 0x7F, 0x80, 0xFF)
LENGTHS = (0, 1, 2, 255, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 64) - 1)
LAYOUTS: dict[str, dict[str, Any]] = {
    "uncompressed": {"stripe": 16, "stride": 7},
    "zlib": {"compression": "zlib", "stride": 10},
    "snappy": {"compression": "snappy", "stride": 40, "dictionary_key_size_threshold": 1.0},
}


def table() -> dict[str, list[Any]]:
    """Types whose footers and statistics differ."""
    return {
        "i": [1, None, 3] * 10,
        "s": [f"s{i % 11}" for i in range(30)],
        "d": [0.0, None, 1.5] * 10,
        "l": [[1, None], [], None] * 10,
        "st": [{"x": "a"}, None, {"x": None}] * 10,
    }


def found(path: Path, values: list[str], column: str) -> None:
    """Find rows. Faults of the file are in the report, and aren't raised."""
    search = bloomcli.find(path, values, column=column, jobs=1)
    rows = sum(batch.num_rows for batch in search)
    assert rows == search.report.rows
    assert all(error.error for error in search.report.errors)


ALWAYS: tuple[Command, ...] = (
    lambda path, _: bloomcli.inspect(path),
    lambda path, _: bloomcli.validate(path, deep=True, require=["*"]),
    lambda path, _: bloomcli.probe(path, ["3", "-1"], column="i", explain=True),
    lambda path, out: bloomcli.add(path, ["i", "s", "l._elem"], output=out, replace=True, threads=1),
)
IN_TURN: tuple[Command, ...] = (
    lambda path, _: found(path, ["3", "1"], "i"),
    lambda path, _: found(path, ["s3", "s7"], "s"),
    lambda path, _: found(path, ["1"], "l._elem"),
    lambda path, _: bloomcli.probe(path, ["0", "nan"], column="d"),
    lambda path, _: bloomcli.dump(path, column="s"),
    lambda path, out: bloomcli.remove(path, output=out),
    lambda path, out: bloomcli.add(path, ["st.x"], output=out, kind="both"),
)


@pytest.fixture
def whole(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file with filters of both kinds."""
    orcfiles.write(tmp_path / "plain", table(), **LAYOUTS[request.param])
    bloomcli.add(tmp_path / "plain", ["i", "s", "d", "l._elem"], output=tmp_path / "whole", kind="both")
    (tmp_path / "work").mkdir()
    return tmp_path / "whole"


def commands(turn: int) -> tuple[Command, ...]:
    """The commands for a case: all of some, one of the others."""
    return (*ALWAYS, IN_TURN[turn % len(IN_TURN)])


def areas(file: File, data: bytes) -> dict[str, list[tuple[int, int]]]:
    """The locations of the file's parts."""
    found: dict[str, list[tuple[int, int]]] = {"index": [], "data": [], "stripe footers": []}
    for part in file.stripes:
        info = part.info
        at = info.offset
        for content in part.streams:
            area = "index" if at < info.offset + info.index_length else "data"
            if content:
                found[area].append((at, at + len(content)))
            at += len(content)
        found["stripe footers"].append((at, at + info.footer_length))
    found["tail"] = [(len(data) - 1 - data[-1] - file.postscript.footer_length, len(data))]
    return found


@pytest.mark.parametrize(
    ("whole", "where"),
    [
        # metadata are compressed like data: both ways with each part, and the other codec with one
        *(("uncompressed", where) for where in ("tail", "stripe footers", "index", "data")),
        *(("zlib", where) for where in ("tail", "index", "data")),
        ("snappy", "data"),
    ],
    indirect=["whole"],
)
def test_only_bloom_errors_come_out_of_damaged_bytes(whole: Path, where: str) -> None:
    data = whole.read_bytes()
    file = File.split(data)
    random_ = random.Random(f"{where} {len(file.stripes)}")
    places = areas(file, data)[where]
    cases = (flipped(random_, data, *random_.choice(places), INTERESTING) for _ in range(CASES_EACH))
    turns, refused = survives(whole.parent / "work", cases, commands)
    assert turns == CASES_EACH
    assert refused > CASES_EACH / 20


def fields(message: Any) -> list[tuple[Any, Any]]:
    """(message, field) of every number below a message."""
    found = []
    for field, value in message.ListFields():
        if field.cpp_type == field.CPPTYPE_MESSAGE:
            for child in value if field.is_repeated else [value]:
                found += fields(child)
        elif field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
            found.append((message, field))
    return found


def scramble(random_: random.Random, message: Any) -> None:
    """Change a number, or remove or repeat an element of a list."""
    owner, field = random_.choice(fields(message))
    repeated = field.is_repeated
    top = (1 << 32) - 1 if field.cpp_type == field.CPPTYPE_UINT32 else (1 << 64) - 1
    old = getattr(owner, field.name)
    if repeated:
        values = list(old)
        how = random_.randrange(3)
        if how == 0:
            values.pop(random_.randrange(len(values)))
        elif how == 1:
            values.append(random_.choice(values))
        else:
            values[random_.randrange(len(values))] = random_.choice(LENGTHS) & top
        old[:] = values
        return
    near = [max(old - 1, 0), old + 1, old * 2, old // 2, *LENGTHS, *range(20)]
    setattr(owner, field.name, min(random_.choice(near), top))


def drop_or_double(random_: random.Random, message: Any) -> None:
    """Remove, repeat or move a message in a list."""
    lists = [v for f, v in message.ListFields() if f.is_repeated and f.cpp_type == f.CPPTYPE_MESSAGE]
    chosen = random_.choice(lists)
    items = [type(i).FromString(i.SerializeToString()) for i in chosen]
    how = random_.randrange(3)
    if how == 0:
        items.pop(random_.randrange(len(items)))
    elif how == 1:
        items.insert(random_.randrange(len(items)), random_.choice(items))
    else:
        random_.shuffle(items)
    del chosen[:]
    chosen.extend(items)


@pytest.mark.parametrize("whole", LAYOUTS, indirect=True)
@pytest.mark.parametrize("what", ["footer", "postscript", "stripe footer", "filters"])
def test_only_bloom_errors_come_out_of_metadata_that_lies(whole: Path, what: str) -> None:
    data = whole.read_bytes()
    random_ = random.Random(what)

    def case() -> bytes:
        file = File.split(data)
        stripe = random_.randrange(len(file.stripes))
        part = file.stripes[stripe]
        size = part.info.footer_length
        if what == "filters":
            kind = random_.choice((BLOOM_FILTER, BLOOM_FILTER_UTF8))
            column = random_.choice((1, 2, 3))
            index = file.filters(column, stripe, kind)
            random_.choice((scramble, drop_or_double))(random_, index)
            file.set_filters(column, index, stripe, kind)
            return file.join()
        message = {"footer": file.footer, "postscript": file.postscript, "stripe footer": part.footer}[what]
        ways = [scramble] if what == "postscript" else [scramble, scramble, drop_or_double]
        random_.choice(ways)(random_, message)
        if what == "stripe footer":  # what follows moves
            grown = len(file.packed(part.footer.SerializeToString())) - size
            for info in file.footer.stripes[stripe + 1 :]:
                info.offset += grown
            part.info.footer_length += grown
        if what == "postscript":
            return file.join(lengths=False, tail=False)
        return rejoined(file) if len(part.footer.streams) != len(part.streams) else file.join(lengths=False)

    turns, refused = survives(whole.parent / "work", (case() for _ in range(CASES_EACH)), commands)
    assert turns == CASES_EACH
    assert refused > CASES_EACH / 20


def rejoined(file: File) -> bytes:
    """The file after a change to stripe footers that mixes streams up: the streams' bytes stay unchanged."""
    for part in file.stripes:
        body = b"".join(part.streams)
        part.streams = [body, *[b""] * (len(part.footer.streams) - 1)] if part.footer.streams else []
        part.rest = b"" if part.footer.streams else body
    return file.join(lengths=False)


@pytest.mark.parametrize("whole", ["uncompressed"], indirect=True)
def test_only_bloom_errors_come_out_of_row_indexes_that_lie(whole: Path) -> None:
    from bloomcli.formats.orc import spec

    random_ = random.Random(8)

    def case() -> bytes:
        file = orcfiles.split(whole)
        place = file.place(ROW_INDEX, random_.choice((1, 2, 3)))
        part = file.stripes[0]
        index = spec.message("RowIndex").FromString(file.plain(part.streams[place]))
        random_.choice((scramble, drop_or_double))(random_, index)
        part.streams[place] = file.packed(index.SerializeToString())
        return file.join()

    turns, _ = survives(whole.parent / "work", (case() for _ in range(CASES_EACH // 2)), commands)
    assert turns == CASES_EACH // 2
