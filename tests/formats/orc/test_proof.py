"""`validate` finds statistics by which readers lose rows, and row index positions that aren't where values begin.

Sound files of ORC Java and ORC C++ are patched in one place each.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyorc
import pytest
from pyorc.predicates import PredicateColumn
from support import orcfiles
from support import orcstatistics as edits
from support.orcfiles import File
from support.orcstatistics import FILE, GROUP, LEVELS, STRIPE, put

import bloomcli
from bloomcli.formats.orc.footer import Footer
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding
from bloomcli.storage.registry import open_source

FIXTURES: Final = Path(__file__).parents[3] / "fixtures"
JAVA: Final = FIXTURES / "orc" / "java_types.orc"
"""By Spark: stripes of 1024 and 36 rows, row groups of 1000."""
CPP: Final = FIXTURES / "orc" / "cpp_types.orc"
"""By pyarrow: a stripe of 230 rows, row groups of 100."""
PYORC: Final = FIXTURES / "orc" / "pyorc_types.orc"
BOUNDS, COUNTS, POSITIONS = "statistics-bounds", "statistics-counts", "row-index-positions"
PROVEN: Final = {BOUNDS, COUNTS, POSITIONS}

Where = tuple[int | None, int | None]
"""Stripe, row group."""
PLACES: Final[dict[str, Where]] = {GROUP: (0, 0), STRIPE: (0, None), FILE: (None, None)}


def check(path: Path, column: str = "*", *, deep: bool = True) -> list[Finding]:
    """The findings about statistics and row indexes."""
    found = bloomcli.validate(path, columns=[column], deep=deep).findings
    return [f for f in found if f.id in PROVEN]


def every(*changes: Callable[[Any], None]) -> Callable[[Any], None]:
    """All of some edits."""

    def change(statistics: Any) -> None:
        for each in changes:
            each(statistics)

    return change


def trues(count: int) -> Callable[[Any], None]:
    """An edit of the number of true values."""

    def change(statistics: Any) -> None:
        statistics.bucket_statistics.count[0] = count

    return change


class Wrong(NamedTuple):
    """An edit of statistics that makes readers lose rows."""

    column: str
    change: Callable[[Any], None]
    rule: str = BOUNDS
    levels: Collection[str] = LEVELS
    severity: Severity = Severity.ERROR


NOTE: Final = Severity.NOTE
ONE: Final = (GROUP,)
"""Where orc-core loses rows, which skips no stripes and no files."""
OF_JAVA: Final = {
    "tiny minimum": Wrong("tiny", put("int_statistics.minimum", -127)),
    "small maximum": Wrong("small", put("int_statistics.maximum", -8000)),
    "bigint maximum": Wrong("big", put("int_statistics.maximum", 998_000_006_988_993)),
    "float minimum": Wrong("real", put("double_statistics.minimum", -999.0)),
    "double maximum": Wrong("wide", put("double_statistics.maximum", 142.5)),
    "double NaN as a minimum": Wrong("wide", put("double_statistics.minimum", math.nan), levels=ONE),
    "no int minimum": Wrong("whole", put("int_statistics.minimum", None), levels=ONE),
    "no date maximum": Wrong("day", put("date_statistics.maximum", None), levels=ONE),
    "no double minimum": Wrong("wide", put("double_statistics.minimum", None), levels=ONE),
    "no decimal minimum": Wrong("cents", put("decimal_statistics.minimum", None), levels=ONE),
    "no text minimum": Wrong("label", put("string_statistics.minimum", None), levels=ONE),
    "no timestamp minimum": Wrong("moment", put("timestamp_statistics.minimum_utc", None), levels=ONE),
    "short decimal minimum": Wrong("cents", put("decimal_statistics.minimum", "-249.74")),
    "decimal with too many digits": Wrong("cents", put("decimal_statistics.maximum", "249.4999")),
    "long decimal maximum": Wrong("huge", put("decimal_statistics.maximum", "998000000007000000000000000.12345997")),
    "decimal that is none": Wrong("money", put("decimal_statistics.minimum", "many")),
    "text minimum": Wrong("text", put("string_statistics.minimum", "!")),
    "dictionary maximum": Wrong("label", put("string_statistics.maximum", "reb")),
    "lower bound": Wrong(
        "label", every(put("string_statistics.minimum", None), put("string_statistics.lower_bound", "c"))
    ),
    "upper bound": Wrong(
        "label", every(put("string_statistics.maximum", None), put("string_statistics.upper_bound", "re"))
    ),
    "date minimum": Wrong("day", put("date_statistics.minimum", -864)),
    "timestamp minimum": Wrong("moment", put("timestamp_statistics.minimum_utc", -60_522_786_419)),
    "timestamp nanoseconds": Wrong("moment", put("timestamp_statistics.minimum_nanos", 100_002), levels=ONE),
    "timestamp maximum": Wrong("moment", put("timestamp_statistics.maximum_utc", 25_851_875_912)),
    "no true": Wrong("flag", trues(0)),
    "all true": Wrong("flag", trues(2000)),
    "field of a struct": Wrong("person.age", put("int_statistics.minimum", 2)),
    "element of a list": Wrong("tags._elem", put("string_statistics.maximum", "tag 998")),
    "field below two lists": Wrong("deep._elem.x._value._elem", put("double_statistics.minimum", 0.75)),
    "no values": Wrong("whole", put("number_of_values", 0), COUNTS),
    "no values and no nulls": Wrong(
        "whole", every(put("number_of_values", 0), put("has_null", False)), COUNTS, levels=ONE
    ),
    "stripe without values and nulls": Wrong(
        "whole", every(put("number_of_values", 0), put("has_null", False)), COUNTS, (STRIPE, FILE), NOTE
    ),
    "other count": Wrong("whole", put("number_of_values", 17), COUNTS, severity=NOTE),
    "no nulls": Wrong("whole", put("has_null", False), COUNTS),
    "no nulls in a binary": Wrong("blob", put("has_null", False), COUNTS),
    "no nulls in a list": Wrong("tags", put("has_null", False), COUNTS),
}
OF_CPP: Final = {
    "bigint minimum": Wrong("big", put("int_statistics.minimum", 1)),
    "text maximum": Wrong("text", put("string_statistics.maximum", "Wert 99 ")),
    "timestamp maximum": Wrong("moment", put("timestamp_statistics.maximum_nanos", 297_000), levels=(GROUP,)),
    "instant minimum": Wrong("instant", put("timestamp_statistics.minimum_utc", 1_684_800_001)),
    "map key minimum": Wrong("lookup._key", put("string_statistics.minimum", "key 1")),
    "no values": Wrong("pair.left", put("number_of_values", 0), COUNTS),
    "no nulls": Wrong("items._elem", put("has_null", False), COUNTS),
}
CASES: Final = [
    *((JAVA, wrong) for wrong in OF_JAVA.values()),
    *((CPP, wrong) for wrong in OF_CPP.values()),
    (PYORC, Wrong("code", put("string_statistics.minimum", "c1"))),
    (PYORC, Wrong("short", put("string_statistics.maximum", "ü5"))),
]
NAMES: Final = [*(f"java, {n}" for n in OF_JAVA), *(f"cpp, {n}" for n in OF_CPP), "pyorc, char", "pyorc, varchar"]


def number(path: Path, column: str) -> int:
    """A column's id."""
    with open_source(path) as source:
        return next(t.id for t in Footer(source).types if t.path == column)


