"""The comparison of values with the bounds and texts of a table's metadata, without a table."""

from __future__ import annotations

import json

import pytest

from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.finding.reachable import _in_order, _Known, _literal, _Looked
from bloomcli.model.table_statistics import ColumnStatistics, Kind
from bloomcli.tables.reachable import Keeper, Reachable, ReachedText

WANTED = "customer-2026-0000123"


def found(kind: Kind, values: list[str], low: object = None, high: object = None) -> tuple[set[str], set[str]]:
    bounds = ColumnStatistics(path="c", kind=kind, low=low, high=high)  # type: ignore[arg-type]
    return _Known(values, kind).of(bounds)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (WANTED.encode(), None, "equal"),
        (None, WANTED.encode(), "equal"),
        (WANTED[:16].encode(), None, "part"),
        (None, WANTED[:15].encode() + bytes([WANTED[15].encode()[0] + 1]), "part"),  # Iceberg raises the last one
        (None, WANTED[:16].encode() + "\U0010ffff".encode(), "part"),  # Delta appends a character
        (None, WANTED[:16].encode() + b"\x7f", "part"),
        (b"customer-2027", b"customer-2028", "none"),
        (b"", b"", "none"),
    ],
)
def test_a_bound_is_a_text_itself_or_its_beginning(low: bytes | None, high: bytes | None, expected: str) -> None:
    same, part = found(Kind.TEXT, [WANTED, "someone else"], low, high)
    assert same == ({WANTED} if expected == "equal" else set())
    assert part == ({WANTED} if expected == "part" else set())


def test_numbers_dates_and_bytes_are_compared_as_values() -> None:
    assert found(Kind.NUMBER, ["007", "8"], low=7, high=9) == ({"007"}, set())
    assert found(Kind.NUMBER, ["0.1"], low=0.1) == ({"0.1"}, set())
    assert found(Kind.NUMBER, ["0.1"], low=0.10000000149011612) == ({"0.1"}, set())  # of a float
    assert found(Kind.DATE, ["2026-11-26"], high=20783 * 86_400 * 10**9) == ({"2026-11-26"}, set())
    assert found(Kind.BYTES, ["0xcafe"], low=b"\xca\xfe") == ({"0xcafe"}, set())
    assert found(Kind.BYTES, ["0xcafebabe"], high=b"\xca\xff") == (set(), {"0xcafebabe"})
    assert found(Kind.NUMBER, ["no number"], low=7) == (set(), set())


def test_a_time_is_cut_to_milliseconds_so_that_its_bound_may_be_that_of_another_one() -> None:
    times = ["2026-11-26 10:00:00.123456", "2026-11-26 10:00:00.124"]
    low = 1795687200_123_000_000
    assert found(Kind.TIMESTAMP, times, low=low) == (set(), {times[0]})
    assert found(Kind.TIMESTAMP, times, high=low + 999_999) == (set(), {times[0]})


def test_statements_come_in_an_order_that_ends_what_they_name() -> None:
    expiry = (
        "CALL ice.system.expire_snapshots(table => 't', older_than => TIMESTAMP '2026-01-0{}', retain_last => 1{})"
    )
    statements = {
        "VACUUM t RETAIN 0 HOURS",
        expiry.format(2, ""),
        "ALTER TABLE t DROP BRANCH `b`",
        expiry.format(1, ""),
        "SET spark.databricks.delta.retentionDurationCheck.enabled = false",
        "CALL ice.system.rewrite_manifests(table => 't')",
        "ALTER TABLE t SET TBLPROPERTIES ('delta.checkpointInterval' = '1')",
        "REORG TABLE t APPLY (PURGE)",
        expiry.format(1, ", snapshot_ids => ARRAY(1)"),
        "DELETE FROM t WHERE id IN (...)",
    }
    assert _in_order(statements) == (
        "DELETE FROM t WHERE id IN (...)",
        "CALL ice.system.rewrite_manifests(table => 't')",
        "REORG TABLE t APPLY (PURGE)",
        "ALTER TABLE t DROP BRANCH `b`",
        expiry.format(1, ", snapshot_ids => ARRAY(1)"),
        expiry.format(2, ""),
        "SET spark.databricks.delta.retentionDurationCheck.enabled = false",
        "VACUUM t RETAIN 0 HOURS",
        "ALTER TABLE t SET TBLPROPERTIES ('delta.checkpointInterval' = '1')",
    )


def test_a_delete_of_a_value_that_looks_like_another_statement_is_not_left_out() -> None:
    expiry = "CALL ice.system.expire_snapshots(table => 't', older_than => TIMESTAMP '2026-01-01', retain_last => 1)"
    delete = "DELETE FROM t WHERE id IN ('a system.expire_b')"
    assert _in_order({expiry, delete}) == (delete, expiry)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("O'Brien \\", "string", r"'O\'Brien \\'"),
        ("a\nb", "varchar(9)", "CAST(X'610a62' AS STRING)"),
        ("0x00-ff", "binary", "X'00ff'"),
        ("7", "bigint", "CAST('7' AS BIGINT)"),
    ],
)
def test_values_are_printed_as_literals_of_their_type(text: str, kind: str, expected: str) -> None:
    assert _literal(text, kind) == expected


@pytest.mark.parametrize("value", ["O'Brien", "John (old) Smith", "a,b", "plain-7", "back\\slash"])
def test_values_with_spaces_and_quotes_are_found_in_the_conditions_of_commits(value: str) -> None:
    quoted = value.replace("\\", r"\\").replace("'", r"\'")
    predicate = json.dumps([f"(name#12 = '{quoted}')"])
    reached = Reachable(
        "/t", (), [], [], [ReachedText("1.json", json.dumps([predicate, ""]), Keeper((), ()))], 1, (1,)
    )
    looked = _Looked(None, "t", reached, Values([value, "other"]), FindOptions(column="name"))
    looked.look_in_metadata([value, "other"])
    assert looked.found == {value}


@pytest.mark.parametrize(
    ("column", "text", "is_found"),
    [
        ("n", '["(n#12 = 0)", ""]', True),
        ("N", '["(n#12 = 0)", ""]', True),
        ("n", '["interval 0 hours", ""]', False),
        ("a.b", '["(a#3.b = 0)", ""]', True),
        ("tags.element", '["array_contains(tags#4, 0)", ""]', True),
    ],
)
def test_a_text_counts_if_it_names_the_column_or_a_part_of_its_path(column: str, text: str, is_found: bool) -> None:
    reached = Reachable("/t", (), [], [], [ReachedText("1.json", text, Keeper((), ()))], 1, (1,))
    looked = _Looked(None, "t", reached, Values(["0"]), FindOptions(column=column))
    looked.look_in_metadata(["0"])
    assert looked.found == ({"0"} if is_found else set())
