"""find --index gives the rows that find gives without an index, however old the index is."""

from __future__ import annotations

import io
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.indexed_lakes import parquet, rows, same_rows
from support.stores import Place

import bloomcli
from bloomcli.commands import find
from bloomcli.errors import UsageError

pytestmark = pytest.mark.usefixtures("one_process")
"""Indexes that workers build are in test_places.py."""

FILES, ROWS = 6, 400
ALL = [n * 7 for n in range(0, FILES * ROWS, 37)]


@pytest.fixture
def lake(place: Place) -> Place:
    """Files with a few hundred ids each, half of them without filters; and their index."""
    for at in range(FILES):
        numbers = range(at * ROWS, (at + 1) * ROWS)
        place.put(f"lake/day={at}/a.parquet", parquet((7 * n for n in numbers), blooms=at % 2 == 0))
    place.put("lake/notes.txt", b"nothing")
    bloomcli.index_build(place.path("lake"), ["id"], output=place.path("lake.bloom-index"))
    return place


def index_of(place: Place) -> str:
    return place.path("lake.bloom-index")


def test_files_that_the_index_rules_out_are_not_opened(lake: Place) -> None:
    for row in (0, 1234, FILES * ROWS - 1):
        report = same_rows(lake.path("lake"), [7 * row], index_of(lake))
        assert (report.rows, report.files, report.files_unopened) == (1, FILES, FILES - 1)
        assert (report.files_not_indexed, report.files_changed, report.index) == (0, 0, index_of(lake))
    nothing = same_rows(lake.path("lake"), [-5], index_of(lake))
    assert (nothing.files, nothing.files_unopened, nothing.exit_code) == (FILES, FILES, 1)


def test_only_the_row_groups_that_the_index_leaves_are_read(lake: Place) -> None:
    report = same_rows(lake.path("lake"), ALL, index_of(lake))
    assert report.rows == len(ALL)
    (few,) = {same_rows(lake.path("lake"), [n], index_of(lake)).row_groups_read for n in ALL[:3]}
    assert few == 1


@pytest.mark.parametrize("jobs", [1, 3])
def test_many_values_are_looked_up_in_an_index(lake: Place, jobs: int) -> None:
    wanted = pa.array([*range(0, FILES * ROWS * 7, 5), *range(10**7, 10**7 + 20_000)], pa.int64())
    without, _ = rows(lake.path("lake"), wanted)
    found, report = rows(lake.path("lake"), wanted, index=index_of(lake), jobs=jobs)
    assert found == without
    assert report.rows == len(without) > 400
    outside = pa.array(range(10**8, 10**8 + 1000), pa.int64())
    assert same_rows(lake.path("lake"), outside, index_of(lake)).rows == 0


def test_files_that_changed_are_searched_themselves_even_if_they_kept_their_size(lake: Place) -> None:
    same_size = parquet(7 * n + 70_000 for n in range(ROWS))
    assert len(same_size) == len(lake.get("lake/day=0/a.parquet") or b"")
    lake.put("lake/day=0/a.parquet", same_size)
    lake.put("lake/day=1/a.parquet", parquet(range(9_000_000, 9_000_400)))
    report = same_rows(lake.path("lake"), [70_007, 7, 9_000_123, 7 * 500], index_of(lake))
    assert (report.rows, report.files_changed, report.files_not_indexed) == (2, 2, 0)