def patched(path: Path, target: Path, column: str, change: Callable[[Any], object], *levels: str) -> Path:
    """The file with other statistics of a column in its first row group, its first stripe or the file."""
    index = number(path, column)
    return orcfiles.edited(path, target, lambda file: edits.edit(file, index, change, levels=levels))


@pytest.mark.parametrize(("path", "wrong"), CASES, ids=NAMES)
def test_wrong_statistics_are_found_in_the_row_group_the_stripe_and_the_file(
    tmp_path: Path, path: Path, wrong: Wrong
) -> None:
    for level in wrong.levels:
        file = patched(path, tmp_path / level, wrong.column, wrong.change, level)
        found = [(f.id, f.severity, f.stripe, f.row_group, f.column) for f in check(file, wrong.column)]
        assert found == [(wrong.rule, wrong.severity, *PLACES[level], wrong.column)], level


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("whole", put("int_statistics.minimum", -(1 << 40))),
        ("wide", put("double_statistics.maximum", math.inf)),
        ("cents", put("decimal_statistics.maximum", "1000.001")),
        ("label", every(put("string_statistics.minimum", None), put("string_statistics.lower_bound", "blu"))),
        ("label", every(put("string_statistics.maximum", None), put("string_statistics.upper_bound", "ree"))),
        ("moment", put("timestamp_statistics.minimum_nanos", None)),
        ("moment", put("timestamp_statistics.maximum_nanos", None)),
        ("flag", trues(1)),
        ("person.name", put("has_null", True)),
        ("whole", put("int_statistics", None)),
        ("wide", put("double_statistics.maximum", math.nan)),
        ("wide", every(put("double_statistics.minimum", 5.0), put("double_statistics.sum", math.nan))),
        ("label", put("string_statistics.maximum", None)),
        ("money", put("decimal_statistics.maximum", None)),
    ],
)
def test_bounds_that_are_too_wide_or_absent_are_no_fault(
    tmp_path: Path, column: str, change: Callable[[Any], object]
) -> None:
    file = patched(JAVA, tmp_path / "f", column, change, *LEVELS)
    assert check(file, column) == check(file, column, deep=False) == []


