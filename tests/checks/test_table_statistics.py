"""What a table's metadata say about a data file is compared with the file: only what leaves rows out is an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import bloomcli
from bloomcli.checks.table_statistics import check_table
from bloomcli.commands import validate
from bloomcli.commands.options import ValidateOptions
from bloomcli.formats.base import MeasuredColumn
from bloomcli.formats.registry import open_file
from bloomcli.hints import on_table
from bloomcli.model.file import Severity
from bloomcli.model.table_statistics import ColumnStatistics, FileStatistics, Kind, PartitionValue
from bloomcli.model.validate import Finding
from bloomcli.storage.registry import open_source
from bloomcli.values.keys import key_of, parse_key

NANOS = 10**9
DAY = 86_400 * NANOS
ROWS = 100
WHEN = datetime(2026, 11, 1, 12, 0, 0, 123_456, tzinfo=UTC)
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "small": pa.array([None, *range(1, ROWS)], pa.int32()),
        "price": pa.array([Decimal(i) / 100 for i in range(ROWS)], pa.decimal128(9, 2)),
        "name": pa.array([f"n{i:03}" for i in range(ROWS)]),
        "day": pa.array([date(2026, 11, 1)] * ROWS),
        "at": pa.array([WHEN] * ROWS, pa.timestamp("us", tz="UTC")),
        "ratio": pa.array([i / 8 for i in range(ROWS)], pa.float64()),
        "empty": pa.array([None] * ROWS, pa.int64()),
        "user": pa.array([{"email": f"m{i:03}"} for i in range(ROWS)]),
    }
)
INSTANT = int(datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()) * NANOS + 123_456_000
MORNING = parse_key("2026-11-01", Kind.DATE)

Check = Callable[..., Sequence[Finding]]


def column(path: str, kind: Kind = Kind.NUMBER, **facts: Any) -> ColumnStatistics:
    return ColumnStatistics(path=path, kind=kind, **facts)


def part(path: str, value: Any, kind: Kind = Kind.NUMBER, **facts: Any) -> PartitionValue:
    return PartitionValue(path=path, kind=kind, value=value, text=str(value), **facts)


SOUND = (
    column("id", low=0, high=99, values=ROWS, nulls=0),
    column("small", low=1, high=99, values=ROWS, nulls=1),
    column("price", low=Decimal("0.00"), high=Decimal("0.99")),
    column("name", Kind.TEXT, low=b"n00", high=b"n1"),
    column("day", Kind.DATE, low=MORNING, high=MORNING),
    column("at", Kind.INSTANT, low=INSTANT - 456_000, high=INSTANT + 999),
    column("ratio", low=0.0, high=12.375),
    column("empty", nulls=ROWS, values=ROWS),
    column("user.email", Kind.TEXT, low=b"m000", high=b"m099", nulls=0),
)
PARTS = (
    part("day", MORNING, Kind.DATE),
    part("day", 56, transform="year"),
    part("day", 56 * 12 + 10, transform="month"),
    part("at", MORNING, Kind.DATE, transform="day"),
    part("at", INSTANT // (3600 * NANOS), transform="hour"),
    part("id", 0, transform="truncate", width=100),
    part("empty", None),
    part("name", b"n0", Kind.TEXT, transform="truncate", width=2),
    part("day", None, transform="unknown"),
)


@pytest.fixture(scope="module", params=["parquet", "orc"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / f"a.{request.param}"
    if request.param == "parquet":
        pq.write_table(TABLE, path, row_group_size=40)
    else:
        orc.write_table(TABLE, path)
    return path


@pytest.fixture
def check(file: Path) -> Check:
    def run(*columns: ColumnStatistics, options: ValidateOptions | None = None, **facts: Any) -> Sequence[Finding]:
        table = FileStatistics(source="manifest", rewriting="REWRITE", columns=columns, **facts)
        return validate.run(file, options or ValidateOptions(), table=table).findings

    return run


def starts(file: Path) -> list[int]:
    with open_source(file) as source:
        return list(open_file(source).unit_starts())


def test_right_statistics_are_no_finding(check: Check, file: Path) -> None:
    parts = tuple(one for one in PARTS if one.path != "day" or one.value is not None)
    assert check(*SOUND, rows=ROWS, partition=parts, split_offsets=tuple(starts(file))) == ()


def test_a_bound_that_is_no_value_is_found(check: Check) -> None:
    wrong = column("id", high=99, problem="the manifest has a bound of 3 bytes")
    for deep in (False, True):
        (found,) = check(wrong, options=ValidateOptions(deep=deep, columns=("id",)))
        assert (found.id, found.severity, found.column) == ("table-bounds", Severity.ERROR, "id")
        assert found.message == wrong.problem
        assert check(column("id", high=99), options=ValidateOptions(deep=deep, columns=("id",))) == ()


WRONG_BOUNDS = [
    column("id", low=1, high=99),
    column("id", low=0, high=98),
    column("id", low=0.5),
    column("small", low=2),
    column("price", low=Decimal("0.01")),
    column("price", high=Decimal("0.98")),
    column("name", Kind.TEXT, low=b"n1"),
    column("name", Kind.TEXT, high=b"n0"),
    column("day", Kind.DATE, low=(MORNING or 0) + DAY),  # type: ignore[operator]
    column("day", Kind.TIMESTAMP, high=(MORNING or 0) - 1),  # type: ignore[operator]
    column("at", Kind.INSTANT, low=INSTANT + 1_000_000),
    column("at", Kind.INSTANT, high=INSTANT - 1_000_000),
    column("ratio", low=0.125),
    column("ratio", high=12.0),
    column("user.email", Kind.TEXT, low=b"m2"),
]


@pytest.mark.parametrize("wrong", WRONG_BOUNDS, ids=[f"{one.path}:{one.low}:{one.high}" for one in WRONG_BOUNDS])
def test_a_bound_that_leaves_a_value_out_is_found(check: Check, file: Path, wrong: ColumnStatistics) -> None:
    (found,) = check(*(one for one in SOUND if one.path != wrong.path), wrong)
    assert (found.id, found.severity, found.column) == ("table-bounds", Severity.ERROR, wrong.path)
    assert "engines that look for it skip the file" in found.message
    engine = "let the engine write the files and their statistics again: REWRITE"
    repair = f"`bloom repair --table ice.db.t --columns {wrong.path}` mends it"
    assert on_table(found.hint, "ice.db.t") == (engine if file.suffix == ".orc" else repair)


@pytest.mark.parametrize(
    "wrong",
    [
        column("small", values=ROWS - 1),
        column("small", nulls=0),
        column("small", nulls=2),
        column("small", nulls=0, tight=False),
        column("small", nulls=ROWS, tight=False),
        column("empty", nulls=0, tight=False),
    ],
    ids=repr,
)
def test_a_wrong_count_of_a_column_is_found(check: Check, wrong: ColumnStatistics) -> None:
    (found,) = check(wrong, rows=ROWS)
    assert (found.id, found.severity, found.column) == ("table-counts", Severity.ERROR, wrong.path)


def test_a_wrong_row_count_is_found_with_any_choice_of_columns(check: Check) -> None:
    (found,) = check(*SOUND, rows=ROWS + 1, options=ValidateOptions(columns=["id"]))
    assert found.message == "the manifest says 101 rows, and the file has 100"
    assert (found.id, found.column) == ("table-counts", None)


@pytest.mark.parametrize(("rows", "may_grow", "repaired"), [(99, True, True), (99, False, False), (101, False, True)])
def test_the_hint_is_to_add_the_file_again_where_no_commit_can_raise_the_number_of_rows(
    check: Check, file: Path, rows: int, may_grow: bool, repaired: bool
) -> None:
    (found,) = check(rows=rows, rows_may_grow=may_grow)
    repair = "`bloom repair --table ice.db.t` mends it"
    assert (on_table(found.hint, "ice.db.t") == repair) is (repaired and file.suffix == ".parquet")
    assert (found.hint or "").endswith("again: REWRITE") is (repaired and file.suffix == ".orc")
    assert (found.hint or "").startswith("add the file to the table again") is not repaired


@pytest.mark.parametrize("loose", [column("small", nulls=50, tight=False), column("id", low=-5, high=200)], ids=repr)
def test_wide_statistics_lose_no_row_and_are_no_finding(check: Check, loose: ColumnStatistics) -> None:
    assert check(loose, rows=ROWS) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        part("day", (MORNING or 0) + DAY, Kind.DATE),  # type: ignore[operator]
        part("day", 57, transform="year"),
        part("day", 56 * 12, transform="month"),
        part("at", (MORNING or 0) + DAY, Kind.DATE, transform="day"),  # type: ignore[operator]
        part("at", 0, transform="hour"),
        part("id", 0, transform="truncate", width=10),
        part("id", 0, transform="bucket", width=4),
        part("id", None),
        part("empty", 1),
        part("small", 1),
        part("name", b"n1", Kind.TEXT, transform="truncate", width=2),
        part("name", b"n000", Kind.TEXT),
        part("price", Decimal(0), transform="truncate", width=10),
        part("id", None, problem="the log's value is 'x'"),
    ],
    ids=lambda one: f"{one.path}-{one.transform}-{one.text}",
)
def test_rows_of_another_partition_are_found(check: Check, wrong: PartitionValue) -> None:
    (found,) = check(partition=(wrong,))
    assert (found.id, found.severity, found.column) == ("table-partition", Severity.ERROR, wrong.path)
    assert "must not rewrite" in (found.hint or "")


@pytest.mark.parametrize(
    ("array", "bucket"),
    [
        (pa.array([34], pa.int32()), 2017239379),
        (pa.array([34], pa.int64()), 2017239379),
        (pa.array([Decimal("14.20")], pa.decimal128(9, 2)), -500754589),
        (pa.array([date(2017, 11, 16)]), -653330422),
        (pa.array([datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC)], pa.timestamp("us", tz="UTC")), -2047944441),
        (pa.array(["iceberg"]), 1210000089),
        (pa.array([b"\0\1\2\3"]), -188683207),
    ],
    ids=lambda one: str(getattr(one, "type", "")),
)
def test_buckets_are_those_of_iceberg_s_specification(array: pa.Array, bucket: int, tmp_path: Path) -> None:
    """Source of the hashes: Iceberg's specification, "Appendix B: 32-bit Hash Requirements"."""
    path, buckets = tmp_path / "a.parquet", 1000
    pq.write_table(pa.table({"c": array}), path)
    with open_source(path) as source:
        opened = open_file(source)
        (facts,) = opened.column_facts(None)
        key = key_of(facts.bounds.low or b"", facts.typed)
        read = MeasuredColumn(0, 1, 0, 0, key, key)
        for right in (True, False):
            number = ((bucket & 0x7FFF_FFFF) + (not right)) % buckets
            table = FileStatistics(
                source="manifest", partition=(part("c", number, transform="bucket", width=buckets),)
            )
            found = list(check_table(opened, table, None, {0: read}))
            assert [one.id for one in found] == ([] if right else ["table-partition"])