def test_a_file_that_changes_after_it_was_listed_is_searched_whole(
    lake: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = 7 * (ROWS - 1)  # of the last row group, and now of the first
    open_source = find.open_source

    def changed_before(path: str) -> Any:
        lake.put("lake/day=0/a.parquet", parquet(7 * (ROWS - 1 - n) for n in range(ROWS)))
        return open_source(path)

    monkeypatch.setattr(find, "open_source", changed_before)
    found, _ = rows(lake.path("lake"), [wanted], index=index_of(lake), jobs=1)
    assert len(found) == 1


def test_a_new_file_is_searched_itself_and_one_that_is_gone_is_not_missed(lake: Place) -> None:
    lake.put("lake/day=9/new.parquet", parquet(range(8_000_000, 8_000_100)))
    lake.remove("lake/day=2/a.parquet")
    report = same_rows(lake.path("lake"), [8_000_050, 7 * 1000], index_of(lake))
    assert (report.rows, report.files, report.files_not_indexed) == (1, FILES, 1)


def test_a_column_of_another_type_is_looked_up_by_its_own_hash(lake: Place) -> None:
    lake.put("lake/day=3/a.parquet", parquet(range(5000, 5400), kind=pa.int32()))
    lake.put("lake/day=4/a.parquet", parquet((str(n) for n in range(6000, 6400)), kind=pa.string()))
    for value in (5200, 6200, 7 * 100):
        assert same_rows(lake.path("lake"), [value], index_of(lake)).files_changed == 2
    updated = bloomcli.index_update(lake.path("lake"), index_of(lake))
    assert (updated.added, updated.kept, updated.written) == (2, FILES - 2, True)
    assert {c.physical for c in bloomcli.index_inspect(index_of(lake)).columns} == {"INT64", "INT32", "BYTE_ARRAY"}
    for value in (5200, 6200, 7 * 100):
        report = same_rows(lake.path("lake"), [value], index_of(lake))
        assert (report.files_changed, report.rows) == (0, 1)
        assert report.files_unopened >= FILES - 2


def test_files_without_the_value_s_type_or_the_column_are_errors_with_an_index_too(lake: Place) -> None:
    lake.put("lake/day=4/a.parquet", parquet((f"text {n}" for n in range(100)), kind=pa.string()))
    sink = io.BytesIO()
    pq.write_table(pa.table({"else": [1, 2]}), sink)
    lake.put("lake/day=7/a.parquet", sink.getvalue())
    assert bloomcli.index_update(lake.path("lake"), index_of(lake)).added == 2
    report = same_rows(lake.path("lake"), "text 7", index_of(lake))
    assert (report.rows, report.failed) == (1, FILES)
    report = same_rows(lake.path("lake"), [7], index_of(lake))
    assert (report.rows, report.files_not_indexed) == (1, 1)


@pytest.mark.slow
def test_after_any_changes_an_old_index_and_an_updated_one_give_the_same_rows(lake: Place) -> None:
    seed = 17
    chance = random.Random(seed)
    for step in range(4):
        for _ in range(3):
            name = f"lake/day={chance.randrange(FILES + 2)}/a.parquet"
            if chance.random() < 0.3:
                if lake.get(name) is not None:
                    lake.remove(name)
                continue
            start = chance.randrange(0, 10**6)
            kind = chance.choice([pa.int64(), pa.int32()])
            lake.put(name, parquet(range(start, start + 300), kind=kind, blooms=chance.random() < 0.5))
        names = [item.path for item in lake.store.list(lake.path("lake"))]
        wanted = [*ALL[::5], *(chance.randrange(0, 10**6) for _ in range(100))]
        without, _ = rows(lake.path("lake"), wanted)
        present = without or rows(lake.path("lake"), list(range(0, 10**6, 50)))[0]
        same_rows(lake.path("lake"), [int(value) for _, _, value in present[:20]], index_of(lake))
        same_rows(lake.path("lake"), wanted, index_of(lake))
        updated = bloomcli.index_update(lake.path("lake"), index_of(lake))
        assert updated.files == sum(name.endswith(".parquet") for name in names), f"seed {seed}, step {step}"
        report = same_rows(lake.path("lake"), wanted, index_of(lake))
        assert (report.files_changed, report.files_not_indexed) == (0, 0)


def test_maybe_opens_only_files_that_the_index_does_not_know(lake: Place) -> None:
    from bloomcli.commands.find_values import Values
    from bloomcli.commands.options import FindOptions
    from bloomcli.finding.lake import Search

    def paths(value: int = 8_000_050) -> tuple[list[str], Any]:
        options = FindOptions(column="id", maybe=True)
        search = Search([lake.path("lake")], Values([str(value)]), options, index=index_of(lake))
        return [one.found.path for one in search.files() if one.found.row_groups_possible], search.report

    found, report = paths()
    assert (found, report.files_unopened) == ([], FILES)
    found, report = paths(7 * ROWS)
    assert [path.rpartition("/")[0][-5:] for path in found] == ["day=1"]
    assert report.files_unopened == FILES, "the index says which row groups may have the value"
    lake.put("lake/day=9/new.parquet", parquet(range(8_000_000, 8_000_100)))
    found, report = paths()
    assert [path.rpartition("/")[2] for path in found] == ["new.parquet"]
    assert (report.files_unopened, report.files_not_indexed) == (FILES, 1)


def test_another_column_is_an_error_that_says_how_to_index_it(lake: Place) -> None:
    with pytest.raises(UsageError, match="no column 'other', only id") as caught:
        bloomcli.find(lake.path("lake"), ["o1"], column="other", index=index_of(lake))
    assert caught.value.hint is not None
    assert "bloom index build PATHS --columns id,other -o " in caught.value.hint


def test_other_spellings_of_paths_are_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake/sub").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for name in ("a", "sub/b"):
        (tmp_path / f"lake/{name}.parquet").write_bytes(parquet(range(100)))
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    monkeypatch.chdir(tmp_path)
    bloomcli.index_build("lake", ["id"], output="lake.idx")
    index = str(tmp_path / "lake.idx")
    for spelled in ("lake", "./lake", "lake/", "link", f"{tmp_path}/lake", f"file://{tmp_path}/lake", "lake/../lake"):
        report = same_rows(spelled, [1000], index)
        assert (report.files_unopened, report.files_not_indexed) == (2, 0), spelled
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert same_rows("../lake", [1000], index).files_unopened == 2
    (tmp_path / "elsewhere/a.parquet").write_bytes(parquet(range(1000, 1100)))
    report = same_rows("a.parquet", [1050], index)
    assert (report.rows, report.files_not_indexed) == (1, 1)


def test_a_copy_with_the_old_time_in_another_directory_is_not_taken_for_the_indexed_file(tmp_path: Path) -> None:
    for folder, start in (("one", 0), ("two", 1000)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.parquet").write_bytes(parquet(range(start, start + 100)))
        os.utime(tmp_path / folder / "a.parquet", (10**9, 10**9))
    bloomcli.index_build(tmp_path / "one", ["id"], output=tmp_path / "one.idx")
    report = same_rows(str(tmp_path / "two"), [1050], str(tmp_path / "one.idx"))
    assert (report.rows, report.files_not_indexed) == (1, 1)


@pytest.mark.servers
def test_s3a_uris_are_the_same_objects(place: Place) -> None:
    place.put("lake/a.parquet", parquet(range(100)))
    path = place.path("lake")
    if not path.startswith("s3://"):
        return
    bloomcli.index_build(path, ["id"], output=place.path("lake.idx"))
    report = same_rows(path.replace("s3://", "s3a://"), [1000], place.path("lake.idx"))
    assert (report.files_unopened, report.files_not_indexed) == (1, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "stored", "texts"),
    [
        (pa.float64(), [0.0, -0.0, float("nan"), 1.5], ["0", "-0.0", "nan", "1.5", "2.5"]),
        (pa.bool_(), [True, False, None, True], ["true", "false"]),
        (pa.decimal128(9, 2), ["1.50", "2.25", None, "3"], ["1.5", "2.25", "4"]),
        (
            pa.timestamp("us"),
            [0, 10**15, None, 5],
            ["1970-01-01", "1970-01-01T00:00:00.000005", "2001-09-09T01:46:40"],
        ),
        (pa.string(), ["a", "", None, "é"], ["a", "", "é", "b"]),
        (pa.binary(), [b"\0", b"", None, b"\xff"], ["0x00", "0xff", "0x01"]),
        (pa.uint8(), [0, 255, None, 7], ["0", "255", "8"]),
    ],
    ids=str,
)
def test_every_type_is_found_by_an_index(
    tmp_path: Path, kind: pa.DataType, stored: list[Any], texts: list[str]
) -> None:
    values = [Decimal(v) if pa.types.is_decimal(kind) and v is not None else v for v in stored]
    for at, some in enumerate([values, values[:2], values[2:], [None]]):
        for blooms in (True, False):
            data = parquet(some, kind=kind, blooms=blooms and kind != pa.bool_())
            (tmp_path / f"{at}{blooms}.parquet").write_bytes(data)
    bloomcli.index_build(tmp_path, ["id"], output=tmp_path / "x.idx")
    for text in texts:
        report = same_rows(str(tmp_path), text, str(tmp_path / "x.idx"))
        assert (report.files_not_indexed, report.files_changed) == (0, 0)
    same_rows(str(tmp_path), texts * 300, str(tmp_path / "x.idx"))


def test_a_lake_that_was_moved_is_searched_whole_and_the_report_says_why(tmp_path: Path) -> None:
    from bloomcli.report.text_find import lines

    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/a.parquet").write_bytes(parquet(range(100)))
    bloomcli.index_build(tmp_path / "lake", ["id"], output=tmp_path / "x.idx")
    assert not any(
        "none of these files" in line for line in lines(same_rows(str(tmp_path), [7], str(tmp_path / "x.idx")))
    )
    (tmp_path / "lake/broken.parquet").write_bytes(b"PAR1")
    mixed = bloomcli.find(str(tmp_path / "lake"), 7, column="id", index=str(tmp_path / "x.idx"))
    assert sum(batch.num_rows for batch in mixed) == 1
    assert (mixed.report.files, mixed.report.failed, mixed.report.files_not_indexed) == (1, 1, 1)
    assert not any("none of these files" in line for line in lines(mixed.report))
    (tmp_path / "lake/broken.parquet").unlink()
    (tmp_path / "lake").rename(tmp_path / "moved")
    report = same_rows(str(tmp_path / "moved"), [7], str(tmp_path / "x.idx"))
    assert (report.rows, report.files_not_indexed) == (1, 1)
    assert list(lines(report))[-1].startswith("index: it has none of these files; files that were moved")


@pytest.mark.parametrize("jobs", [1, 4])
def test_files_behind_a_limit_are_not_counted_as_unopened(tmp_path: Path, jobs: int) -> None:
    for number in range(8):
        ids = pa.array(range(number * 100, number * 100 + 100))
        pq.write_table(pa.table({"id": ids}), tmp_path / f"{number}.parquet")
    index = str(tmp_path / "i.bloom-index")
    bloomcli.index_build(str(tmp_path), ["id"], output=index, fpp=0.0001)
    found = bloomcli.find(str(tmp_path), 150, column="id", index=index, limit=1, jobs=jobs)
    assert sum(batch.num_rows for batch in found) == 1
    report = found.report
    assert (report.limited, report.files, report.files_found, report.files_unopened) == (True, 2, 1, 1)