SOUND: Final = sorted((FIXTURES / "orc").glob("*.orc"))
UNCOUNTED: Final = "java_no_index.orc"
"""ORC Java counts no values without a row index."""


@pytest.mark.parametrize("path", SOUND, ids=[path.name for path in SOUND])
def test_files_of_all_writers_are_sound(path: Path) -> None:
    found = [f for f in check(path) if "aren't compared" not in f.message]
    assert {(f.id, f.severity) for f in found} == ({(COUNTS, NOTE)} if path.name == UNCOUNTED else set())
    assert check(path, deep=False) == []


def add(place: int, value: int) -> Callable[[list[int]], None]:
    """A change of one number of a position."""

    def change(positions: list[int]) -> None:
        positions[place] += value

    return change


def swapped(positions: list[int]) -> None:
    """Positions whose first two streams are exchanged."""
    positions[:] = [*positions[4:], *positions[:4]]


MOVED: Final = {
    "value in a run": ("id", add(-1, 1)),
    "bytes of a chunk": ("id", add(1, 1)),
    "chunk": ("id", add(0, 1)),
    "behind the end": ("id", add(0, 1 << 40)),
    "bit of PRESENT": ("code", add(3, 1)),
    "too many bits": ("code", add(3, 8)),
    "byte of PRESENT": ("code", add(2, 1)),
    "bytes of text": ("note", add(1, -1)),
    "lengths": ("note", add(-1, -1)),
    "too few numbers": ("id", list[int].pop),
    "none": ("id", list[int].clear),
    "order of streams": ("code", swapped),
}


@pytest.mark.parametrize(("column", "change"), MOVED.values(), ids=MOVED.keys())
def test_positions_that_are_not_where_a_row_group_begins_are_found(
    tmp_path: Path, column: str, change: Callable[[list[int]], object]
) -> None:
    file = moved(PYORC, tmp_path / "f", column, change)
    found = {(f.id, f.severity, f.stripe, f.row_group, f.column) for f in check(file, column)}
    assert found == {(POSITIONS, Severity.ERROR, 0, 1, column)}


def moved(path: Path, target: Path, column: str, change: Callable[[list[int]], object]) -> Path:
    """The file with another position of the second row group."""
    index = number(path, column)

    def edit(file: File) -> None:
        entries = edits.row_index(file, index)
        positions = list(entries.entry[1].positions)
        change(positions)
        entries.entry[1].positions[:] = positions
        edits.set_row_index(file, index, entries)

    return orcfiles.edited(path, target, edit)


def test_positions_of_a_struct_above_a_column_are_found_once(tmp_path: Path) -> None:
    file = moved(JAVA, tmp_path / "f", "person", add(2, 1))
    (found,) = bloomcli.validate(file, columns=["person.name", "person.age"], deep=True, threads=2).findings
    assert (found.id, found.column, found.row_group) == (POSITIONS, "person", 1)


def test_entries_for_other_row_groups_are_found(tmp_path: Path) -> None:
    def fewer(file: File) -> None:
        index = edits.row_index(file, 1)
        del index.entry[-1]
        edits.set_row_index(file, 1, index)

    file = orcfiles.edited(PYORC, tmp_path / "f", fewer)
    for deep in (False, True):
        (found,) = check(file, "id", deep=deep)
        assert (found.id, found.severity, found.row_group) == (POSITIONS, Severity.ERROR, None)
        assert "2 entries for 3 row groups" in found.message