def test_split_offsets_must_begin_at_the_first_row_group(check: Check, file: Path) -> None:
    first, *rest = starts(file)
    assert check(split_offsets=(first,)) == ()
    (lost,) = check(split_offsets=(first + 100,))
    assert (lost.id, lost.severity, lost.offset) == ("table-splits", Severity.ERROR, first + 100)
    (uneven,) = check(split_offsets=(first, first + 7))
    assert (uneven.id, uneven.severity, uneven.offset) == ("table-splits", Severity.NOTE, first + 7)
    if rest:
        assert check(split_offsets=(first, rest[-1])) == ()


def test_columns_that_were_not_chosen_are_not_compared(check: Check) -> None:
    wrong = (column("id", low=5), column("name", Kind.TEXT, low=b"z"))
    partition = (part("day", None, Kind.DATE),)
    for options in (ValidateOptions(columns=["price"]), ValidateOptions(exclude=["id", "name", "day"])):
        assert check(*wrong, partition=partition, options=options) == ()


def test_a_column_of_another_kind_is_not_compared(check: Check) -> None:
    kinds = (column("id", Kind.TEXT, low=b"z"), column("name", low=10**9), column("at", Kind.TIMESTAMP, low=10**30))
    assert check(*kinds, column("nothing", low=1)) == ()


