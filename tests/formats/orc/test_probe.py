"""probe and dump on ORC files: answers by type, statistics, and refusals."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from support import orcfiles, orcstatistics
from support.orcfiles import CASES, ROW_INDEX, File

import bloomcli
from bloomcli.errors import LiteralError, UsageError
from bloomcli.formats.orc import spec
from bloomcli.model.file import Presence
from bloomcli.model.probe import Verdict

SKIPPING = Presence.ABSENT


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Filters by bloom on every leaf that takes them, in 3 stripes of 2 row groups; by pyarrow on lists and maps."""
    folder = tmp_path_factory.mktemp("probe")
    table = orcfiles.everything(60)
    lists = [table.schema.get_field_index(n) for n in ("li", "mp", "ls")]
    ids = [at + 2 if at else 0 for at in lists]  # the struct before them has two fields
    plain = orcfiles.write(folder / "plain", table, stripe=20, stride=13, blooms=[ids[0] + 1, ids[1] + 2, ids[2] + 4])
    names = {f.column for f in bloomcli.inspect(plain).filters}
    assert names == {"li", "mp", "ls"}
    orcfiles.edited(plain, plain, java)  # those of ORC C++ aren't trusted
    bloomcli.add(plain, [*CASES, *orcfiles.NESTED], output=folder / "f", fpp=0.0001)
    return folder / "f"


def java(file: File) -> None:
    """The file, with ORC Java as its writer."""
    file.footer.writer = spec.ORC_JAVA


def ask(path: Path, column: str, *values: str) -> list[Verdict]:
    return list(bloomcli.probe(path, list(values), column=column).verdicts)


@pytest.mark.parametrize("name", CASES)
def test_every_value_that_exists_is_maybe_present(path: Path, name: str) -> None:
    case = CASES[name]
    rows = case.array(60).to_pylist()
    texts = {case.text(v): v for v in case.present}
    if not texts:
        assert {v.presence for v in ask(path, name, "x")} == {SKIPPING}
        assert {v.reason for v in ask(path, name, "x")} == {"only nulls"}
        return
    for verdict in ask(path, name, *texts):
        value = texts[verdict.value]
        start = (verdict.stripe or 0) * 20 + verdict.row_group * 13
        hashed = {case.hash(v) for v in rows[start : start + verdict.rows] if v is not None}
        expected = Presence.MAYBE if case.hash(value) in hashed else SKIPPING
        assert verdict.presence is expected, (name, verdict)
        assert not (verdict.stats_skip and expected is Presence.MAYBE), verdict
        assert verdict.rows == (13, 7)[verdict.row_group]


