"""`read_queries`: logs in all forms, and the lookups of their statements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from bloomcli.advice.queries import MOST_LITERALS, LiteralSample, read_queries
from bloomcli.advice.sql.statements import MOST_CHARACTERS
from bloomcli.errors import UnreadableError, UsageError
from bloomcli.model.advice import QueryLog
from bloomcli.model.file import Column
from tests.support.sql_logs import HITS, TPCH, TPCH_COLUMNS, tpch
from tests.support.sql_logs import log as mixed_log

Reads = Callable[..., QueryLog]


@pytest.fixture
def read(tmp_path: Path) -> Reads:
    """Reads a text as a log."""

    def of(
        text: str | bytes,
        dialect: str = "duckdb",
        tables: Sequence[str] = (),
        columns: Sequence[str | Column] | None = None,
        seed: int = 0,
    ) -> QueryLog:
        path = tmp_path / "queries.sql"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_queries([path], dialect=dialect, tables=tables, columns=columns, seed=seed)

    return of


def literals(log: QueryLog) -> dict[str, dict[str, int]]:
    """The values of each column."""
    return {column.column: dict(column.literals) for column in log.columns}


def unserved(log: QueryLog) -> dict[tuple[str, str | None], int]:
    """The number of unserved predicates by kind and column."""
    return {(item.kind, item.column): item.count for item in log.unserved}


class TestWhatCountsAsALookup:
    def test_equalities_and_in_lists_do_whichever_side_the_literal_is_on(self, read: Reads) -> None:
        log = read("SELECT * FROM t WHERE id = 5; SELECT 1 FROM t x WHERE 7 = x.id AND kind IN ('a', 'b')")
        assert literals(log) == {"id": {"5": 1, "7": 1}, "kind": {"a": 1, "b": 1}}
        assert [(c.column, c.lookups, c.statements) for c in log.columns] == [("id", 2, 2), ("kind", 2, 1)]
        assert (log.statements, log.about_table, log.unreadable, log.tables) == (2, 2, 0, (("t", 2),))

    def test_an_or_of_equalities_on_one_column_is_an_in_list(self, read: Reads) -> None:
        log = read("SELECT * FROM t WHERE id = 1 OR id = 2 OR id IN (3, 4)")
        assert literals(log) == {"id": {"1": 1, "2": 1, "3": 1, "4": 1}}
        assert log.unserved == ()

    def test_an_or_of_two_columns_is_not_served(self, read: Reads) -> None:
        log = read("SELECT * FROM t WHERE id = 1 OR other = 2")
        assert log.columns == ()
        assert unserved(log) == {("or", "id"): 1, ("or", "other"): 1}

    def test_an_or_looks_up_the_columns_that_all_its_branches_do(self, read: Reads) -> None:
        log = read("SELECT * FROM t WHERE (id = 1 AND a = 1) OR (id = 2 AND b = 1)")
        assert literals(log) == {"id": {"1": 1, "2": 1}}
        assert unserved(log) == {("or", "a"): 1, ("or", "b"): 1}

    def test_negations_are_turned_inside_out(self, read: Reads) -> None:
        log = read("SELECT * FROM t WHERE NOT (id <> 1 OR NOT kind = 'a') AND NOT (id IN (3))")
        assert literals(log) == {"id": {"1": 1}, "kind": {"a": 1}}
        assert unserved(log) == {("negation", "id"): 1}

    def test_a_range_of_one_value_is_an_equality(self, read: Reads) -> None:
        log = read("SELECT * FROM t WHERE day BETWEEN DATE '2024-01-01' AND DATE '2024-01-01' AND n BETWEEN 1 AND 2")
        assert literals(log) == {"day": {"2024-01-01": 1}}
        assert unserved(log) == {("range", "n"): 1}

    @pytest.mark.parametrize(
        ("dialect", "marker"),
        [
            ("spark", "?"), ("spark", ":id"), ("duckdb", "$1"), ("duckdb", "$id"), ("postgres", "$1"), ("trino", "?"),
            ("clickhouse", "{id:UInt64}"), ("tsql", "@id"), ("mysql", "?"), ("bigquery", "@id"),
        ],
    )  # fmt: skip
    def test_a_parameter_is_a_lookup_without_a_literal(self, read: Reads, dialect: str, marker: str) -> None:
        log = read(f"SELECT * FROM t WHERE id = {marker}", dialect)
        (column,) = log.columns
        assert (column.column, column.lookups, column.without_literal, column.literals) == ("id", 1, 1, ())

    def test_a_constant_that_the_engine_computes_is_a_lookup_without_a_literal(self, read: Reads) -> None:
        log = read("SELECT * FROM t WHERE day = current_date - INTERVAL '1' DAY AND id = abs(-5) AND x = random()")
        assert {c.column: c.without_literal for c in log.columns} == {"day": 1, "id": 1}
        assert unserved(log) == {("expression", "x"): 1}

    @pytest.mark.parametrize(
        ("predicate", "kind"),
        [
            ("id > 5", "range"), ("id BETWEEN 1 AND 3", "range"), ("name LIKE 'a%'", "like"),
            ("regexp_matches(name, 'a')", "like"), ("lower(name) = 'a'", "expression"), ("id + 1 = 5", "expression"),
            ("CAST(id AS VARCHAR) = '5'", "expression"), ("id::VARCHAR IN ('5')", "expression"),
            ("id <> 5", "negation"), ("id NOT IN (1, 2)", "negation"), ("id IS NULL", "null"), ("id = NULL", "null"),
            ("id IS NOT NULL", "null"), ("id IN (SELECT x FROM s)", "subquery"),
            ("id = (SELECT max(x) FROM s)", "subquery"), ("id = ANY (SELECT x FROM s)", "subquery"),
            ("id = n", "expression"), ("(id, n) IN ((1, 2), (3, 4))", "expression"),
            ("list_contains(tags, 'a')", "expression"),
        ],
    )  # fmt: skip
    def test_other_predicates_are_counted_as_not_served(self, read: Reads, predicate: str, kind: str) -> None:
        log = read(f"SELECT * FROM t WHERE {predicate}", tables=["t"])
        assert log.columns == ()
        assert [(item.kind, item.count) for item in log.unserved] == [(kind, 1)]

    def test_a_list_of_an_array_is_an_in_list(self, read: Reads) -> None:
        assert literals(read("SELECT * FROM t WHERE id = ANY (ARRAY[1, 2])", "postgres")) == {"id": {"1": 1, "2": 1}}

    def test_delete_update_and_merge_look_rows_up(self, read: Reads) -> None:
        log = read(
            """DELETE FROM t WHERE id = 1;
            UPDATE t SET kind = 'b', id = 9 WHERE id = 2;
            MERGE INTO t USING s ON t.id = s.id AND t.day = DATE '2024-01-01' WHEN MATCHED THEN DELETE;
            MERGE INTO t USING s ON t.id = s.id AND t.kind = 'z'
              WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE;
            INSERT INTO t SELECT * FROM t WHERE id = 3; INSERT INTO t VALUES (4, 'c');
            CREATE TABLE n AS SELECT * FROM t WHERE id = 5; CREATE VIEW v AS SELECT * FROM t WHERE id = 6""",
            "spark",
            ["t"],
        )
        assert literals(log) == {"id": {"1": 1, "2": 1, "3": 1, "5": 1}, "day": {"2024-01-01": 1}}
        assert unserved(log) == {("join", "id"): 2, ("join", "kind"): 1}

    def test_conditions_of_outer_joins_count_for_the_side_whose_rows_they_choose(self, read: Reads) -> None:
        log = read(
            """SELECT * FROM t LEFT JOIN s ON t.id = s.id AND t.a = 1;
            SELECT * FROM s LEFT JOIN t ON t.id = s.id AND t.b = 2;
            SELECT * FROM t RIGHT JOIN s ON t.c = 3; SELECT * FROM t FULL JOIN s ON t.d = 4;
            SELECT * FROM t LEFT JOIN s ON true WHERE t.e = 5""",
            tables=["t"],
        )
        assert literals(log) == {"b": {"2": 1}, "c": {"3": 1}, "e": {"5": 1}}
        assert unserved(log) == {("join", "id"): 2, ("join", "a"): 1, ("join", "d"): 1}


class TestNames:
    def test_aliases_subqueries_and_ctes_are_followed(self, read: Reads) -> None:
        log = read(
            """WITH a AS (SELECT id AS k, kind FROM db.t), b (x, y) AS (SELECT * FROM a)
            SELECT * FROM (SELECT k AS z FROM a WHERE kind = 'c') q WHERE q.z = 1;
            SELECT * FROM t AS o (id, kind) WHERE o.id = 2;
            SELECT * FROM (SELECT id FROM t UNION ALL SELECT other FROM t) u WHERE u.id = 3"""
        )
        assert literals(log) == {"id": {"1": 1, "2": 1, "3": 1}, "kind": {"c": 1}, "other": {"3": 1}}

    @pytest.mark.parametrize(
        "statement",
        [
            "SELECT * FROM (SELECT id FROM t ORDER BY id LIMIT 5) q WHERE id = 1",
            "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY day) FROM t) q WHERE id = 1",
            "WITH RECURSIVE q AS (SELECT id FROM t UNION ALL SELECT id + 1 FROM q) SELECT * FROM q WHERE id = 1",
        ],
    )
    def test_a_value_is_not_looked_up_below_a_subquery_that_needs_other_rows(
        self, read: Reads, statement: str
    ) -> None:
        assert read(statement).columns == ()

    def test_nested_columns_are_paths(self, read: Reads) -> None:
        columns = ["user.id", "user.address.city", "t.x", "tags.list.element"]
        log = read(
            """SELECT * FROM t WHERE user.id = 1 AND t.user.address.city = 'Oslo' AND o['x'] = 1;
            SELECT * FROM db.t o WHERE o.user['id'] = 2 AND (o.user).address.city = 'Rome';
            SELECT * FROM db.t WHERE list_contains(tags, 'a')""",
            tables=["t"],
            columns=columns,
        )
        assert literals(log) == {"user.id": {"1": 1, "2": 1}, "user.address.city": {"Oslo": 1, "Rome": 1}}
        assert ("expression", "tags.list.element") in unserved(log)

    @pytest.mark.parametrize(
        ("dialect", "name", "found"),
        [
            ("spark", "USERID", True), ("spark", "`userid`", True), ("trino", '"USERID"', True),
            ("duckdb", "userid", True), ("clickhouse", "userid", False), ("clickhouse", "UserID", True),
            ("postgres", "userid", True), ("postgres", '"UserID"', True), ("snowflake", "userid", True),
        ],
    )  # fmt: skip
    def test_names_are_compared_by_the_dialect_s_rules(
        self, read: Reads, dialect: str, name: str, found: bool
    ) -> None:
        log = read(f"SELECT * FROM t WHERE {name} = 1", dialect, columns=["UserID"])
        assert ("UserID" in literals(log)) == found
        assert bool(unserved(log)) != found

    def test_a_column_that_the_files_lack_is_listed(self, read: Reads) -> None:
        log = read("SELECT * FROM t WHERE dt = '2024-01-01' AND id = 1", columns=["id"])
        assert literals(log) == {"id": {"1": 1}}
        assert unserved(log) == {("not-in-files", "dt"): 1}

    def test_names_without_a_table_belong_to_the_table_that_has_such_a_column(self, read: Reads) -> None:
        log = read(
            "SELECT * FROM t, s WHERE t_id = s_id AND t_kind = 'a' AND s_kind = 'b'", "spark", ["t"], ["t_kind"]
        )
        assert literals(log) == {"t_kind": {"a": 1}}

    @pytest.mark.parametrize(
        ("given", "reads"),
        [
            ("t", ["t", "db.t", "cat.db.t", "DB.T"]), ("db.t", ["t", "db.t", "cat.db.t"]),
            ("lake/t.parquet", ["'lake/t.parquet'", "read_parquet('lake/t.parquet')"]),
        ],
    )  # fmt: skip
    def test_a_table_s_name_matches_with_and_without_its_schema(
        self, read: Reads, given: str, reads: list[str]
    ) -> None:
        text = ";".join(f"SELECT * FROM {name} WHERE id = 1" for name in [*reads, "x.other", "db.t.files"])
        assert read(text, tables=[given]).about_table == len(reads)

    def test_several_tables_without_a_name_are_an_error_that_names_them(self, read: Reads) -> None:
        with pytest.raises(UsageError, match=r"several tables: t, s") as caught:
            read("SELECT * FROM t WHERE id = 1; SELECT * FROM t; SELECT * FROM s")
        assert caught.value.hint == "--table-name t"

    def test_a_table_that_no_statement_reads_is_an_error(self, read: Reads) -> None:
        with pytest.raises(UsageError, match="no statement of the log reads orders; they read t"):
            read("SELECT * FROM t WHERE id = 1", tables=["orders"])


class TestTypes:
    def test_a_text_column_that_is_compared_with_a_number_is_cast_and_not_looked_up(self, read: Reads) -> None:
        columns = [
            Column(path="name", index=0, physical="BYTE_ARRAY", logical="STRING"),
            Column(path="id", index=1, physical="INT64"),
        ]
        log = read("SELECT * FROM t WHERE name = 5 AND id = '6'", "spark", columns=columns)
        assert literals(log) == {"id": {"6": 1}}
        assert unserved(log) == {("expression", "name"): 1}

    def test_what_the_columns_type_can_not_be_is_counted_as_what_no_filter_serves(self, read: Reads) -> None:
        columns = [
            Column(path="id", index=0, physical="INT64"),
            Column(path="day", index=1, physical="INT32", logical="DATE"),
        ]
        log = read("SELECT * FROM t WHERE id IN (7, 'n/a') AND day = '2026-13-45'", columns=columns)
        assert literals(log) == {"id": {"7": 1}}
        assert unserved(log) == {("expression", "id"): 1, ("expression", "day"): 1}

    def test_a_text_that_looks_like_binary_stays_text(self, read: Reads) -> None:
        plain = Column(path="raw", index=0, physical="BYTE_ARRAY")
        text = Column(path="name", index=1, physical="BYTE_ARRAY", logical="STRING")
        log = read("SELECT * FROM t WHERE raw = '0x41' AND name = '0x41'", columns=[plain, text])
        assert literals(log) == {"raw": {"0x" + b"0x41".hex(): 1}, "name": {"0x41": 1}}


class TestLogs:
    def test_semicolons_in_texts_names_and_comments_end_no_statement(self, read: Reads) -> None:
        log = read(
            """-- first; with a semicolon
            SELECT * FROM t WHERE a = ';' /* ; it's */ AND "b;c" = 'it''s; here';
            ;; SELECT * FROM t WHERE a = 'x' -- the end;"""
        )
        assert (log.statements, log.unreadable) == (2, 0)
        assert literals(log) == {"a": {";": 1, "x": 1}, "b;c": {"it's; here": 1}}

    def test_backslashes_escape_quotes_where_the_dialect_says_so(self, read: Reads) -> None:
        assert literals(read(r"SELECT * FROM t WHERE a = 'it\'s; x'; SELECT 1", "spark")) == {"a": {"it's; x": 1}}
        log = read("SELECT * FROM t WHERE a = 'C:\\'; SELECT * FROM t WHERE a = 'y'", "trino")
        assert literals(log) == {"a": {"C:\\": 1, "y": 1}}

    @pytest.mark.parametrize("step", [1, 2, 3, 7])
    def test_statements_are_split_alike_wherever_the_pieces_of_the_file_end(
        self, read: Reads, monkeypatch: pytest.MonkeyPatch, step: int
    ) -> None:
        text = "SELECT 'it''s; ß' FROM t WHERE a = 'é;' /* ; */ ; -- x;\nDELETE FROM t WHERE b = $$;$$;" * 3
        whole = read(text)
        monkeypatch.setattr("bloomcli.advice.sql.statements._READ_BYTES", step)
        assert read(text) == whole
        assert whole.statements == 6
        assert literals(whole) == {"a": {"é;": 3}, "b": {";": 3}}

    def test_lines_of_json_have_statements_under_query(self, read: Reads) -> None:
        lines = [
            {"query": "SELECT * FROM t WHERE a = 'x\ny;'", "user": "secret"},
            {"query": "SELECT * FROM t WHERE a = 'z'; SELECT * FROM t WHERE b = 1", "ms": 3},
            {"statement": "SELECT 1"},
        ]
        log = read("\n" + "\n".join(map(json.dumps, lines)) + "\nnot JSON\n[1]\n")
        assert literals(log) == {"a": {"x\ny;": 1, "z": 1}, "b": {"1": 1}}
        assert (log.statements, log.about_table, log.unreadable) == (6, 3, 3)
        assert log.unreadable_examples == (
            "the line has no text under query", "the line isn't JSON", "the line has no text under query",
        )  # fmt: skip

    def test_directories_and_several_files_are_one_log(self, tmp_path: Path) -> None:
        (tmp_path / "logs" / "deep").mkdir(parents=True)
        (tmp_path / "logs" / "a.sql").write_text("SELECT * FROM t WHERE id = 1")
        (tmp_path / "logs" / "deep" / "b.jsonl").write_text('{"query": "SELECT * FROM t WHERE id = 2"}')
        (tmp_path / "c.txt").write_text("\ufeffSELECT * FROM t WHERE id = 3;")
        log = read_queries([tmp_path / "logs", tmp_path / "c.txt"], dialect="duckdb")
        assert literals(log) == {"id": {"1": 1, "2": 1, "3": 1}}

    def test_statements_that_no_parser_reads_are_counted_and_the_rest_is_read(self, read: Reads) -> None:
        log = read("SELEC * FRM t; SELECT * FROM t WHERE id = 1; SELECT (((; DELETE FROM t WHERE id = 2")
        assert (log.statements, log.unreadable) == (4, 2)
        assert literals(log) == {"id": {"1": 1, "2": 1}}
        assert log.unreadable_examples == ("SELEC * FRM t", "SELECT (((")

    def test_reading_goes_on_behind_a_quote_that_is_not_closed(self, read: Reads) -> None:
        log = read("SELECT * FROM t WHERE a = 'oops;\nSELECT * FROM t WHERE id = 1;\nSELECT 1 FROM t;\n")
        assert log.unreadable == 1
        assert literals(log) == {"id": {"1": 1}}

    def test_a_statement_too_long_is_counted_and_the_next_one_is_read(self, read: Reads) -> None:
        values = ", ".join(map(str, range(MOST_CHARACTERS // 4)))
        log = read(f"SELECT * FROM t WHERE id IN ({values});\nSELECT * FROM t WHERE id = 1;\n")
        assert (log.statements, log.unreadable, literals(log)) == (2, 1, {"id": {"1": 1}})

    @pytest.mark.parametrize(
        ("nested", "times"), [("(", 100_000), ("NOT ", 50_000), ("- ", 50_000), ("a.", 20_000), ("f(", 50_000)]
    )
    def test_a_statement_nested_too_deeply_is_counted(self, read: Reads, nested: str, times: int) -> None:
        log = read(f"SELECT * FROM t WHERE {nested * times} x;\nSELECT * FROM t WHERE id = 1", "spark")
        assert (log.statements, log.unreadable, literals(log)) == (2, 1, {"id": {"1": 1}})

    @pytest.mark.parametrize("text", ["", "  -- nothing\n", ";;;", "SELEC * FRM t;", '{"query": 5}'])
    def test_a_log_without_a_readable_statement_is_an_error(self, read: Reads, text: str) -> None:
        with pytest.raises(UsageError, match="statement"):
            read(text)

    def test_what_is_no_text_is_an_error(self, read: Reads, fixtures: Path) -> None:
        with pytest.raises(UsageError, match="isn't text"):
            read_queries([fixtures / "parquet" / "spark_types.parquet"], dialect="duckdb")
        with pytest.raises(UsageError, match="an array of JSON"):
            read('[{"query": "SELECT 1"}]')

    def test_a_log_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableError):
            read_queries([tmp_path / "none.sql"], dialect="duckdb")

    def test_an_unknown_dialect_is_an_error_with_near_names(self, read: Reads) -> None:
        with pytest.raises(UsageError, match="did you mean duckdb"):
            read("SELECT 1", "duckdbb")


class TestValuesOfQueries:
    SECRETS = ("joe@example.org", "4111-1111", "98765", "c0ffee")

    def test_only_the_literals_hold_them(self, read: Reads, capfd: pytest.CaptureFixture[str]) -> None:
        log = read(
            """SELECT * FROM t WHERE email = 'joe@example.org' OR other = 98765;
            SELECT * FROM t WHERE email LIKE '%joe@example.org' AND pin > 98765 AND raw <> X'c0ffee';
            SELECT * FROM t WHERE lower(email) = 'joe@example.org' AND card = '4111-1111' AND e2 = 'joe@example.org';
            SELEC /* joe@example.org */ 98765 FROM t WHERE card = '4111-1111' AND it's = 'joe@example.org';
            ALTER TABLE t NONSENSE 'joe@example.org'; CALL proc('4111-1111')""",
            "spark",
        )
        assert literals(log)["card"] == {"4111-1111": 1}
        shown = repr(log) + "".join(capfd.readouterr())
        assert len(log.unserved) >= 5
        assert log.unreadable_examples
        assert not [secret for secret in self.SECRETS if secret in shown]

    def test_errors_hold_none(self, read: Reads) -> None:
        with pytest.raises(UsageError) as caught:
            read("SELEC 98765 FROM t WHERE card = '4111-1111' AND 'joe@example.org")
        assert not [secret for secret in self.SECRETS if secret in f"{caught.value} {caught.value.hint}"]


class TestBounds:
    def test_a_sample_is_exact_while_there_are_few_values(self) -> None:
        sample = LiteralSample(Random(0), most=3)
        for text in "abcabca":
            sample.add(text)
        assert (sample.sampled, sample.values()) == (False, (("a", 3), ("b", 2), ("c", 2)))

    def test_a_sample_of_many_is_uniform_over_lookups_and_seeded(self) -> None:
        def drawn(seed: int) -> dict[str, int]:
            sample = LiteralSample(Random(seed), most=200)
            for i in range(20_000):
                sample.add("hot" if i % 4 == 0 else f"cold{i}")
            assert sample.sampled
            return dict(sample.values())

        assert drawn(1) == drawn(1)
        shares = [drawn(seed)["hot"] / 200 for seed in range(40)]
        assert abs(sum(shares) / len(shares) - 0.25) < 0.02  # five standard errors
        assert all(sum(drawn(seed).values()) == 200 for seed in range(3))

    def test_a_column_of_very_many_values_keeps_a_bounded_number(self, read: Reads) -> None:
        statements = (
            f"SELECT * FROM t WHERE id IN ({', '.join(map(str, range(i, i + 1000)))})" for i in range(0, 30_000, 1000)
        )
        (column,) = read(";\n".join(statements)).columns
        assert (column.lookups, column.sampled) == (30_000, True)
        assert sum(count for _, count in column.literals) == MOST_LITERALS

    def test_a_value_too_long_to_keep_is_a_lookup_without_a_literal(self, read: Reads) -> None:
        (column,) = read(f"SELECT * FROM t WHERE a = '{'x' * 5000}' OR a = 'y'").columns
        assert (column.lookups, column.without_literal, column.literals) == (2, 1, (("y", 1),))


class TestWholeWorkloads:
    EXPECTED: ClassVar = {
        ("part", 2): {"p_size"}, ("nation", 7): {"n_name"}, ("part", 8): {"p_type"}, ("region", 8): {"r_name"},
        ("region", 2): {"r_name"}, ("customer", 3): {"c_mktsegment"}, ("region", 5): {"r_name"},
        ("lineitem", 10): {"l_returnflag"}, ("nation", 11): {"n_name"}, ("lineitem", 12): {"l_shipmode"},
        ("part", 16): {"p_size"}, ("part", 17): {"p_brand", "p_container"}, ("part", 19): {"p_brand", "p_container"},
        ("lineitem", 19): {"l_shipmode", "l_shipinstruct"}, ("nation", 20): {"n_name"},
        ("orders", 21): {"o_orderstatus"},
        ("nation", 21): {"n_name"},
    }  # fmt: skip
    """The columns of the tables that the queries look up by literals; none in the others."""

    @pytest.mark.parametrize(
        "dialect", ["spark", "trino", "duckdb", "clickhouse", "postgres", "snowflake", "bigquery"]
    )
    def test_tpch_looks_up_what_its_text_says(self, read: Reads, dialect: str) -> None:
        for number, text in enumerate(TPCH, 1):
            for table, columns in TPCH_COLUMNS.items():
                if re.search(rf"\b{table}\b", text) is None:
                    continue
                log = read(tpch(number, Random(number)), dialect, [table], columns.split())
                assert log.unreadable == 0
                found = {column.column for column in log.columns}
                assert found == self.EXPECTED.get((table, number), set()), (table, number)

    def test_clickbench_like_queries_are_read_in_clickhouse_s_dialect(self, read: Reads) -> None:
        log = read(
            "; ".join(HITS).format(user=-5, user2=6, user3=7, color="x", digit=3, day="2013-07-01", size=5),
            "clickhouse",
        )
        assert literals(log) == {
            "UserID": {"-5": 2, "6": 1, "7": 1}, "CounterID": {"62": 2}, "RefererHash": {"-5": 1},
            "TraficSourceID": {"-1": 1, "6": 1}, "DontCountHits": {"0": 1}, "IsRefresh": {"0": 1},
        }  # fmt: skip

    @pytest.mark.slow
    def test_a_log_of_thousands_of_statements_is_read(self, read: Reads) -> None:
        log = read(mixed_log(2000), "duckdb", ["lineitem"], TPCH_COLUMNS["lineitem"].split())
        assert (log.statements, log.unreadable) == (2000, 0)
