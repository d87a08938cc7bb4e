"""The copies of filters in a Hudi table's metadata are compared with the footers."""

from __future__ import annotations

import gzip
import os
import struct
import sys
import tracemalloc
from base64 import b64encode
from hashlib import md5
from pathlib import Path

import pytest
from support.golden import ENGINE_FILTERS

import bloomcli
from bloomcli.engine_filters.hudi import copies
from bloomcli.engine_filters.hudi.copies import copy_of
from bloomcli.errors import CorruptFile

NAME = "304bd441-6a05-411c-b2cc-b1fe2524721a-0_0-31-39_20261125223821770.parquet"
LOG = ".bloom-filters-0003-0_20261125223821770.log.1_0-36-50"
DATA = (ENGINE_FILTERS / "hudi-bloom-filters.log").read_bytes()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table as Hudi wrote it, with one base file."""
    folder = tmp_path / ".hoodie" / "metadata" / "bloom_filters"
    folder.mkdir(parents=True)
    (folder / LOG).write_bytes(DATA)
    (tmp_path / NAME).write_bytes((ENGINE_FILTERS / "hudi-indexed.parquet").read_bytes())
    return tmp_path


def findings(table: Path) -> list[tuple[str, str]]:
    return [(one.id, one.message) for one in bloomcli.validate(table / NAME, deep=True).findings]


def packed(number: int) -> bytes:
    number <<= 1
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def record(name: str, kind: str, text: bytes, *, deleted: bool = False) -> tuple[bytes, bytes]:
    """A row and its value."""
    parts = [b"\0" * 5, b"\0", packed(4), b"\0", packed(1)]
    for part in (kind.encode(), b"1", text):
        parts += [packed(len(part)), part]
    row = b"FXThHwelITM=" + b64encode(md5(name.encode()).digest())
    return row, b"".join(parts) + bytes([deleted])


def hfile(*cells: tuple[bytes, bytes]) -> bytes:
    """An HFile of one block, and the start of its trailer."""
    data = b""
    for row, value in cells:
        key = struct.pack(">H", len(row)) + row + b"\0" + b"\x7f" + b"\xff" * 7 + b"\4"
        data += struct.pack(">ii", len(key), len(value)) + key + value + b"\0"
    body = gzip.compress(data)
    head = struct.pack(">8siiqbii", b"DATABLK*", len(body), len(data), -1, 0, 16384, 33 + len(body))
    return head + body + b'TRABLK"$' + bytes(100)


def log(instant: str, content: bytes, *, kind: int = 4, target: str = "") -> bytes:
    """A log file of one block."""
    texts = {0: instant, **({1: target} if target else {})}
    place = b"".join(struct.pack(">ii", key, len(text)) + text.encode() for key, text in texts.items())
    body = struct.pack(">iii", 1, kind, len(texts)) + place + struct.pack(">q", len(content)) + content + bytes(4)
    return b"#HUDI#" + struct.pack(">q", len(body) + 8) + body + struct.pack(">q", len(body) + 14)


def put(table: Path, name: str, data: bytes) -> None:
    (table / ".hoodie" / "metadata" / "bloom_filters" / name).write_bytes(data)
    copies._copies.cache_clear()


def test_hudi_s_copy_is_the_footer_s_filter(table: Path) -> None:
    found = copy_of(os.fspath(table / NAME))
    assert found is not None
    assert found.type == "DYNAMIC_V0"
    assert findings(table) == []
    assert copy_of(os.fspath(table / "other.parquet")) is None


def test_another_filter_and_another_type_are_reported(table: Path) -> None:
    facts = bloomcli.inspect(table / NAME).engine_filters[0]
    assert facts.offset is not None
    assert facts.length is not None
    text = (table / NAME).read_bytes()[facts.offset : facts.offset + facts.length]
    later = "bloom-filters-0003-0_0-1-1_20261125223821771.hfile"
    put(table, later, hfile(record("x.parquet", "SIMPLE", b""), record(NAME, "DYNAMIC_V0", text)))
    assert findings(table) == []
    put(table, later, hfile(record(NAME, "DYNAMIC_V0", text[:-4] + b"AAA=")))
    ((rule, message),) = findings(table)
    assert (rule, later in message) == ("engine-filter-copy", True)
    put(table, later, hfile(record(NAME, "SIMPLE", text)))
    assert [(rule, "it as hudi-simple" in message) for rule, message in findings(table)] == [
        ("engine-filter-copy", True)
    ]
    put(table, later, hfile(record(NAME, "SIMPLE", b"", deleted=True)))
    assert findings(table) == []


def test_a_block_that_claims_too_few_bytes_is_not_unpacked_beyond_them(table: Path) -> None:
    body = gzip.compress(bytes(64 << 20))
    findings(table)  # imports, which no block claims
    for claimed in (0, 100):
        head = struct.pack(">8siiqbii", b"DATABLK*", len(body), claimed, -1, 0, 16384, 33 + len(body))
        put(table, "bloom-filters-0003-0_0-1-1_20261125223821771.hfile", head + body)
        tracemalloc.start()
        try:
            ((rule, message),) = findings(table)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert rule == "engine-filter-copy"
        assert f"doesn't unpack to {claimed} bytes" in message
        assert peak < 16 << 20


def test_what_a_commit_wrote_that_has_not_ended_does_not_count(table: Path) -> None:
    later = ".bloom-filters-0003-0_20261125223821771.log.1_0-1-1"
    put(table, later, log("20261125223821771", hfile(record(NAME, "SIMPLE", b""))))
    assert [rule for rule, _ in findings(table)] == ["engine-filter-copy"]
    timeline = table / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    (timeline / "20261125223821771.deltacommit.inflight").touch()
    assert findings(table) == []
    (timeline / "20261125223821771_20261125223821779.deltacommit").touch()
    assert [rule for rule, _ in findings(table)] == ["engine-filter-copy"]


def test_a_block_that_its_writer_did_not_finish_and_a_commit_that_was_rolled_back_do_not_count(table: Path) -> None:
    instant = "20261125223821771"
    later = f".bloom-filters-0003-0_{instant}.log.1_0-1-1"
    wrong = log(instant, hfile(record(NAME, "SIMPLE", b"")))
    rollback = log("20261125223821772", b"", kind=0, target=instant)
    for data, rules in (
        (wrong, ["engine-filter-copy"]),
        (wrong[:-1], []),
        (wrong[:200] + DATA, []),
        (wrong[:-1] + wrong, ["engine-filter-copy"]),
        (wrong + rollback, []),
        (rollback[:-3] + wrong, ["engine-filter-copy"]),
    ):
        put(table, later, data)
        assert [rule for rule, _ in findings(table)] == rules


def test_copies_that_cannot_be_read_are_a_note(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_READ_MAX", 100)
    copies._copies.cache_clear()
    assert [(rule, "take more than 100 bytes" in text) for rule, text in findings(table)] == [
        ("filter-not-checked", True)
    ]
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "fastavro", None)
    assert [rule for rule, _ in findings(table)] == ["filter-not-checked"]


@pytest.mark.slow
def test_a_damaged_copy_is_a_finding_and_never_another_error(table: Path) -> None:
    for at in range(6, len(DATA), 211):
        put(table, LOG, DATA[:at])
        assert {rule for rule, _ in findings(table)} <= {"engine-filter-copy"}
    start = DATA.index(b"DATABLK*")
    for at in (*range(6, 40), *range(8948, start + 60)):
        for byte in (0x00, 0x7F, 0xFF):
            put(table, LOG, DATA[:at] + bytes([byte]) + DATA[at + 1 :])
            try:
                copy_of(os.fspath(table / NAME))
            except CorruptFile as error:
                assert error.path is not None
                assert error.offset is not None


def test_a_table_without_copies_has_nothing_to_compare(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / NAME).write_bytes((ENGINE_FILTERS / "hudi-indexed.parquet").read_bytes())
    assert findings(tmp_path) == []