@pytest.mark.parametrize(
    ("column", "there", "absent"), [("li", ("0", "1", "3"), ("2", "4")), ("mp", ("0", "1", "2"), ("3", "7"))]
)
def test_a_lists_or_maps_own_filter_holds_lengths(
    path: Path, column: str, there: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    assert {v.presence for v in ask(path, column, *there)} == {Presence.MAYBE}
    assert sum(v.presence is SKIPPING for v in ask(path, column, *absent)) >= 10
    assert {v.stats_skip for v in ask(path, column, *there)} == {None}
    assert bloomcli.validate(path, columns=[column], deep=True).findings == ()


def one(folder: Path, values: list[Any], kind: pa.DataType, edit: Callable[[File], object] | None = None) -> Path:
    """A column `c` with a filter by bloom; `edit` is done before."""
    path = orcfiles.write(folder / "plain", {"c": pa.array(values, kind)})
    if edit is not None:
        orcfiles.edited(path, path, edit)
    bloomcli.add(path, ["c"], output=folder / "f", overwrite=True, fpp=1e-6)
    return folder / "f"


def char(length: int) -> Callable[[File], None]:
    return orcfiles.typed(1, kind=17, maximum_length=length)


class Asked(NamedTuple):
    """A column's values, and the answers to what a user types."""

    values: list[Any]
    kind: pa.DataType
    answers: dict[str, Presence]
    edit: Callable[[File], object] | None = None


MAYBE, UNKNOWN = Presence.MAYBE, Presence.UNKNOWN
ASKED: dict[str, Asked] = {
    "zeros and NaN of a float": Asked(
        [-0.0, 1.5], pa.float32(), {"0": MAYBE, "-0.0": MAYBE, "nan": UNKNOWN, "1e-400": MAYBE}
    ),
    "zeros of a double": Asked([0.0, 1.5], pa.float64(), {"0": MAYBE, "-0.0": MAYBE}),
    "zeros that are not there": Asked([2.5], pa.float64(), {"0": SKIPPING, "-0": SKIPPING}),
    "a float as the column holds it": Asked([1.1], pa.float32(), {"1.1": MAYBE, "1.2": SKIPPING, "1e39": SKIPPING}),
    "a decimal however it is spelled": Asked(
        [Decimal("1.50")],
        pa.decimal128(9, 2),
        dict.fromkeys(("1.5", "01.500", "1.5e0", "15e-1"), MAYBE) | dict.fromkeys(("15", "-1.5", "1.505"), SKIPPING),
    ),
    "a char that is padded": Asked(
        [text.ljust(5) for text in ("ab", "äö", "", "abcde")],
        pa.string(),
        dict.fromkeys(("ab", "äö", "", "abcde", "ab   ", "ab      "), MAYBE) | {"zz": SKIPPING, " ab": SKIPPING},
        char(5),
    ),
    "milliseconds rounded down": Asked(
        [-1],
        pa.timestamp("ms"),
        # writers differ about .9994
        {"1969-12-31 23:59:59.999": MAYBE, "1969-12-31T23:59:59.9994": UNKNOWN, "1970-01-01": SKIPPING},
    ),
}


@pytest.mark.parametrize("what", ASKED)
def test_a_value_is_looked_up_as_the_column_holds_it(what: str, tmp_path: Path) -> None:
    asked = ASKED[what]
    found = ask(one(tmp_path, asked.values, asked.kind, asked.edit), "c", *asked.answers)
    assert {verdict.value: verdict.presence for verdict in found} == asked.answers


def test_a_timestamp_with_a_zone_is_looked_up_as_the_moment(tmp_path: Path) -> None:
    path = one(tmp_path, [dt.datetime(2024, 2, 29, 12)], pa.timestamp("ns", "UTC"))
    found = ask(path, "c", "2024-02-29T12:00Z", "2024-02-29T13:00+01:00", "2024-02-29T12:00+01:00")
    assert [v.presence for v in found] == [Presence.MAYBE, Presence.MAYBE, SKIPPING]
    path = one(tmp_path, [dt.datetime(2024, 2, 29, 12)], pa.timestamp("ns"))
    with pytest.raises(LiteralError, match=r"of column c, timestamp") as caught:
        ask(path, "c", "2024-02-29T12:00Z")
    assert "wall-clock" in caught.value.reason
    assert "without a zone" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("column", "text", "why"),
    [
        ("int8", "300", "tinyint"),
        ("int64", "1.5", "whole"),
        ("decimal_9_2", "0.001", "hold"),
        ("int16", "40000", "-32768"),
    ],
)
def test_what_the_type_cant_hold_is_absent_for_that_reason(path: Path, column: str, text: str, why: str) -> None:
    verdicts = ask(path, column, text)
    assert {v.presence for v in verdicts} == {SKIPPING}
    assert all(why in (v.reason or "") for v in verdicts)


def test_statistics_and_filters_are_distinguished(tmp_path: Path) -> None:
    table = {"i": [i * 2 for i in range(40)], "s": [f"s{i:02}" for i in range(40)], "n": [None] * 20 + [1] * 20}
    path = orcfiles.write(tmp_path / "plain", table, stride=10, stripe=20)
    assert [(v.presence, v.stats_skip) for v in ask(path, "i", "4")] == [
        (Presence.NO_FILTER, False),
        *[(Presence.NO_FILTER, True)] * 3,
    ]
    bloomcli.add(path, ["*"], output=tmp_path / "f", fpp=1e-6)
    report = bloomcli.probe(tmp_path / "f", ["4", "5", "999"], column="i")
    assert [(v.stripe, v.row_group, v.rows) for v in report.verdicts[:4]] == [
        (0, 0, 10),
        (0, 1, 10),
        (1, 0, 10),
        (1, 1, 10),
    ]
    present, gap, beyond = report.totals
    assert (present.presence, present.skipped_row_groups, present.stats_skipped_row_groups) == (Presence.MAYBE, 3, 3)
    assert (gap.presence, gap.skipped_row_groups, gap.gain_row_groups) == (SKIPPING, 4, 1)
    assert (beyond.stats_skipped_row_groups, beyond.gain_row_groups) == (4, 0)
    data = sum(p.info.data_length for p in orcfiles.split(tmp_path / "f").stripes)
    assert report.total_bytes == pytest.approx(data, abs=4)
    assert [v.stats_skip for v in ask(tmp_path / "f", "s", "s05x")] == [False, True, True, True]
    nulls = ask(tmp_path / "f", "n", "1")
    assert [v.presence for v in nulls] == [SKIPPING, SKIPPING, Presence.MAYBE, Presence.MAYBE]
    assert [v.reason for v in nulls] == ["only nulls"] * 2 + [None] * 2


