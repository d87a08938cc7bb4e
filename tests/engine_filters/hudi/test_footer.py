"""Hudi's filters of record keys: read as Hudi wrote them, proven, and found faulty where they are."""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support.golden import ENGINE_FILTERS
from support.reference import chained_filter

import bloomcli
from bloomcli.cli import run
from bloomcli.errors import CorruptFile, UsageError
from bloomcli.model.file import Presence
from bloomcli.rules import RULES

KEY, TYPE, LOW, HIGH = (
    "org.apache.hudi.bloomfilter",
    "hoodie_bloom_filter_type_code",
    "hoodie_min_record_key",
    "hoodie_max_record_key",
)
COLUMN = "_hoodie_record_key"
SIMPLE, DYNAMIC, IN_ORC = (
    ENGINE_FILTERS / name for name in ("hudi-simple.parquet", "hudi-dynamic.parquet", "hudi-simple.orc")
)
ALL = pytest.mark.parametrize("path", [SIMPLE, DYNAMIC, IN_ORC, ENGINE_FILTERS / "hudi-indexed.parquet"])


def keys_in(path: Path) -> list[bytes]:
    table = orc.ORCFile(path).read() if path.suffix == ".orc" else pq.read_table(path)
    return [key.encode() for key in table[COLUMN].to_pylist()]


def simple(keys: list[bytes], m: int = 4793, k: int = 7) -> bytes:
    return struct.pack(">iibi", -1, k, 1, m) + chained_filter(keys, m, k)


def old(keys: list[bytes], m: int = 4793, k: int = 7) -> bytes:
    return struct.pack(">ii", k, m) + chained_filter(keys, m, k, jenkins=True)


def dynamic(rows: list[list[bytes]], m: int = 959, k: int = 7, nr: int = 100) -> bytes:
    head = struct.pack(">iibiiii", -1, k, 1, m, nr, len(rows[-1]), len(rows))
    return head + b"".join(simple(keys, m, k) for keys in rows)


KEYS = [f"k{number:05}".encode() for number in range(500)]
GROUPS = [KEYS[at : at + 100] for at in range(0, 500, 100)]


def base_file(path: Path, entries: dict[str, Any], keys: list[bytes] = KEYS, *, groups: int = 200) -> Path:
    """A file with record keys and these entries of the footer; bytes are written as base64."""
    texts = {name: b64encode(value) if isinstance(value, bytes) else value for name, value in entries.items()}
    table = pa.table({COLUMN: [key.decode() for key in keys], "n": list(range(len(keys)))})
    pq.write_table(table.replace_schema_metadata(texts), path, row_group_size=groups)
    return path


def sound(data: bytes, **more: Any) -> dict[str, Any]:
    return {KEY: data, LOW: "k00000", HIGH: "k00499", **more}


@ALL
def test_the_bits_are_those_of_the_record_keys_as_hudi_inserted_them(path: Path) -> None:
    (facts,) = bloomcli.inspect(path).engine_filters
    found = bloomcli.dump(path)
    keys = keys_in(path)
    assert facts.rows is not None
    assert facts.bits is not None
    assert facts.hash_functions is not None
    rows = [keys]
    if facts.rows == 3:  # the first row takes the key after the last one that has room, and then each in its turn
        rows = [keys[at * 100 : at * 100 + 100] + keys[301 + at :: 3] for at in range(3)]
        rows[0].append(keys[300])
    assert found.bitset == b"".join(chained_filter(row, facts.bits, facts.hash_functions) for row in rows)
    assert found.engine_filter == facts
    report = bloomcli.validate(path, deep=True)
    assert report.values_checked >= 500
    assert [one.id for one in report.findings] == (["engine-filter-overfilled"] if facts.rows == 3 else [])


def test_inspect_shows_what_the_filter_was_sized_for_and_its_rate_over_all_rows() -> None:
    (facts,) = bloomcli.inspect(DYNAMIC).engine_filters
    assert (facts.kind, facts.column, facts.place) == ("hudi-dynamic-v0", COLUMN, f"footer key {KEY}")
    assert (facts.rows, facts.bits, facts.hash_functions, facts.hash) == (3, 959, 7, "murmur")
    assert (facts.sized_for, facts.values, facts.low, facts.high) == (300, 500, "k00000", "k00499")
    assert facts.fpp == pytest.approx(0.2229, abs=1e-4)
    absent = [f"absent{number}" for number in range(2000)]
    passed = sum(one.presence is Presence.MAYBE for one in bloomcli.probe(DYNAMIC, absent).engine_filters)
    assert passed / 2000 == pytest.approx(facts.fpp, abs=0.03)
    assert facts.offset is not None
    assert facts.length is not None
    data = DYNAMIC.read_bytes()[facts.offset : facts.offset + facts.length]
    assert b64decode(data, validate=True)[:4] == b"\xff\xff\xff\xff"
    (one,) = bloomcli.inspect(SIMPLE).engine_filters
    assert (one.kind, one.sized_for, one.asked_fpp) == ("hudi-simple", 500, 0.01)