@pytest.mark.parametrize("exact", [False, None])
def test_shortened_bounds_of_the_file_prove_only_what_holds_for_all_values_that_they_stand_for(
    exact: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"c": ["abc", "xz"]}), path)
    with open_source(path) as source:
        opened = open_file(source)
        (facts,) = opened.column_facts(None)
        cut = facts._replace(bounds=facts.bounds._replace(low_exact=exact, high_exact=exact))
        monkeypatch.setattr(opened, "column_facts", lambda _: [cut])
        for low, high, right in (
            (b"abcd", b"xyzz", True),
            (b"abc", b"xz", True),
            (b"abd", b"xzz", False),
            (b"abc", b"w", False),
        ):
            table = FileStatistics(source="log", columns=(column("c", Kind.TEXT, low=low, high=high),))
            assert (list(check_table(opened, table, None, {})) == []) is right


@pytest.mark.parametrize("rows", [2, 3])
def test_values_count_more_than_the_footer_if_all_were_read(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"c": pa.array([1.0, 2.0])}), path)
    table = FileStatistics(
        source="log", rows=2, columns=(column("c", low=1.0, high=2.0, nans=0, nan_is_greatest=True),)
    )
    parts = [MeasuredColumn(0, 1, 0, 1, None, None), MeasuredColumn(0, rows - 1, 0, 0, 1.0, 3.0)]
    with open_source(path) as source:
        opened = open_file(source)
        found = [one.message for one in check_table(opened, table, None, {0: parts[0].plus(parts[1])})]
    said = [message.split(", and ")[1].split(":")[0] for message in found]
    assert said == (
        ["the file has 1", "the file has NaN, which engines put above", "the file has 3.0"] if rows == 2 else []
    )


