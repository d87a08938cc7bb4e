"""What filters do for a reader depends on the types that it looks up, and on the dictionaries that it looks into."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import clickhouse
from support.golden import FIXTURES

import bloomcli
from bloomcli.formats.registry import open_file
from bloomcli.rules.readers import DICTIONARIES, GAINS, NEVER_LOOKS, Encoded, reader, uses
from bloomcli.storage.registry import open_source

GROUPS, ROWS = 4, 5000


def verdict(name: str, kind: str, encoded: int, formats: tuple[str, ...] = ("parquet",)) -> tuple[str, str]:
    """The verdict on a column in four row groups."""
    (use,) = uses(reader(name), formats, [Encoded("c", kind, GROUPS, encoded)])
    return use.verdict, use.reason


def test_types_that_a_reader_never_looks_up_gain_nothing_in_parquet() -> None:
    for name, kind in (("clickhouse", "DATE"), ("datafusion", "TIMESTAMP"), ("trino", "DECIMAL"), ("impala", "DATE")):
        for encoded in (0, GROUPS):
            assert verdict(name, kind, encoded) == (NEVER_LOOKS, f"looks no {kind} up in filters or dictionaries")
    assert verdict("clickhouse", "DATE", 0, ("orc",))[0] == GAINS
    assert verdict("spark", "DATE", 0)[0] == GAINS
    assert verdict("clickhouse", "INT64", 0)[0] == GAINS


def test_a_reader_gains_nothing_from_columns_that_it_is_not_known_to_read(tmp_path: Path) -> None:
    """In advice and in remarks. Neither names a reader of which it isn't known."""
    alp, variant = FIXTURES / "alp.parquet", FIXTURES / "spark_variant.parquet"
    for path, column, reader_name, reason in (
        (alp, "d", "duckdb", "isn't known to read ALP"),
        (alp, "d", "clickhouse", "isn't known to read ALP"),
        (alp, "plain", "duckdb", "skips row groups by filters"),
        (variant, "v:$.user.name", "spark", "isn't known to filter by fields of a VARIANT"),
        (variant, "v:$.user.name", "clickhouse", "skips row groups by filters"),
    ):
        file = open_file(open_source(path.as_posix()))
        (found,) = [c for c in file.leaves if c.name == column]
        encoded = Encoded(column, "X", 1, 0, file.properties(found))
        assert [use.reason for use in uses(reader(reader_name), ["parquet"], [encoded])] == [reason], column
    (use,) = bloomcli.advise(variant, columns=["v:$.user.name"], readers=["spark"]).uses
    assert (use.verdict, use.title) == (NEVER_LOOKS, "Spark")
    out = tmp_path / "added.parquet"
    added = bloomcli.add(alp, ["d", "plain"], output=out, replace=True, readers=["duckdb", "trino"])
    assert added.remarks[:2] == tuple(
        f"{title} isn't known to read ALP: filters on d may do nothing for it" for title in ("DuckDB", "Trino")
    )
    assert not bloomcli.add(alp, ["plain"], output=out, overwrite=True, replace=True, readers=["trino"]).remarks


def test_the_size_of_dictionaries_is_named_where_a_reader_looks_into_small_ones_only() -> None:
    found, reason = verdict("clickhouse", "INT64", GROUPS)
    assert found == DICTIONARIES
    assert "dictionaries of up to 1.0 MiB as stored" in reason
    assert "of up to" not in verdict("spark", "INT64", GROUPS)[1]


@pytest.mark.interop
def test_clickhouse_skips_by_filters_and_dictionaries_of_the_types_and_sizes_that_the_table_names(
    tmp_path: Path,
) -> None:
    at = [2 * (i * GROUPS % (ROWS * GROUPS) + i // ROWS) for i in range(ROWS * GROUPS)]
    table = pa.table(
        {
            "n": pa.array(at, pa.int64()),
            "d": pa.array(at, pa.float64()),
            "day": pa.array(at, pa.date32()),
            "small": [f"{i // 8 * 16:08}" for i in at],
            "large": [f"{i:08}{'x' * 300}" for i in at],
            "packed": [f"{i:08}{'x' * 300}" for i in at],
        }
    )
    path = tmp_path / "f.parquet"
    dictionaries = ["small", "large", "packed"]
    pq.write_table(
        table,
        path,
        row_group_size=ROWS,
        use_dictionary=dictionaries,
        dictionary_pagesize_limit=1 << 23,
        compression={"packed": "snappy"},
    )
    bloomcli.add(path, ["n", "d", "day"], in_place=True, fpp=1e-6)
    absent = {
        "n": "4001",
        "d": "4001",
        "day": "'1980-12-15'",
        "small": "'00004001'",
        "large": f"'00004001{'x' * 300}'",
    }
    absent["packed"] = absent["large"]
    with clickhouse.running() as house:

        def skips(column: str) -> bool:
            rows = house.ask(f"SELECT count() FROM file('{path}', Parquet) WHERE {column} = {absent[column]}")
            assert rows.rows == [[0]]
            return rows.read_rows < len(table)

        assert {column: skips(column) for column in absent} == {
            "n": True,
            "d": False,
            "day": False,
            "small": True,
            "large": False,
            "packed": True,
        }
    assert {"DOUBLE", "DATE"} <= reader("clickhouse").overlooks