def test_the_default_size_is_recognized_as_that_of_60_000_keys_at_1e_9(tmp_path: Path) -> None:
    path = base_file(tmp_path / "f.parquet", sound(simple(KEYS, 2_587_966, 30)))
    (facts,) = bloomcli.inspect(path).engine_filters
    assert (facts.sized_for, facts.asked_fpp) == (60_000, pytest.approx(1e-9))


def test_probe_and_find_rule_out_by_the_filter_what_bounds_do_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    between = "k00100x"
    report = bloomcli.probe(SIMPLE, ["k00100", between], explain=True)
    assert [one.presence for one in report.engine_filters] == [Presence.MAYBE, Presence.ABSENT]
    assert [total.answer for total in report.totals] == [Presence.NO_FILTER, Presence.ABSENT]
    assert [all(one.trail[0].present) for one in report.engine_filters] == [True, False]
    path = tmp_path / "f.parquet"
    path.write_bytes(SIMPLE.read_bytes())
    code = run(["find", str(path), "--column", COLUMN, between, "--format", "json"])
    out = json.loads(capfd.readouterr().out)
    assert (code, out["row_groups_possible"], out["pages_read"], out["rows"]) == (1, 0, 0, 0)
    assert run(["find", str(path), "--column", COLUMN, between, "k00100"]) == 0
    assert "1 row in 1 of 1 file" in "".join(capfd.readouterr())