def test_a_row_index_that_is_no_message_is_found(tmp_path: Path) -> None:
    file = orcfiles.edited(PYORC, tmp_path / "f", lambda file: edits.set_row_index(file, 1, b"\xff" * 20))
    (found,) = check(file, "id")
    assert (found.id, found.row_group) == (POSITIONS, None)


@pytest.mark.parametrize(("above", "deep"), [("(root)", False), ("person", True), ("tags", True)])
def test_a_row_index_above_a_column_that_is_no_message_is_found_once(tmp_path: Path, above: str, deep: bool) -> None:
    """Readers that skip rows by the column end with an error (tests/interop/test_orc_statistics.py)."""
    columns = ["tags._elem"] if above == "tags" else ["person.name", "person.age"]
    index = 0 if above == "(root)" else number(JAVA, above)
    file = orcfiles.edited(
        JAVA, tmp_path / "f", lambda file: edits.set_row_index(file, index, b"\xff" * 20, stripe=1)
    )
    (found,) = bloomcli.validate(file, columns=columns, deep=deep).findings
    assert (found.id, found.severity, found.column, found.stripe) == (POSITIONS, Severity.ERROR, above, 1)
    assert found.offset == File.split(file.read_bytes()).footer.stripes[1].offset or above != "(root)"
    assert bloomcli.validate(JAVA, columns=columns, deep=deep).findings == ()


def overwritten(file: File) -> bytes:
    """The metadata section with other bytes in its place."""
    return b"\xff" * len(file.metadata)


def cut(file: File) -> bytes:
    """The section without the message's last bytes."""
    return file.packed(file.plain(file.metadata)[:-7])


def flipped(file: File) -> bytes:
    """The section with one damaged byte, which can't be decompressed."""
    return file.metadata[:10] + bytes([file.metadata[10] ^ 0xFF]) + file.metadata[11:]


def damaged(path: Path, target: Path, change: Callable[[File], bytes]) -> Path:
    """The file with another metadata section."""

    def edit(file: File) -> None:
        file.metadata = change(file)
        file.postscript.metadata_length = len(file.metadata)

    return orcfiles.edited(path, target, edit)


@pytest.mark.parametrize(
    ("change", "options"),
    [(overwritten, {}), (cut, {"deep": True}), (flipped, {"deep": True, "sample_row_groups": "1"})],
)
def test_stripes_statistics_that_can_not_be_read_are_found_once(
    tmp_path: Path, change: Callable[[File], bytes], options: dict[str, Any]
) -> None:
    """Readers that skip stripes end with an error (tests/interop/test_orc_statistics.py)."""
    file = damaged(JAVA, tmp_path / "f", change)
    (found,) = bloomcli.validate(file, **options).findings
    assert (found.id, found.severity, found.column, found.stripe) == (BOUNDS, Severity.ERROR, None, None)
    assert found.message.startswith("the stripes' statistics (metadata) can't be read: ")
    assert found.offset == file.read_bytes().index(File.split(file.read_bytes()).metadata)
    assert found.hint is not None
    assert bloomcli.validate(JAVA, **options).findings == ()


def test_stripes_statistics_that_are_too_large_to_be_read_are_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bloomcli.limits.FOOTER_MAX_BYTES", 1 << 10)
    file = damaged(CPP, tmp_path / "f", lambda file: file.packed(file.plain(file.metadata) + b"\x12\x00" * 4096))
    (found,) = check(file)
    assert (found.id, found.severity) == (BOUNDS, NOTE)


def test_no_other_command_uses_the_stripes_statistics(tmp_path: Path) -> None:
    same = damaged(JAVA, tmp_path / "same", lambda file: file.metadata)
    reports: list[Any] = []
    for path in (same, damaged(JAVA, tmp_path / "f", overwritten)):
        rows = [b.column("row").to_pylist() for b in bloomcli.find(path, ["-900000000", "5"], column="whole")]
        probed, listed = bloomcli.probe(path, ["-900000000", "5"], column="whole"), bloomcli.inspect(path)
        (advised,) = bloomcli.advise(path, columns=["whole"]).columns
        reports.append((rows, probed.totals, listed.filters, advised.reason, advised.overlap, advised.saved_bytes))
    assert reports[0] == reports[1]
    assert reports[0][0] == [[0]]