def test_deep_reads_the_values_of_chosen_columns_and_finds_what_no_footer_says(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    values = {"c": [1.0, float("nan"), None, 2.0], "flag": [True, None, True, True]}
    pq.write_table(pa.table(values), path, row_group_size=3, write_statistics=False)
    wrong = (
        column("c", low=1.5, nulls=0, nans=0),
        column("flag", Kind.BOOLEAN, high=0),
    )
    sound = (column("c", low=1.0, high=2.0, nulls=1, nans=1), column("flag", Kind.BOOLEAN, low=1, high=1, nulls=1))
    deep = ValidateOptions(deep=True, columns=["*"])
    for columns, options, expected in (
        (wrong, ValidateOptions(), []),
        (wrong, deep, ["table-bounds", "table-bounds", "table-counts", "table-counts"]),
        (sound, deep, []),
        (wrong, replace(deep, sample_row_groups="1"), []),
    ):
        table = FileStatistics(source="manifest", rows=4, columns=columns)
        found = validate.run(path, options, table=table).findings
        assert [one.id for one in found] == expected


def test_a_bound_that_no_row_has_is_a_note_because_engines_answer_by_it(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"c": [3, 5]}), path)
    read = {0: MeasuredColumn(0, 2, 0, 0, 3, 5)}
    with open_source(path) as source:
        opened = open_file(source)
        for low, high, tight, expected in ((1, 9, True, ["MIN", "MAX"]), (3, 5, True, []), (1, 9, False, [])):
            table = FileStatistics(source="log", columns=(column("c", low=low, high=high, tight=tight),))
            found = list(check_table(opened, table, None, read))
            assert [(one.id, one.severity) for one in found] == [("table-bounds", Severity.NOTE)] * len(expected)
            assert [one.message.split()[3] for one in found] == expected


def test_parts_of_a_column_are_added_up() -> None:
    one, other = MeasuredColumn(3, 5, 1, 0, 2, 7), MeasuredColumn(3, 4, 0, 2, -1, 5, compared=False)
    assert one.plus(other) == MeasuredColumn(3, 9, 1, 2, -1, 7, compared=False)
    assert MeasuredColumn(3, 1, 1, 0, None, None).plus(one).low == 2


def test_statistics_of_many_columns_travel_in_few_bytes() -> None:
    many = FileStatistics(
        source="log", columns=tuple(column(f"column_{i}", low=i, high=i + 9, nulls=0) for i in range(100))
    )
    packed = many.packed()
    assert FileStatistics.unpacked(packed) == many
    assert len(packed) < 3000
    assert replace(many, rows=1) != many


def test_files_without_rows_and_without_a_table_have_no_such_finding(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE.slice(0, 0), path)
    table = FileStatistics(source="manifest", rows=0, columns=(column("id", low=5, nulls=3),), partition=PARTS)
    assert validate.run(path, ValidateOptions(), table=table).findings == ()
    assert bloomcli.validate(path).findings == ()
