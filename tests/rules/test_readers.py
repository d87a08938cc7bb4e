"""Readers: every one is known by name, says where its facts are from, and errs only about rules that exist."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from bloomcli.errors import UsageError
from bloomcli.model.file import Column, decimal_bytes
from bloomcli.rules import RULES, Group, When
from bloomcli.rules.reader_table import (
    BY_PRECISION,
    DECIMAL_WIDTH,
    FLOAT16,
    INTERVAL,
    ISSUE,
    NEGATIVE_ZERO,
    NOT_POWER_OF_TWO,
    NULL_STRUCTS,
    WIDENED,
    Kind,
    Reader,
)
from bloomcli.rules.readers import (
    READERS,
    any_size_refusal,
    decimal_width,
    everyone,
    reader,
    refusing,
    superseded,
)

FORMATS = {"parquet", "orc"}


@pytest.mark.parametrize("who", READERS.values(), ids=READERS)
def test_a_reader_says_where_its_facts_are_from_and_errs_only_in_what_it_probes(who: Reader) -> None:
    assert READERS[who.name] is who
    assert who.probes <= FORMATS
    tables = (who.wrong_about, who.refuses, who.misreads)
    assert who.any_size is None or not ({NOT_POWER_OF_TWO} & {*who.refuses, *who.misreads})
    assert "parquet" not in who.probes or any_size_refusal(who, "parquet") is None or NOT_POWER_OF_TWO in who.misreads
    facts = [
        who.known,
        *who.issues,
        *filter(None, [who.any_size]),
        *(fact for table in tables for fact in table.values()),
    ]
    assert all(fact.version and fact.text and not fact.text.endswith(".") for fact in facts)
    assert all(fact.kind is not Kind.THREAD for fact in who.wrong_about.values()), "a thread gives a note"
    assert {RULES[rule].group for table in tables[1:] for rule in table} <= {Group.STRUCTURE}
    assert {RULES[rule].group for rule in who.wrong_about} <= {Group.READERS}
    assert bool(who.zeros) == (NEGATIVE_ZERO in who.wrong_about)
    found = who.decimal_width is not None or who.decimal_digits is not None
    assert found == (DECIMAL_WIDTH in who.wrong_about)
    assert bool(who.widths) == (WIDENED in who.wrong_about)
    assert who.probes or not who.wrong_about
    assert "parquet" in who.probes or not set(who.wrong_about) - {NEGATIVE_ZERO, NULL_STRUCTS}
    assert pickle.loads(pickle.dumps(who)) == who


def test_every_rule_about_readers_has_a_reader_that_breaks_it() -> None:
    wrong = {rule for who in READERS.values() for rule in who.wrong_about} | {ISSUE}
    assert any(who.issues for who in READERS.values())
    assert wrong == {rule.id for rule in RULES.values() if rule.group is Group.READERS}
    assert {RULES[rule].when for rule in wrong} == {When.READERS}


def test_no_two_readers_share_a_name() -> None:
    names = [name for who in READERS.values() for name in (who.name, *who.aliases)]
    assert len(names) == len(set(names))
    assert names == [name.lower() for name in names]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("trino", "trino"),
        (" Trino ", "trino"),
        ("parquet_mr", "parquet-java"),
        ("PyArrow", "arrow"),
        ("pyorc", "orc-cpp"),
    ],
)
def test_readers_are_found_by_name_and_alias_in_any_case(name: str, found: str) -> None:
    assert reader(name) is READERS[found]


def test_an_unknown_reader_is_an_error_that_offers_near_names() -> None:
    with pytest.raises(UsageError, match="unknown reader 'trinno'") as raised:
        reader("trinno")
    assert (raised.value.hint or "").startswith("did you mean trino")
    with pytest.raises(UsageError) as raised:
        reader("")
    assert (raised.value.hint or "").startswith("readers: spark, ")


def test_a_decimals_bytes_are_the_fewest_that_hold_its_digits() -> None:
    for precision in range(1, 39):
        width = decimal_bytes(precision)
        assert 256 ** (width - 1) // 2 <= 10**precision - 1 < 256**width // 2, precision


def test_arrow_stores_decimals_at_the_bytes_that_their_precision_needs() -> None:
    import pyarrow.parquet as pq

    for precision in (1, 9, 18, 19, 20, 38):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"c": pa.array([], pa.decimal128(precision, 0))}), sink)
        assert pq.read_metadata(pa.BufferReader(sink.getvalue())).schema.column(0).length == decimal_bytes(precision)


def decimals(physical: str, precision: int = 20, length: int | None = None) -> Column:
    return Column(path="c", index=0, physical=physical, precision=precision, type_length=length)


@pytest.mark.parametrize(
    ("name", "column", "width"),
    [
        ("iceberg", decimals("FIXED_LEN_BYTE_ARRAY", 20, 16), 9),
        ("iceberg", decimals("BYTE_ARRAY", 9), 4),
        ("iceberg", decimals("INT64", 18), None),
        ("iceberg", decimals("FIXED_LEN_BYTE_ARRAY", 0, 16), None),
        ("datafusion-54", decimals("FIXED_LEN_BYTE_ARRAY", 20, 9), 16),
        ("datafusion-54", decimals("BYTE_ARRAY", 9), None),
        ("datafusion", decimals("FIXED_LEN_BYTE_ARRAY", 20, 9), None),
        ("spark", decimals("FIXED_LEN_BYTE_ARRAY", 20, 16), None),
        ("duckdb", decimals("FIXED_LEN_BYTE_ARRAY", 38, 16), None),
        ("duckdb", decimals("FIXED_LEN_BYTE_ARRAY", 39, 17), 8),
        ("duckdb", decimals("BYTE_ARRAY", 39), 8),
    ],
)
def test_the_width_at_which_a_reader_looks_decimals_up(name: str, column: Column, width: int | None) -> None:
    assert decimal_width(READERS[name], column) == width


def test_what_the_brief_of_each_engine_says() -> None:
    """The facts that findings hang on, so that an edit of the table above can't lose one unseen."""
    wrong = {name: set(who.wrong_about) for name, who in READERS.items()}
    assert {name for name in wrong if WIDENED in wrong[name]} == {"trino"}
    assert {name for name in wrong if "reader-millis" in wrong[name]} == {"iceberg"}
    assert {name for name in wrong if DECIMAL_WIDTH in wrong[name]} == {"iceberg", "datafusion-54", "duckdb"}
    assert {name for name in wrong if INTERVAL in wrong[name]} == {"duckdb"}
    assert {name for name in wrong if FLOAT16 in wrong[name]} == {"duckdb", "duckdb-1"}
    right = {name for name in wrong if NEGATIVE_ZERO not in wrong[name]}
    never = {"arrow", "arrow-rs", "arrow-go", "parquet-go", "hyparquet", "velox", "polars"}
    assert right == {"duckdb", "datafusion-54", "starrocks", "doris"} | never
    assert {name for name, who in READERS.items() if who.zeros_in != FORMATS} == {"clickhouse"}
    assert {name for name, who in READERS.items() if not who.probes} == never
    assert {name for name, who in READERS.items() if who.dictionary} >= {"spark", "parquet-java", "trino", "iceberg"}
    assert READERS["iceberg"].decimal_width == BY_PRECISION
    assert {name for name, who in READERS.items() if who.issues} == {"clickhouse", "starrocks", "doris"}
    assert refusing("filter-not-power-of-two") == "Arrow C++ and Velox refuse it, Impala misreads it"
    assert refusing("filter-too-large") == "Trino and Impala and Arrow C++ refuse it"
    assert refusing("filter-fpp") == ""


def test_everyone_is_each_present_release_and_those_of_tables_where_there_is_one() -> None:
    assert {who.name for who in everyone("orc", tables=False)} == {
        *("spark", "orc-java", "orc-cpp", "hive", "trino", "presto", "impala", "clickhouse")
    }
    assert {who.name for who in everyone("parquet", tables=False)} == {
        *("spark", "parquet-java", "trino", "duckdb", "datafusion", "impala", "clickhouse", "starrocks", "doris")
    }
    assert {who.name for who in everyone("parquet", tables=True)} - {
        who.name for who in everyone("parquet", tables=False)
    } == {"iceberg"}
    assert {who.name for who in superseded("parquet")} == {"duckdb-1", "datafusion-54"}
    assert superseded("orc") == everyone("mosaic", tables=True) == []