def test_statistics_that_count_only_nulls_dont_hide_what_the_filter_has(tmp_path: Path) -> None:
    plain = orcfiles.write(tmp_path / "plain", {"i": [1, 2, 3]}, compression="uncompressed")
    bloomcli.add(plain, ["i"], output=tmp_path / "f", fpp=1e-6)

    def only_nulls(statistics: Any) -> None:
        statistics.Clear()
        statistics.number_of_values, statistics.has_null = 0, True

    orcfiles.edited(
        tmp_path / "f", tmp_path / "f", lambda f: orcstatistics.edit(f, 1, only_nulls, levels={orcstatistics.GROUP})
    )
    (there,), (absent,) = ask(tmp_path / "f", "i", "2"), ask(tmp_path / "f", "i", "7")
    assert (there.presence, there.stats_skip) == (Presence.MAYBE, True)
    assert there.reason == "the statistics count only nulls"
    assert (absent.presence, absent.stats_skip, absent.reason) == (SKIPPING, True, "only nulls")


@pytest.mark.parametrize("text", ["10000000000.000000000000000001", "-99999999999999999999.999999999999999999", "0"])
def test_statistics_of_long_decimals_are_not_rounded(tmp_path: Path, text: str) -> None:
    path = one(tmp_path, [Decimal(text)], pa.decimal128(38, 18))
    near = str(Decimal(text) + Decimal("1E-18")) if text == "0" else text[:-1] + "3"
    assert [(v.presence, v.stats_skip) for v in ask(path, "c", text, f"{Decimal(near):f}")] == [
        (Presence.MAYBE, False),
        (SKIPPING, True),
    ]


def test_a_filter_without_a_readable_row_index_still_answers(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "plain", {"c": range(10)}, blooms=[1])
    for edit in (
        lambda f: f.drop(f.place(ROW_INDEX, 1)),
        lambda f: f.stripes[0].streams.__setitem__(f.place(ROW_INDEX, 1), b"\xff\xff"),
    ):
        orcfiles.edited(path, tmp_path / "f", edit)
        found = [(v.presence, v.stats_skip) for v in ask(tmp_path / "f", "c", "3", "400")]
        assert found == [(Presence.MAYBE, None), (SKIPPING, None)]


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (39, 2), (18, 39), (2**32 - 1, 2**32 - 1)])
def test_a_decimal_of_an_invalid_type_has_no_answer(tmp_path: Path, precision: int, scale: int) -> None:
    """Hive before 0.12 wrote no precision: values of any scale may be there."""
    path = orcfiles.write(tmp_path / "plain", {"c": pa.array([Decimal("1.5")], pa.decimal128(9, 2))}, blooms=[1])
    orcfiles.edited(path, tmp_path / "f", orcfiles.typed(1, precision=precision, scale=scale))
    for verdict in ask(tmp_path / "f", "c", "1.5", "1e60", "7"):
        assert (verdict.presence, verdict.stats_skip) == (Presence.UNKNOWN, None)
        assert f"decimal({precision},{scale}) is no type" in (verdict.reason or "")
    assert bloomcli.validate(tmp_path / "f").findings == ()
    (finding,) = bloomcli.validate(tmp_path / "f", deep=True).findings
    assert (finding.id, finding.column) == ("filter-not-checked", "c")


def test_no_room_is_made_for_a_char_of_any_length(tmp_path: Path) -> None:
    path = one(tmp_path, ["ab"], pa.string(), char(200))
    orcfiles.edited(path, tmp_path / "long", char(4_000_000_000))
    (verdict,) = ask(tmp_path / "long", "c", "ab")
    assert verdict.presence is Presence.UNKNOWN
    assert "char(4000000000) is padded" in (verdict.reason or "")
    assert bloomcli.validate(tmp_path / "long", deep=True).values_checked == 1


def test_explain_shows_hash_and_bits(path: Path) -> None:
    for verdict in bloomcli.probe(path, ["42", "77"], column="int32", explain=True).verdicts:
        dumped = bloomcli.dump(path, column="int32", row_group=verdict.row_group, stripe=verdict.stripe or 0)
        (trail,) = verdict.trail
        assert (trail.hash, trail.block) == (orcfiles.long_hash(int(verdict.value)), None)
        assert trail.hashed == int(verdict.value).to_bytes(4, "little")
        bits, k = len(dumped.bitset) * 8, dumped.facts.hash_functions or 0
        assert list(trail.bits) == orcfiles.places(trail.hash, bits, k)
        assert trail.present == tuple(bool(dumped.bitset[b // 8] >> b % 8 & 1) for b in trail.bits)
        assert (verdict.presence is Presence.MAYBE) == all(trail.present)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "columns have filters"),
        ({"column": "flag"}, "column flag has no filters in stripe 0"),
        ({"column": "int8", "row_group": 2}, "no row group 2 in stripe 0; it has 2"),
        ({"column": "int8", "row_group": -1}, "no row group -1"),
        ({"column": "int8", "stripe": 3}, "no stripe 3; the file has 3"),
        ({"column": "int8", "stripe": -1}, "no stripe -1"),
        ({"column": "int*"}, "means 4 columns"),
    ],
    ids=str,
)
def test_dump_of_what_is_not_one_filter_is_refused(path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bloomcli.dump(path, **options)