def many(path: Path, compression: pyorc.CompressionKind, runs: int, share: float) -> Path:
    """Values in runs of all kinds, of `runs` lengths, in small chunks, with nulls, in row groups of 1000. `share` of
    different texts up to which there is a dictionary."""
    with (
        path.open("wb") as out,
        pyorc.Writer(
            out,
            "struct<n:bigint,t:string,b:boolean,m:timestamp,d:decimal(38,4),k:tinyint>",
            compression=compression,
            compression_block_size=1 << 10,
            memory_block_size=1 << 10,
            row_index_stride=1000,
            dict_key_size_threshold=share,
        ) as writer,
    ):
        for i in range(6_500):
            n = i * 7919 % 10_007 if i // runs % 3 else i // 400
            moment = dt.datetime(2000, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=n)
            row = (n, f"t{n}", n % 3 == 0, moment, Decimal(n * 10**20), n % 100)
            writer.write(tuple(None if i // runs % 5 == 4 and (i + at) % 3 else v for at, v in enumerate(row)))
    return path


@pytest.mark.parametrize(
    ("compression", "runs", "share"),
    [
        (pyorc.CompressionKind.NONE, 1, 1.0),
        (pyorc.CompressionKind.NONE, 3000, 0.0),
        (pyorc.CompressionKind.ZLIB, 97, 0.0),
        (pyorc.CompressionKind.ZLIB, 97, 1.0),
    ],
)
def test_positions_within_runs_and_chunks_of_all_lengths_are_right(
    tmp_path: Path, compression: pyorc.CompressionKind, runs: int, share: float
) -> None:
    assert check(many(tmp_path / "f", compression, runs, share)) == []


def test_timestamps_before_1970_of_arrow_are_above_their_minimum(tmp_path: Path) -> None:
    """Arrow writes -1.3 milliseconds as -1 and -0.3, and ORC C++ looks -2 and 0.7 up."""
    values = [dt.datetime(1969, 12, 31, 23, 59, 59, 998_700), dt.datetime(1970, 1, 2)]
    path = orcfiles.write(tmp_path / "f", {"c": pa.array(values, pa.timestamp("us"))})
    assert [(f.id, f.stripe, f.row_group) for f in check(path)] == [(BOUNDS, *PLACES[level]) for level in LEVELS]
    with path.open("rb") as opened:
        found = PredicateColumn(pyorc.TypeKind.TIMESTAMP, "c") == values[0].replace(tzinfo=dt.UTC)
        assert list(pyorc.Reader(opened, predicate=found)) == []


@pytest.mark.parametrize("kind", ["STRING", "CHAR"])
def test_texts_are_compared_by_their_bytes(tmp_path: Path, kind: str) -> None:
    texts = ["z", "\U00010000", "\uffff", "a\tb", "a", "ab ", ""]
    schema = "struct<c:string>" if kind == "STRING" else "struct<c:char(4)>"
    with (tmp_path / "f").open("wb") as out, pyorc.Writer(out, schema) as writer:
        writer.writerows([(text,) for text in texts])
    assert check(tmp_path / "f") == []


def test_a_row_with_nan_beside_a_sum_that_is_none_is_found(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "f", {"c": pa.array([1.0, math.nan, 2.0])})
    assert check(path) == []
    patched(path, tmp_path / "g", "c", put("double_statistics.sum", 3.0), GROUP)
    (found,) = check(tmp_path / "g")
    assert (found.id, found.row_group) == (BOUNDS, 0)


def test_columns_without_filters_are_proven_if_they_are_named(tmp_path: Path) -> None:
    table = pa.table({"a": range(40), "b": range(40)})
    bare = orcfiles.write(tmp_path / "bare", table, stride=10)
    both = orcfiles.edited(
        bare, tmp_path / "both", lambda file: [edits.edit(file, c, put("int_statistics.minimum", 5)) for c in (1, 2)]
    )
    bloomcli.add(both, ["a"], output=tmp_path / "f")

    def columns(**options: Any) -> set[str | None]:
        return {f.column for f in bloomcli.validate(tmp_path / "f", deep=True, **options).findings}

    assert columns() == {"a"}
    assert columns(columns=["*"]) == {"a", "b"}
    assert columns(exclude=["x*"]) == {"a"}
    assert columns(columns=["b"]) == {"b"}


def test_metadata_alone_show_a_minimum_above_its_maximum(tmp_path: Path) -> None:
    for level in LEVELS:
        file = patched(JAVA, tmp_path / level, "whole", put("int_statistics.minimum", 1 << 40), level)
        found = check(file, "whole", deep=False)
        assert (BOUNDS, Severity.ERROR, *PLACES[level]) in [(f.id, f.severity, f.stripe, f.row_group) for f in found]


@pytest.mark.parametrize(
    ("change", "rule"), [(put("int_statistics.maximum", -(1 << 29)), BOUNDS), (put("has_null", False), COUNTS)]
)
def test_metadata_alone_show_a_stripe_that_contradicts_its_row_groups(
    tmp_path: Path, change: Callable[[Any], object], rule: str
) -> None:
    file = patched(JAVA, tmp_path / "f", "whole", change, STRIPE)
    found = check(file, "whole", deep=False)
    assert {(f.id, f.severity, f.stripe) for f in found} == {(rule, Severity.WARNING, 0)}
    deep = check(file, "whole")
    assert [(f.id, f.severity, f.row_group) for f in deep] == [(rule, Severity.ERROR, None)], "the values decide"


def test_a_sample_of_stripes_leaves_the_others_to_the_metadata(tmp_path: Path) -> None:
    wrong = {}
    for seed in range(4):
        file = patched(JAVA, tmp_path / "f", "whole", put("int_statistics.minimum", 1 << 40), GROUP)
        report = bloomcli.validate(file, columns=["whole"], deep=True, sample_row_groups="1", seed=seed)
        wrong[report.row_groups_read] = {f.severity for f in report.findings}
    assert all(Severity.ERROR in severities for severities in wrong.values())


def test_a_dictionary_out_of_order_is_compared_by_its_entries(tmp_path: Path) -> None:
    """No writer of today leaves a dictionary unsorted; entries of equal lengths can change places."""
    texts = ["aaaa", "bbbb", "cccc"] * 20
    path = orcfiles.write(tmp_path / "f", {"c": texts}, dictionary_key_size_threshold=1.0)

    def turned(file: File) -> None:
        (place,) = [i for i, s in enumerate(file.stripes[0].footer.streams) if s.kind == 3]  # DICTIONARY_DATA
        assert file.plain(file.stripes[0].streams[place]) == b"aaaabbbbcccc"
        file.stripes[0].streams[place] = file.packed(b"ccccaaaabbbb")

    assert check(path) == check(orcfiles.edited(path, tmp_path / "g", turned)) == []
    for name, bound, value in (("h", "minimum", "aaab"), ("i", "maximum", "cccb")):
        patched(tmp_path / "g", tmp_path / name, "c", put(f"string_statistics.{bound}", value), GROUP)
        (found,) = check(tmp_path / name)
        assert (found.id, found.row_group) == (BOUNDS, 0)


def test_a_dictionary_that_is_too_large_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bloomcli.formats.orc.limits.COMPARED_ENTRIES_MAX_BYTES", 8)
    (found,) = check(
        orcfiles.write(tmp_path / "f", {"c": ["aaaa", "bbbb", "cccc"] * 20}, dictionary_key_size_threshold=1.0)
    )
    assert (found.id, found.severity) == (BOUNDS, NOTE)


def unread(path: Path, column: str = "*") -> set[tuple[str | None, str]]:
    """The columns whose statistics aren't compared with the values, and why."""
    found = bloomcli.validate(path, columns=[column], deep=True).findings
    start = "the statistics' bounds aren't compared with the values: "
    return {(f.column, f.message.removeprefix(start)) for f in found if (f.id, f.severity) == (BOUNDS, NOTE)}


def test_columns_that_are_not_compared_are_named() -> None:
    within = "it lies within a union"
    union = ("either", "values of union aren't read here")
    assert unread(PYORC) == {union, ("either.0", within), ("either.1", within)}
    found = bloomcli.validate(FIXTURES / "orc" / "java_encrypted.orc", columns=["*"], deep=True).findings
    assert {f.id for f in found} == {"filter-plaintext"}, "the finding about its filters names the column"


EARLY: Final = dt.datetime(1890, 1, 1)


@pytest.mark.parametrize(
    ("zone", "first", "named"),
    [("Europe/Berlin", EARLY, True), ("UTC", EARLY, False), ("Europe/Berlin", dt.datetime(1990, 1, 1), False)],
)
def test_timestamps_that_readers_read_differently_are_named(
    tmp_path: Path, zone: str, first: dt.datetime, named: bool
) -> None:
    def edit(file: File) -> None:
        file.stripes[0].footer.writer_timezone = zone

    moments = pa.array([first, dt.datetime(2020, 1, 1)], pa.timestamp("us"))
    path = orcfiles.edited(orcfiles.write(tmp_path / "plain", {"c": moments}), tmp_path / "f", edit)
    why = "readers read some of the timestamps differently"
    assert unread(path) == ({("c", why)} if named else set())


@pytest.mark.parametrize(("version", "lost"), [(6, False), (7, True)])
def test_a_bound_of_decimals_need_be_no_value_in_files_from_before_orc_517(
    tmp_path: Path, version: int, lost: bool
) -> None:
    def older(file: File) -> None:
        file.postscript.writer_version = version

    wide = patched(JAVA, tmp_path / "wide", "cents", put("decimal_statistics.minimum", "-300.07"), GROUP)
    path = orcfiles.edited(wide, tmp_path / "f", older)
    found = [f.missing for f in bloomcli.validate(path, columns=["cents"]).findings if f.id == "value-missing"]
    assert found == ([("-300.07",)] if lost else [])


def structs(path: Path) -> Path:
    """As ORC Java writes it: a null struct is no null of its fields. The first row group has one, the second none."""
    rows = [None if at == 3 else {"a": at, "b": {"c": at}, "l": [at], "z": b"z"} for at in range(20)]
    kind = pa.struct(
        [("a", pa.int64()), ("b", pa.struct([("c", pa.int64())])), ("l", pa.list_(pa.int64())), ("z", pa.binary())]
    )
    written = orcfiles.write(path, {"s": pa.array(rows, kind)}, stride=10)
    fields = [number(written, name) for name in ("s.a", "s.b", "s.b.c", "s.l", "s.l._elem", "s.z")]

    def edit(file: File) -> None:
        for field in fields:
            edits.edit(file, field, put("has_null", False))

    return orcfiles.edited(written, path, edit)


def test_nulls_of_a_struct_that_its_fields_do_not_count_are_a_finding_for_each_field_and_the_readers_alone(
    tmp_path: Path,
) -> None:
    path = structs(tmp_path / "f")
    assert check(path) == []
    found = bloomcli.validate(path, columns=["*"], readers=["spark"]).findings
    assert [(f.id, f.severity, f.stripe, f.row_group, f.column) for f in found] == [
        ("reader-null-structs", Severity.ERROR, 0, 0, column) for column in ("s.a", "s.b.c")
    ]
    assert "`s` is null, in 1 row group: Spark loses" in found[0].message
    assert "`s.b` or a struct above it is null" in found[1].message
    for readers, options in ((["duckdb"], {"columns": ["*"]}), (["spark"], {}), (["spark"], {"exclude": ["x*"]})):
        assert bloomcli.validate(path, readers=readers, deep=True, **options).findings == ()
    bloomcli.add(path, ["s.a"], output=tmp_path / "g")
    assert [f.column for f in bloomcli.validate(tmp_path / "g", readers=["clickhouse"]).findings] == ["s.a"]


def test_nulls_that_statistics_count_or_that_no_struct_has_are_no_finding_for_readers(tmp_path: Path) -> None:
    def sound(change: Callable[[File], None]) -> bool:
        path = orcfiles.edited(structs(tmp_path / "f"), tmp_path / "g", change)
        found = bloomcli.validate(path, columns=["s.a"], readers=["spark"]).findings
        return "reader-null-structs" not in {finding.id for finding in found}

    column = number(structs(tmp_path / "f"), "s.a")
    assert sound(lambda file: edits.edit(file, column, put("has_null", True)))
    assert sound(lambda file: edits.edit(file, column, put("has_null", None)))
    assert sound(lambda file: edits.edit(file, column, put("number_of_values", 0)))
    assert sound(lambda file: edits.edit(file, column - 1, put("has_null", False)))
    assert not sound(lambda file: edits.edit(file, column - 1, put("has_null", True)))
