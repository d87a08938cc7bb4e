"""`--size tight`: filters of any number of blocks, where every named reader takes them."""

from __future__ import annotations

import random
from pathlib import Path

import mosaic  # noqa: F401  it writes the Mosaic file
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support import mosaicfiles
from support.cli import Bloom

import bloomcli
from bloomcli.errors import UsageError
from bloomcli.filters import sizing
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.rules.reader_table import NOT_POWER_OF_TWO
from bloomcli.rules.readers import READERS

ROWS = 10_000
NAMED = "spark,trino,duckdb,clickhouse,datafusion"
TIGHT = ("--size", "tight", "--readers", NAMED)


def table(rows: int = ROWS) -> pa.Table:
    source = random.Random(3)
    return pa.table(
        {
            "id": pa.array([source.getrandbits(60) for _ in range(rows)]),
            "name": [f"n{source.getrandbits(50)}" for _ in range(rows)],
            "few": [f"f{i % 70}" for i in range(rows)],
            "score": [0.0 if i % 9 == 0 else source.random() for i in range(rows)],
            "none": pa.array([None] * rows, pa.int32()),
        }
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sizes") / "orders.parquet"
    pq.write_table(table(), path, row_group_size=ROWS // 2, use_dictionary=["few"])
    return path


@pytest.fixture
def path(source: Path, tmp_path: Path) -> Path:
    target = tmp_path / "orders.parquet"
    target.write_bytes(source.read_bytes())
    return target


def sizes(path: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for fact in bloomcli.inspect(path).filters:
        found.setdefault(fact.column, []).append(fact.bitset_bytes or 0)
    return found


@pytest.mark.parametrize("fpp", [0.1, 0.01, 0.001])
def test_tight_filters_meet_the_rate_with_fewer_bytes_and_hold_every_value(
    bloom: Bloom, path: Path, fpp: float
) -> None:
    columns = ["id", "name", "few", "score", "none"]
    powers = bloomcli.add(
        path, columns, fpp=fpp, output=path.with_name("powers.parquet"), readers=["spark", "duckdb"]
    )
    dry = bloom("add", path, "-c", ",".join(columns), "--fpp", fpp, *TIGHT, "--dry-run", "-f", "json").json
    made = bloom("add", path, "-c", ",".join(columns), "--fpp", fpp, *TIGHT, "--in-place", "-f", "json").json
    for power, planned, change in zip(powers.changes, dry["changes"], made["changes"], strict=True):
        assert change["fpp"] <= fpp
        assert change["bitset_bytes"] <= planned["bitset_bytes"]
        assert change["bitset_bytes"] <= (power.bitset_bytes or 0)
        if change["column"] in {"id", "name"}:
            assert planned["bitset_bytes"] < 1.15 * change["bitset_bytes"] + 128
    tight = sizes(path)
    needed = sizing.tight_bytes(ROWS // 2, fpp)
    assert all(0.95 * needed < size < 1.05 * needed for size in (*tight["id"], *tight["name"]))
    assert any(size & (size - 1) for size in tight["few"]) or fpp == 0.1, "96 bytes do at 1 %, 160 at 0.1 %"
    assert tight["none"] == [32, 32]
    report = bloomcli.validate(path, deep=True, readers=NAMED.split(","), max_fpp=fpp, max_oversize=1)
    assert {finding.id for finding in report.findings} <= {"reader-issue"}, "a note about ClickHouse"
    assert report.values_checked > 3 * ROWS


def test_a_second_run_has_nothing_to_do_and_remove_restores_the_file(bloom: Bloom, source: Path, path: Path) -> None:
    assert bloom("add", path, "-c", "id,few", *TIGHT, "--in-place").code == 0
    before = path.read_bytes()
    for options in (TIGHT, (*TIGHT, "--fpp", "0.01"), ("--fpp", "0.01"), (*TIGHT, "--max-bytes", "12KiB")):
        again = bloom("add", path.parent, "-c", "id,few", *options, "--in-place", "-f", "json").json
        assert [row["reason"] for row in again["rows"]] == ["the columns have filters already"], options
    folded = bloom("fold", path, *TIGHT, "--in-place", "-f", "json").json
    assert {change["action"] for change in folded["changes"]} == {"keep"}
    assert path.read_bytes() == before
    assert bloom("add", path, "-c", "name", *TIGHT, "--in-place").code == 0, "another column's filters join them"
    assert set(sizes(path)) == {"id", "few", "name"}
    assert bloom("remove", path, "--in-place").code == 0
    assert path.read_bytes() == source.read_bytes()


def test_powers_of_two_and_tight_filters_replace_each_other(bloom: Bloom, path: Path) -> None:
    assert bloom("add", path, "-c", "id", "--in-place").code == 0
    assert sizes(path) == {"id": [8192, 8192]}
    assert bloom("add", path, "-c", "id", *TIGHT, "--replace", "--in-place").code == 0
    assert all(6000 < size < 7000 for size in sizes(path)["id"])
    assert bloom("add", path, "-c", "id", "--replace", "--in-place").code == 0
    assert sizes(path) == {"id": [8192, 8192]}


def test_max_bytes_and_ndv_go_with_tight_sizes(bloom: Bloom, path: Path) -> None:
    capped = path.with_name("capped.parquet")
    assert bloom("add", path, "-c", "id", *TIGHT, "--max-bytes", "5000", "-o", capped).code == 0
    assert sizes(capped) == {"id": [4992, 4992]}
    by_number = path.with_name("by_number.parquet")
    assert bloom("add", path, "-c", "id,few", *TIGHT, "--ndv", "5000", "-o", by_number).code == 0
    assert set(sizes(by_number)["id"] + sizes(by_number)["few"]) == {sizing.tight_bytes(5000, 0.01)}
    small = path.with_name("small.parquet")
    assert bloom("add", path, "-c", "id", *TIGHT, "--ndv", "5000", "--max-bytes", "1000", "-o", small).code == 0
    assert sizes(small) == {"id": [992, 992]}
    assert bloomcli.validate(small, deep=True, readers=["spark"]).findings == ()


@pytest.mark.parametrize("kept", [0, 8 * 4999])
def test_a_chunk_with_more_values_than_are_kept_is_read_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(parquet_limits, "HASHES_KEPT_BYTES", kept)
    report = bloomcli.add(path, ["id", "name"], size="tight", readers=["spark"], in_place=True)
    assert all(change.fpp is not None and change.fpp <= 0.01 for change in report.changes)
    assert all(6000 < size < 7500 for column in sizes(path).values() for size in column)
    assert bloomcli.validate(path, deep=True, readers=["spark"]).findings == ()


def test_fold_makes_oversized_filters_tight(bloom: Bloom, path: Path) -> None:
    assert bloom("add", path, "-c", "id,few", "--ndv", "1000000", "--in-place").code == 0
    powers = path.with_name("powers.parquet")
    assert bloom("fold", path, "-o", powers).code == 0
    assert bloom("fold", path, *TIGHT, "--in-place").code == 0
    assert {column: max(found) for column, found in sizes(powers).items()} == {"id": 8192, "few": 128}
    assert all(size < 6900 for size in sizes(path)["id"])
    assert all(size <= 128 for size in sizes(path)["few"])
    assert bloomcli.validate(path, deep=True, readers=["spark"], max_fpp=0.01).findings == ()
    before = path.read_bytes()
    again = bloom("fold", path.parent, "-c", "id,few", *TIGHT, "--in-place", "-f", "json").json
    assert {row["status"] for row in again["rows"]} == {"skipped"}, again
    assert path.read_bytes() == before


def test_a_bit_that_folding_does_not_explain_is_still_stray(path: Path) -> None:
    bloomcli.add(path, ["id"], ndv=1_000_000, in_place=True)
    bloomcli.fold(path, size="tight", readers=["spark"], in_place=True)
    found = bloomcli.inspect(path).filters[0]
    data = bytearray(path.read_bytes())
    end = (found.offset or 0) + (found.length or 0)
    flipped = [at for at in range(end - 400, end) if data[at] == 0][:8]
    for at in flipped:
        data[at] = 0x81
    path.write_bytes(data)
    report = bloomcli.validate(path, deep=True, readers=["spark"])
    assert [finding.id for finding in report.findings] == ["filter-stray-bits"]
    stray = int(report.findings[0].message.partition(" ")[0])
    assert len(flipped) <= stray <= 2 * len(flipped), "few of them may happen to complete a value of a block nearby"


def test_without_readers_the_error_names_the_option(bloom: Bloom, path: Path) -> None:
    for command in (["add", path, "-c", "id"], ["fold", path]):
        result = bloom(*command, "--size", "tight", "--in-place")
        assert result.code == 2
        assert "--size tight needs the names of the files' readers" in result.err
        assert "hint: --readers spark,duckdb" in result.err


@pytest.mark.parametrize("who", READERS.values(), ids=READERS)
def test_each_reader_has_its_sizes_with_evidence_in_add_fold_and_validate(
    bloom: Bloom, source: Path, path: Path, who: object
) -> None:
    name, title = str(getattr(who, "name", "")), str(getattr(who, "title", ""))
    refuses = READERS[name].refuses.get(NOT_POWER_OF_TWO)
    misreads = READERS[name].misreads.get(NOT_POWER_OF_TWO)
    fact = misreads or refuses
    if "parquet" in READERS[name].probes:
        assert (fact is None) == (READERS[name].any_size is not None), "every reader's sizes are known"
    assert bloom("add", path, "-c", "id", *TIGHT, "--in-place").code == 0
    table = ("--table-schema", _schema(path.parent)) if READERS[name].tables_only else ()
    for command in (["add", source, "-c", "id", *table], ["fold", path]):
        result = bloom(*command, "--size", "tight", "--readers", f"spark,{name}", "--dry-run")
        assert result.code == (0 if fact is None else 2)
        if fact is not None:
            assert f"{title} {'misreads' if misreads else 'refuses'} such filters ({fact.kind.value}, " in result.err
            assert f"or {name} out of the readers" in result.err
    found = [f for f in bloomcli.validate(path, readers=[name]).findings if f.id == NOT_POWER_OF_TWO]
    assert len(found) == (0 if fact is None else 2)
    assert {finding.severity.value for finding in found} <= {"error" if misreads else "warning"}
    assert all(title in finding.message for finding in found)


def _schema(folder: Path) -> Path:
    path = folder / "schema.sql"
    path.write_text("id BIGINT, name STRING, few STRING, score DOUBLE, none INT")
    return path


def test_without_readers_validate_names_every_reader_that_refuses_the_size(path: Path) -> None:
    bloomcli.add(path, ["id"], size="tight", readers=["spark"], in_place=True)
    found = bloomcli.validate(path).findings
    assert [finding.id for finding in found] == [NOT_POWER_OF_TWO] * 2
    assert all("Arrow C++ and Velox refuse it, Impala misreads it" in finding.message for finding in found)


def test_a_severity_of_the_policy_keeps_the_finding_where_all_readers_take_the_size(path: Path) -> None:
    bloomcli.add(path, ["id"], size="tight", readers=["spark"], in_place=True)
    policy = path.with_name("bloom.toml")
    policy.write_text('readers = ["spark"]\n')
    assert [f.id for f in bloomcli.validate(path, policy=policy).findings] == []
    policy.write_text('readers = ["spark"]\nseverity.filter-not-power-of-two = "error"\n')
    assert {f.severity.value for f in bloomcli.validate(path, policy=policy).findings} == {"error"}


def test_a_policy_asks_for_tight_sizes_and_the_option_overrides_it(bloom: Bloom, path: Path) -> None:
    policy = path.with_name("bloom.toml")
    policy.write_text('size = "tight"\nreaders = ["spark", "duckdb"]\nrequire = ["id"]\n')
    assert bloom("add", path, "--policy", policy, "-o", path.with_name("tight.parquet")).code == 0
    assert all(6000 < size < 7000 for size in sizes(path.with_name("tight.parquet"))["id"])
    powers = path.with_name("powers.parquet")
    assert bloom("add", path, "--policy", policy, "--size", "power-of-two", "-o", powers).code == 0
    assert sizes(powers) == {"id": [8192, 8192]}
    policy.write_text('size = "tight"\nrequire = ["id"]\n')
    result = bloom("add", path, "--policy", policy, "--in-place")
    assert result.code == 2
    assert "needs the names of the files' readers" in result.err
    policy.write_text('require = ["id"]\n[[files]]\npaths = ["*.parquet"]\nsize = "tight"\nreaders = ["impala"]\n')
    assert "Impala misreads such filters" in bloom("add", path, "--policy", policy, "--in-place").err


@pytest.mark.parametrize("size", ["snug", "Tight", ""])
def test_an_unknown_size_is_an_error(bloom: Bloom, path: Path, size: str) -> None:
    assert bloom("add", path, "-c", "id", "--size", size, "--in-place").code == 2
    for function in (lambda: bloomcli.add(path, ["id"], size=size), lambda: bloomcli.fold(path, size=size)):
        with pytest.raises(UsageError, match="size takes 'power-of-two' or 'tight', not"):
            function()
    policy = path.with_name("bloom.toml")
    policy.write_text(f'size = "{size}"\n')
    assert "unknown size" in bloom("validate", path, "--policy", policy).err


def test_an_orc_file_has_the_same_filters_with_tight_sizes(bloom: Bloom, tmp_path: Path) -> None:
    path = tmp_path / "orders.orc"
    orc.write_table(table(), path)
    assert bloom("add", path, "-c", "id", *TIGHT, "-o", tmp_path / "tight.orc").code == 0
    assert bloom("add", path, "-c", "id", "-o", tmp_path / "usual.orc").code == 0
    assert (tmp_path / "tight.orc").read_bytes() == (tmp_path / "usual.orc").read_bytes()


def test_mosaic_files_and_filters_of_the_drafts_have_powers_of_two_only(
    bloom: Bloom, path: Path, tmp_path: Path
) -> None:
    draft = bloom("add", path, "-c", "id", "--variant", "parquet-2018-header", *TIGHT, "--in-place")
    assert (draft.code, "allows only powers of two" in draft.err) == (2, True)
    mosaic_path = mosaicfiles.write(tmp_path / "orders.mosaic", table().select(["id", "name"]))
    result = bloom("add", mosaic_path, "-c", "id", "--mosaic-draft", *TIGHT, "--in-place")
    assert (result.code, "Mosaic allows only powers of two" in result.err) == (2, True)
    assert "leave --size tight out" in result.err


def test_an_oversized_filter_with_an_odd_number_of_blocks_is_built_again_as_it_cant_be_halved(path: Path) -> None:
    bloomcli.add(path, ["few"], size="tight", ndv=100_000, readers=["spark"], in_place=True)
    size = sizes(path)["few"][0]
    assert size // 32 % 2 == 1 or size // 32 % 4, "it can be halved once at most"
    found = bloomcli.validate(path, readers=["spark"], max_oversize=4).findings
    assert [finding.id for finding in found] == ["filter-oversized"] * 2
    assert all("bloom add" in (finding.hint or "") and "--replace" in (finding.hint or "") for finding in found)
