"""The policy's rules, each on a file that breaks it and a neighbour that doesn't; in every format that has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import bloomcli
from bloomcli.errors import UsageError
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding, ValidateReport
from bloomcli.policy.policy import ColumnPart, Limits, Part, Policy

ROWS = 3000
Write = Callable[..., Path]


def asking(**part: Any) -> Policy:
    """A policy from a file, for all files."""
    return Policy(path="bloom.toml", whole=Part(**part))


def with_id(report: ValidateReport, id_: str) -> list[Finding]:
    return [f for f in report.findings if f.id == id_]


@pytest.fixture(params=["parquet", "orc"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    """Writes a table with 3 row groups of 1,000 rows in either format, with filters on its columns."""

    def written(table: dict[str, Any], columns: list[str] | None = None, **options: Any) -> Path:
        plain, path = tmp_path / "plain", tmp_path / f"f.{request.param}"
        if request.param == "parquet":
            pq.write_table(pa.table(table), plain, row_group_size=1000, use_dictionary=False)
        else:
            orc.write_table(pa.table(table), plain, row_index_stride=1000)
        bloomcli.add(plain, columns or list(table), output=path, overwrite=True, **options)
        return path

    return written


# --- filter-required


def test_a_missing_required_filter_is_found_and_an_existing_one_is_not(write: Write) -> None:
    path = write({"id": list(range(ROWS)), "name": ["n"] * ROWS}, ["id"])
    assert with_id(bloomcli.validate(path, policy=asking(require=("id",))), "filter-required") == []
    (finding,) = with_id(bloomcli.validate(path, policy=asking(require=("id", "name"))), "filter-required")
    assert (finding.column, finding.severity) == ("name", Severity.ERROR)
    assert finding.message.startswith("no filter in ")
    assert finding.places == ("0-2" if path.suffix == ".parquet" else "0")
    assert finding.hint == f"`bloom add {path} --columns name --in-place`"


@pytest.mark.parametrize(
    ("file", "column", "reason"),
    [
        ("parquet/duckdb_types.parquet", "flag", "BOOLEAN: it has two values"),
        ("orc/java_bare.orc", "flag", "boolean: it has two values"),
        ("mosaic/released_types.mosaic", "time", "TIME(3): the draft has no filters for such values"),
    ],
)
def test_no_hint_adds_a_filter_that_the_column_can_t_have(file: str, column: str, reason: str) -> None:
    path = Path(__file__).parents[2] / "fixtures" / file
    (finding,) = with_id(bloomcli.validate(path, policy=asking(require=(column,))), "filter-required")
    with pytest.raises(UsageError) as dumped:
        bloomcli.dump(path, column=column)
    for hint in (finding.hint, dumped.value.hint):
        assert hint is not None
        assert hint.startswith("the column can't have a filter")
        assert reason in hint


def test_a_policys_column_that_a_file_lacks_is_a_finding_and_a_glob_that_matches_none_isnt(write: Write) -> None:
    path = write({"id": list(range(ROWS))})
    (finding,) = with_id(bloomcli.validate(path, policy=asking(require=("idd", "user.*"))), "filter-required")
    assert (finding.message, finding.column) == ("the file has no such column", "idd")
    assert finding.hint == "did you mean id?"
    path = write({"total ": list(range(ROWS))})
    (finding,) = with_id(bloomcli.validate(path, policy=asking(require=("total",))), "filter-required")
    assert finding.hint == "did you mean 'total '?", "the space is seen"


def test_a_required_glob_means_every_column_that_it_matches(write: Write) -> None:
    path = write({"user_id": list(range(ROWS)), "user_name": ["n"] * ROWS, "rest": ["r"] * ROWS}, ["user_id"])
    part = ColumnPart(names=("user_*",), limits=Limits(require=True))
    found = with_id(bloomcli.validate(path, policy=asking(columns=(part,))), "filter-required")
    assert [f.column for f in found] == ["user_name"]


# --- filter-fpp


def test_a_rate_above_the_limit_is_found_for_the_column_that_has_it(write: Write) -> None:
    path = write({"id": list(range(ROWS)), "other": list(range(ROWS, 2 * ROWS))}, fpp=0.1)
    part = ColumnPart(names=("other",), limits=Limits(max_fpp=0.5))
    report = bloomcli.validate(path, policy=asking(max_fpp=0.000001, columns=(part,)))
    found = with_id(report, "filter-fpp")
    assert {f.column for f in found} == {"id"}
    assert len(found) == 3
    assert not report.ok
    assert with_id(bloomcli.validate(path, max_fpp=0.5), "filter-fpp") == []


def test_in_orc_the_stride_sets_the_size_and_only_the_rate_that_was_requested_can_be_too_low(tmp_path: Path) -> None:
    orc.write_table(pa.table({"id": [1, 2] * 500}), tmp_path / "plain", row_index_stride=1000)
    bloomcli.add(tmp_path / "plain", ["id"], output=tmp_path / "usual", fpp=0.01)
    bloomcli.add(tmp_path / "plain", ["id"], output=tmp_path / "low", fpp=1e-9)
    assert bloomcli.validate(tmp_path / "usual", max_oversize=1.1).ok, "two values, but the stride is 1,000"
    (finding,) = with_id(bloomcli.validate(tmp_path / "low", max_oversize=2), "filter-oversized")
    assert finding.hint == f"`bloom add {tmp_path / 'low'} --replace --fpp 0.009 --columns id --in-place`"
    assert bloomcli.validate(tmp_path / "low", max_oversize=5).ok


# --- profit


def test_sorted_columns_are_pruned_by_min_and_max_already(write: Write) -> None:
    shuffled = [i * 7919 % 4001 for i in range(ROWS)]
    report = bloomcli.validate(write({"sorted": list(range(ROWS)), "shuffled": shuffled}), policy=asking())
    assert [f.column for f in with_id(report, "profit-sorted")] == ["sorted"]
    falling = bloomcli.validate(write({"falling": list(range(ROWS, 0, -1))}), policy=asking())
    assert [f.column for f in with_id(falling, "profit-sorted")] == ["falling"]


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize(("files", "removes"), [(1, True), (6, False)])
def test_advise_alone_says_whether_to_remove_the_filters_of_sorted_files(
    files: int, removes: bool, tmp_path: Path
) -> None:
    for file in range(files):  # each file is sorted, and has values of the whole range
        table = pa.table({"id": [n * files + file for n in range(ROWS)]})
        pq.write_table(table, tmp_path / f"{file}.parquet", row_group_size=ROWS // 8)
    bloomcli.add([tmp_path], ["id"], in_place=True)
    notes = bloomcli.gate([tmp_path], policy=asking()).findings
    assert [f.id for f in notes] == ["profit-sorted"] * files
    assert {(f.hint or "").split("`")[1] for f in notes} == {f"bloom advise {f.path} --columns id" for f in notes}
    advice = bloomcli.advise([tmp_path], columns=["id"])
    assert (advice.upkeep == f"bloom remove {tmp_path} --columns id --in-place") is removes
    assert (advice.command, advice.upkeep is None) == (None, not removes)


def test_ranges_that_share_one_value_arent_disjoint(write: Write) -> None:
    values = list(range(ROWS))
    values[1000] = values[999]
    assert with_id(bloomcli.validate(write({"id": values}), policy=asking()), "profit-sorted") == []


def test_two_row_groups_are_too_few_to_call_a_column_sorted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": list(range(20))}), tmp_path / "plain", row_group_size=10)
    bloomcli.add(tmp_path / "plain", ["id"], output=tmp_path / "f")
    assert bloomcli.validate(tmp_path / "f", policy=asking()).findings == ()


def test_nothing_is_said_of_columns_without_statistics(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": list(range(30))}), tmp_path / "plain", row_group_size=10, write_statistics=False)
    bloomcli.add(tmp_path / "plain", ["id"], output=tmp_path / "f")
    assert bloomcli.validate(tmp_path / "f", policy=asking()).findings == ()


@pytest.mark.parametrize(
    ("readers", "encoded", "expected"),
    [
        (("spark",), True, 1),
        (("spark", "parquet-java"), True, 1),
        (("spark", "duckdb"), True, 0),
        (("spark",), False, 0),
        ((), True, 0),
    ],
)
def test_a_dictionary_serves_only_where_all_readers_use_it_and_all_pages_do(
    tmp_path: Path, readers: tuple[str, ...], encoded: bool, expected: int
) -> None:
    table = pa.table({"status": [f"s{i * 7 % 50}" for i in range(ROWS)]})
    pq.write_table(table, tmp_path / "plain", row_group_size=1000, use_dictionary=encoded)
    bloomcli.add(tmp_path / "plain", ["status"], output=tmp_path / "f")
    report = bloomcli.validate(tmp_path / "f", policy=asking(readers=readers))
    assert len(with_id(report, "profit-dictionary")) == expected


# --- severities, and rules switched off


def test_a_policy_sets_severities_and_switches_rules_off_with_their_reasons(write: Write) -> None:
    path = write({"day": [i // 1000 for i in range(ROWS)], "id": list(range(ROWS))})
    strict = asking(severity={"profit-constant": Severity.ERROR})
    report = bloomcli.validate(path, policy=strict)
    assert not report.ok
    assert report.findings[0].id == "profit-constant", "the most severe first"
    off = asking(severity={"profit-constant": Severity.ERROR}, off={"profit-constant": "old readers"})
    report = bloomcli.validate(path, policy=off)
    assert report.ok
    assert with_id(report, "profit-constant")[0].off == "old readers"
    part = ColumnPart(names=("id",), limits=Limits(), off={"profit-constant": "x", "profit-sorted": "y"})
    report = bloomcli.validate(path, policy=asking(severity={"profit-constant": Severity.ERROR}, columns=(part,)))
    assert [f.off for f in with_id(report, "profit-constant")] == [None], "of another column"
    assert [f.off for f in with_id(report, "profit-sorted")] == ["y"]