def test_a_filter_of_the_format_beside_hudi_s_is_one_more(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    bloomcli.add(SIMPLE, [COLUMN], output=path)
    report = bloomcli.probe(path, ["k00100", "k00100x"])
    assert [total.answer for total in report.totals] == [Presence.MAYBE, Presence.ABSENT]
    assert len(report.engine_filters) == 2
    assert bloomcli.dump(path).engine_filter is None
    assert bloomcli.dump(path, engine_filter="hudi-simple").bitset == bloomcli.dump(SIMPLE).bitset
    with pytest.raises(UsageError, match="no filter of the kind 'other'"):
        bloomcli.dump(path, engine_filter="other")


@pytest.mark.parametrize("path", [SIMPLE, DYNAMIC, IN_ORC], ids=lambda path: path.name)
def test_add_fold_and_remove_keep_hudi_s_keys_byte_for_byte(path: Path, tmp_path: Path) -> None:
    before = bloomcli.dump(path, column=COLUMN, engine_filter=bloomcli.inspect(path).engine_filters[0].kind)
    steps = [tmp_path / f"{step}{path.suffix}" for step in ("added", "folded", "removed")]
    bloomcli.add(path, ["id", "n"], output=steps[0], fpp=0.001)
    if path.suffix == ".parquet":
        bloomcli.fold(steps[0], fpp=0.1, output=steps[1])
    bloomcli.remove(steps[0], output=steps[2])
    for step in filter(Path.exists, steps):
        (facts,) = bloomcli.inspect(step).engine_filters
        after = bloomcli.dump(step, column=COLUMN, engine_filter=facts.kind)
        assert (after.header, after.bitset, facts.low, facts.high, facts.problem) == (
            before.header,
            before.bitset,
            "k00000",
            "k00499",
            None,
        )


def test_a_base_file_in_its_table_is_not_changed_in_place(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    path = tmp_path / "f.parquet"
    path.write_bytes(SIMPLE.read_bytes())
    for change in (
        lambda: bloomcli.add(path, ["id"], in_place=True),
        lambda: bloomcli.remove(path, in_place=True),
    ):
        with pytest.raises(UsageError, match="a Hudi table"):
            change()
    assert path.read_bytes() == SIMPLE.read_bytes()


WORDS = ["ключ", "日本語", "Zürich", "é", "😀", "id:ключ,n:42", *(f"ü{number}" for number in range(300))]


@pytest.mark.parametrize("make", [simple, old, lambda keys: dynamic([keys], 4793, 7, 500)])
def test_keys_beyond_ascii_are_looked_up_as_hadoop_hashes_them(make: Any, tmp_path: Path) -> None:
    keys = sorted(word.encode() for word in WORDS)
    low, high = (end(WORDS, key=lambda word: word.encode("utf-16-be")) for end in (min, max))
    entries = {KEY: make(keys), LOW: low, HIGH: high}
    if make not in (simple, old):
        entries[TYPE] = "DYNAMIC_V0"
    report = bloomcli.validate(base_file(tmp_path / "f.parquet", entries, keys), deep=True)
    assert (report.findings, report.values_checked) == ((), len(keys))
    assert not bloomcli.probe(tmp_path / "f.parquet", WORDS, column=COLUMN).absent_everywhere


def cut(data: bytes, *, to: int) -> bytes:
    return data[:to]


BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "no bits set": ("engine-filter-misses", sound(simple([]))),
    "one key missing": ("engine-filter-misses", sound(simple([key for key in KEYS if key != b"k00250"], 50_000, 7))),
    "a key below the bounds": ("engine-filter-bounds", {KEY: simple(KEYS), LOW: "k00001", HIGH: "k00499"}),
    "bounds without a filter": ("engine-filter-missing", {LOW: "k00000", HIGH: "k00499"}),
    "cut in the bits": ("engine-filter-damaged", sound(cut(simple(KEYS), to=300))),
    "cut in the header": ("engine-filter-damaged", sound(cut(simple(KEYS), to=7))),
    "cut in the last row": ("engine-filter-damaged", sound(cut(dynamic(GROUPS), to=600), **{TYPE: "DYNAMIC_V0"})),
    "empty": ("engine-filter-damaged", sound(b"")),
    "no base64": ("engine-filter-damaged", sound(b"", **{KEY: "%%%"})),
    "huge m": ("engine-filter-damaged", sound(struct.pack(">iibi", -1, 7, 1, 2**31 - 1) + bytes(99))),
    "m below 1": ("engine-filter-damaged", sound(struct.pack(">iibi", -1, 7, 1, -8) + bytes(99))),
    "huge k": ("engine-filter-damaged", sound(struct.pack(">iibi", -1, 2**31 - 1, 1, 8) + b"\xff")),
    "huge k of old": ("engine-filter-damaged", sound(struct.pack(">ii", 2**31 - 1, 8) + b"\xff")),
    "another version": ("engine-filter-damaged", sound(struct.pack(">iibi", -2, 7, 1, 8) + b"\xff")),
    "another hash": ("engine-filter-damaged", sound(struct.pack(">iibi", -1, 7, 9, 8) + b"\xff")),
    "huge number of rows": (
        "engine-filter-damaged",
        sound(struct.pack(">iibiiii", -1, 7, 1, 8, 1, 1, 2**31 - 1) + bytes(99), **{TYPE: "DYNAMIC_V0"}),
    ),
    "rows of several sizes": (
        "engine-filter-damaged",
        sound(dynamic(GROUPS[:1])[:-133] + simple(GROUPS[0], 961), **{TYPE: "DYNAMIC_V0"}),
    ),
    "a dynamic filter without its name": ("engine-filter-label", sound(dynamic(GROUPS))),
    "a simple filter called dynamic": ("engine-filter-label", sound(simple(KEYS), **{TYPE: "DYNAMIC_V0"})),
    "an unknown type": ("engine-filter-label", sound(simple(KEYS), **{TYPE: "CUCKOO"})),
    "500 keys in a filter for 100": ("engine-filter-overfilled", sound(simple(KEYS, 959))),
    "for 60,000 keys": ("engine-filter-oversized", sound(simple(KEYS, 2_587_966, 30))),
}


@pytest.mark.parametrize("case", BROKEN)
def test_each_fault_breaks_its_rule_alone_and_a_filter_with_a_fault_of_its_bits_rules_nothing_out(
    case: str, tmp_path: Path
) -> None:
    rule, entries = BROKEN[case]
    path = base_file(tmp_path / "f.parquet", entries)
    (found,) = bloomcli.validate(path, deep=True).findings
    assert (found.id, found.column, found.severity) == (rule, COLUMN, RULES[rule].severity)
    assert found.hint
    facts = bloomcli.inspect(path).engine_filters
    report = bloomcli.probe(path, ["k00250", "k00250x"], column=COLUMN)
    unusable = {"engine-filter-damaged", "engine-filter-label"}
    if rule in unusable or case == "no bits set":
        assert facts[0].problem
        assert {one.presence for one in report.engine_filters} == {Presence.UNKNOWN}
        assert report.totals[0].answer is Presence.NO_FILTER
    if rule in unusable and "type" not in case:
        with pytest.raises(CorruptFile):
            bloomcli.dump(path, column=COLUMN, engine_filter=facts[0].kind)


@pytest.mark.parametrize(
    "entries",
    [
        sound(simple(KEYS)),
        sound(dynamic(GROUPS), **{TYPE: "DYNAMIC_V0"}),
        sound(old(KEYS)),
        {"com.uber.hoodie.bloomfilter": old(KEYS)},
        {KEY: simple(KEYS)},  # without bounds, Hudi looks into the file
        {"other": "1"},
    ],
)
def test_their_neighbours_are_sound(entries: dict[str, Any], tmp_path: Path) -> None:
    assert bloomcli.validate(base_file(tmp_path / "f.parquet", entries), deep=True).findings == ()


@pytest.mark.parametrize(("m", "k"), [(1, 1024), (13, 7)])
def test_bits_behind_the_last_one_of_m_count_for_nothing(m: int, k: int, tmp_path: Path) -> None:
    data = struct.pack(">iibi", -1, k, 1, m) + b"\xff" * -(-m // 8)
    (facts,) = bloomcli.inspect(base_file(tmp_path / "f.parquet", sound(data))).engine_filters
    assert (facts.fill, facts.fpp, facts.problem) == (1, 1, None)


def test_a_file_with_the_name_of_a_base_file_and_no_keys_of_hudi_s_has_lost_them(tmp_path: Path) -> None:
    path = base_file(tmp_path / "c8648cc1-0ef3_0-3-3_20261125223726128.parquet", {})
    (found,) = bloomcli.validate(path).findings
    assert found.id == "engine-filter-missing"


def test_a_column_of_numbers_has_no_record_keys(tmp_path: Path) -> None:
    table = pa.table({COLUMN: list(range(500))}).replace_schema_metadata({KEY: b64encode(simple(KEYS))})
    path = tmp_path / "f.parquet"
    pq.write_table(table, path)
    (found,) = bloomcli.validate(path, deep=True).findings
    assert (found.id, "INT64" in found.message) == ("engine-filter-damaged", True)
    assert [one.presence for one in bloomcli.probe(path, ["1"], column=COLUMN).engine_filters] == [Presence.UNKNOWN]
    assert run(["find", str(path), "--column", COLUMN, "1"]) == 0


def test_a_file_without_the_column_of_keys_still_shows_its_filter(tmp_path: Path) -> None:
    table = pa.table({"id": [1]}).replace_schema_metadata({KEY: b64encode(simple(KEYS))})
    pq.write_table(table, tmp_path / "f.parquet")
    assert bloomcli.inspect(tmp_path / "f.parquet").engine_filters[0].problem is None
    assert [one.id for one in bloomcli.validate(tmp_path / "f.parquet", deep=True).findings] == ["filter-not-checked"]


def test_long_keys_and_control_characters_are_cut_and_escaped_in_text(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    odd = "\x1b[31m" + "k" * 5000
    path = base_file(tmp_path / "f.parquet", {KEY: simple(KEYS), LOW: odd, HIGH: odd})
    assert run(["inspect", str(path)]) == 0
    run(["validate", "--deep", str(path)])
    out = capfd.readouterr().out
    assert "\x1b[31m" not in out
    assert max(map(len, out.splitlines())) < 1000


def test_a_missing_key_is_named_and_only_the_row_groups_of_a_sample_are_read(tmp_path: Path) -> None:
    _, entries = BROKEN["one key missing"]
    path = base_file(tmp_path / "f.parquet", entries)
    (found,) = bloomcli.validate(path, deep=True).findings
    assert found.missing == ("k00250",)
    assert bloomcli.validate(path).findings == ()
    assert bloomcli.validate(path, deep=True, columns=["n"]).findings == ()
    read = bloomcli.validate(path, deep=True, sample_row_groups="1")
    assert read.values_checked in {100, 200}


@pytest.mark.slow
def test_advise_says_what_a_right_number_of_keys_saves(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        base_file(tmp_path / f"{name}.parquet", sound(simple(KEYS, 2_587_966, 30)))
    (found,) = bloomcli.advise(tmp_path).engine_filters
    assert (found.files, found.values, found.setting) == (2, 500, "hoodie.index.bloom.num_entries=500")
    assert found.bytes == 2 * (bloomcli.inspect(tmp_path / "a.parquet").engine_filters[0].length or 0)
    assert found.bytes_right == pytest.approx(found.bytes * 500 / 60_000, rel=0.01)
    assert run(["advise", str(tmp_path)]) == 0
    assert "hoodie.index.bloom.num_entries=500" in capfd.readouterr().out
    assert bloomcli.advise(SIMPLE).engine_filters == ()


def test_the_texts_of_inspect_and_probe_name_the_filter(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", str(DYNAMIC)]) == 0
    out = capfd.readouterr().out
    assert "none, besides 1 that an engine keeps" in out
    assert "hudi-dynamic-v0: footer key org.apache.hudi.bloomfilter; values k00000 to k00499" in out
    assert run(["probe", str(DYNAMIC), "--explain", "k00042"]) == 0
    out = capfd.readouterr().out
    assert "hudi-dynamic-v0, of the whole file: _hoodie_record_key = k00042: maybe" in out
    assert run(["dump", str(DYNAMIC), "--format", "csv"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 46
