"""A table's schema from JSON and SQL: the types, the paths that files have for them, and errors with their place."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import write

from bloomcli import limits
from bloomcli.errors import UsageError
from bloomcli.policy import table_schema
from bloomcli.policy.table_schema import AnyType, Group, TableSchema, TableType, group, parse, read

SPARK = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "small", "type": "byte", "nullable": True, "metadata": {}},
        {"name": "price", "type": "decimal(9,2)", "nullable": True, "metadata": {}},
        {"name": "label", "type": "varchar(3)", "nullable": True, "metadata": {}},
        {"name": "span", "type": "interval day to second", "nullable": True, "metadata": {}},
        {"name": "text", "type": "string collate UNICODE_CI", "nullable": True, "metadata": {}},
        {"name": "tags", "type": {"type": "array", "elementType": "string", "containsNull": True}},
        {"name": "counts", "type": {"type": "map", "keyType": "string", "valueType": "integer"}},
        {"name": "user", "type": {"type": "struct", "fields": [{"name": "email", "type": "string"}]}},
        {
            "name": "point",
            "type": {"type": "udt", "class": "Point", "sqlType": {"type": "array", "elementType": "double"}},
        },
    ],
}
ICEBERG = {
    "type": "struct",
    "schema-id": 3,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "price", "required": False, "type": "decimal(9, 2)"},
        {"id": 3, "name": "moment", "required": False, "type": "timestamptz"},
        {"id": 4, "name": "fine", "required": False, "type": "timestamp_ns"},
        {"id": 5, "name": "code", "required": False, "type": "fixed[16]"},
        {"id": 6, "name": "tags", "required": False, "type": {"type": "list", "element-id": 7, "element": "string"}},
        {
            "id": 8,
            "name": "counts",
            "type": {"type": "map", "key-id": 9, "key": "string", "value-id": 10, "value": "int"},
        },
    ],
}


def types(text: str) -> dict[str, str]:
    return {path: str(kind) for path, kind in parse(text, "t").leaves()}


def test_sparks_json_gives_every_column_its_type() -> None:
    assert types(json.dumps(SPARK)) == {
        "id": "BIGINT",
        "small": "TINYINT",
        "price": "DECIMAL(9,2)",
        "label": "STRING",
        "span": "INTERVAL",
        "text": "STRING",
        "tags.element": "STRING",
        "counts.key": "STRING",
        "counts.value": "INT",
        "user.email": "STRING",
        "point.element": "DOUBLE",
    }


def test_icebergs_schema_gives_every_column_its_type() -> None:
    assert types(json.dumps(ICEBERG)) == {
        "id": "BIGINT",
        "price": "DECIMAL(9,2)",
        "moment": "TIMESTAMP",
        "fine": "TIMESTAMP_NANOS",
        "code": "BINARY",
        "tags.element": "STRING",
        "counts.key": "STRING",
        "counts.value": "INT",
    }


def test_of_icebergs_table_metadata_the_current_schema_is_taken() -> None:
    old = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "int"}]}
    metadata = {"format-version": 2, "current-schema-id": 3, "schemas": [old, ICEBERG], "snapshots": []}
    assert types(json.dumps(metadata)) == types(json.dumps(ICEBERG))
    assert types(json.dumps(metadata | {"current-schema-id": 0})) == {"id": "INT"}
    assert types(json.dumps({"format-version": 1, "schema": old})) == {"id": "INT"}


DDL = {
    "id BIGINT, price DECIMAL(9,2), user STRUCT<email: STRING>": {
        "id": "BIGINT", "price": "DECIMAL(9,2)", "user.email": "STRING",
    },
    """CREATE TABLE IF NOT EXISTS lake.`my orders` (  -- Spark
         id bigint NOT NULL COMMENT 'the id, it''s (big)' DEFAULT (1 + 2),
         tags array<struct<a:int comment 'x>y', b:map<string, decimal(20,3)>>>,
         weight double precision, /* a
         comment */ CONSTRAINT positive CHECK (weight > 0), PRIMARY KEY (id)
       ) USING iceberg PARTITIONED BY (bucket(16, id)) TBLPROPERTIES ('a' = 'b)');""": {
        "id": "BIGINT", "tags.element.a": "INT", "tags.element.b.key": "STRING",
        "tags.element.b.value": "DECIMAL(20,3)", "weight": "DOUBLE",
    },
    'CREATE TABLE t (r row(x integer, "Y z" varchar(10)), m timestamp(6) with time zone, a array(map(text, real)))': {
        "r.x": "INT", "r.Y z": "STRING", "m": "TIMESTAMP",
        "a.element.key": "STRING", "a.element.value": "FLOAT",
    },
    "create or replace table t (i INTEGER[], j INTEGER[3][], s STRUCT(v VARCHAR)[], u UBIGINT)": {
        "i.element": "INT", "j.element.element": "INT", "s.element.v": "STRING", "u": "UBIGINT",
    },
    "struct<id:bigint,tags:array<string>>": {"id": "BIGINT", "tags.element": "STRING"},
    "primary int, check int, key string, list array<double>, `we``ird, name` int, create int, unique date": {
        "primary": "INT", "check": "INT", "key": "STRING", "list.element": "DOUBLE",
        "we`ird, name": "INT", "create": "INT", "unique": "DATE",
    },
    "d decimal, n numeric(5), t time without time zone, c char(3), b blob": {
        "d": "DECIMAL(10,0)", "n": "DECIMAL(5,0)", "t": "TIME", "c": "CHAR", "b": "BINARY",
    },
    "(a int)": {"a": "INT"},
}  # fmt: skip


@pytest.mark.parametrize("text", DDL)
def test_columns_as_sql_give_every_column_its_type(text: str) -> None:
    assert types(text) == DDL[text]


BAD = {
    "": ("no columns", 0, "write columns"),
    "id": ("line 1: expected a type, found the end", 2, "write columns"),
    "id INT,\n  n BIGNIT": ("line 2: unknown type 'BIGNIT'", 12, "did you mean bigint"),
    "id qqqqqqq": ("unknown type 'qqqqqqq'", 3, "types are those of"),
    "é INT,, b INT": ("expected a column's name, found ','", 7, "write columns"),
    "id array<int": ("expected '>', found the end", 12, "write columns"),
    "id map<int>": ("expected ',', found '>'", 10, "write columns"),
    "id array<int>>": ("unexpected '>' after the columns", 13, "write columns"),
    "id 5": ("unknown type '5'", 3, "types are those of"),
    "id 'int'": ("expected a type, found \"'int'\"", 3, "write columns"),
    "`` int": ("expected a column's name, found ''", 0, "write columns"),
    "id int default (1": ("a bracket that is never closed", 15, "write columns"),
    "id decimal(9,": ("a bracket that is never closed", 13, "write columns"),
    "id decimal(9;2)": ("unexpected ';' in a type's parameters", 12, "write columns"),
    "id int[2": ("expected ']', found the end", 8, "write columns"),
    "(a int": ("expected ')', found the end", 6, "write columns"),
    "create table t as select 1": ("a CREATE TABLE without a list of columns", 18, "write columns"),
    "create table t ()": ("no columns", 17, "write columns"),
    "id int) x": ("unexpected ')' after the columns", 6, "write columns"),
    "a " + "array<" * 200 + "int" + ">" * 200: ("nest deeper than 100", 602, "write columns"),
    "a int" + "[]" * 200: ("nest deeper than 100", 205, "write columns"),
    '{"type": "struct",\n "fields": [,]}': ("line 2: not JSON", 31, "give Spark's"),
    "[" * 100_000: ("not a table's schema", None, "give Spark's"),
    "[" + "1" * 5000 + "]": ("not a table's schema", None, "give Spark's"),
}


@pytest.mark.parametrize("text", BAD, ids=lambda t: t[:30])
def test_text_that_is_no_schema_is_an_error_with_its_line_and_byte(text: str) -> None:
    reason, offset, hint = BAD[text]
    with pytest.raises(UsageError) as raised:
        parse(text, "t.sql")
    error = raised.value
    assert reason in error.reason
    assert (error.path, error.offset) == ("t.sql", offset)
    assert hint in (error.hint or "")


def deep(kind: Any, levels: int) -> Any:
    for _ in range(levels):
        kind = {"type": "list", "element": kind}
    return kind


def fields(*kinds: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": f"c{i}", "type": kind} for i, kind in enumerate(kinds)]}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([1], "type"),
        ({"type": "struct"}, "fields"),
        ({"type": "map"}, "type"),
        ({"type": "struct", "fields": ["id"]}, "fields[0]"),
        (fields("int", "bignit"), "fields[1].type"),
        (fields("decimal"), "fields[0].type"),
        (fields("int int"), "fields[0].type"),
        (fields(None), "fields[0].type"),
        (fields({"type": "list"}), "fields[0].type.element"),
        (fields({"type": "map", "key": "int"}), "fields[0].type.value"),
        (fields({"type": "struct", "fields": [{"name": 1}]}), "fields[0].type.fields[0]"),
        ({"schemas": [ICEBERG], "current-schema-id": 9}, "current-schema-id"),
        ({"schemas": [ICEBERG]}, "schema"),
        ({"schemas": [{"schema-id": 1, "type": "list"}], "current-schema-id": 1}, "schemas[0]"),
        (fields(deep("int", 150)), "fields[0].type" + ".element" * 8 + ".e..."),
    ],
)
def test_json_that_is_no_schema_is_an_error_with_its_place(document: Any, field: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(json.dumps(document), "t.json")
    assert (raised.value.path, raised.value.field) == ("t.json", field)
    assert raised.value.hint


def test_nesting_up_to_the_limit_is_read() -> None:
    levels = limits.TABLE_SCHEMA_MAX_DEPTH - 1
    assert len(types("a " + "struct<x:" * levels + "int" + ">" * levels)) == 1
    assert len(types(json.dumps(fields(deep("int", levels))))) == 1


PATHS = "tags array<int>, m map<string,struct<a:double>>, user struct<email:string,list:array<bigint>>, `a.b` date"
FOUND = {
    "INT": "tags.list.element tags.bag.array_element tags.array tags.element tags._elem tags.tags_tuple"
    " tags.list.item TAGS.List.Element tags",
    "STRING": "m.key_value.key m.map.key m.entries.key m._key m.key USER.EMAIL",
    "DOUBLE": "m.key_value.value.a m.map.value.a m._value.a M.value.A",
    "BIGINT": "user.list.list.element user.list.array user.list._elem user.list",
    "DATE": "a.b A.B",
    None: "nope tags.list.element.x m m.key_value user user.nope tags.foo.element a ab a.b.c",
}


def test_paths_are_found_under_all_names_of_the_levels_of_lists_and_maps() -> None:
    table = parse(PATHS, "t")
    for name, paths in FOUND.items():
        for path in paths.split():
            found = table.type_of(path)
            assert (found and found.name) == name, path
    assert table.type_of("") is None


def test_names_that_differ_by_case_only_are_found_as_they_are_and_no_other_way() -> None:
    table = parse("Id int, ID bigint, same int, SAME int", "t")
    assert [str(table.type_of(name)) for name in ("Id", "ID", "id", "Same")] == ["INT", "BIGINT", "None", "INT"]


@pytest.mark.parametrize("nested", [True, False])
def test_the_leaf_paths_of_real_files_are_found(tmp_path: Path, nested: bool) -> None:
    data = {
        "id": pa.array([1], pa.int64()),
        "user": pa.array([{"tags": ["a"], "n": 1.5}]),
        "m": pa.array([[("k", [1])]], pa.map_(pa.string(), pa.list_(pa.int32()))),
    }
    path = write(tmp_path / "f", data, use_compliant_nested_type=nested)
    table = parse("ID int, user struct<Tags: array<string>, n: float>, m map<string, array<int>>", "t")
    from bloomcli.formats.registry import open_file
    from bloomcli.storage.registry import open_source

    with open_source(path) as source:
        found = {column.path: table.type_of(column.path) for column in open_file(source).columns}
    assert len(found) == 5
    kinds = {path.partition(".list")[0]: kind and kind.name for path, kind in found.items()}
    assert kinds == {
        "id": "INT",
        "user.tags": "STRING",
        "user.n": "FLOAT",
        "m.key_value.key": "STRING",
        "m.key_value.value": "INT",
    }


def test_a_schema_is_read_from_a_file_and_goes_to_other_processes(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("\ufeff" + json.dumps(SPARK))
    table = read(tmp_path / "t.json")
    assert isinstance(table, TableSchema)
    assert table.path == str(tmp_path / "t.json")
    assert table.type_of("price") == TableType(name="DECIMAL", precision=9, scale=2)
    assert pickle.loads(pickle.dumps(table)) == table
    assert hash(table) == hash(read(tmp_path / "t.json"))


def test_a_file_that_can_not_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read(tmp_path / "none")
    with pytest.raises(UsageError, match="not a path"):
        read("a\0b")
    with pytest.raises(UsageError, match="directory"):
        read(tmp_path)
    (tmp_path / "f").write_bytes(b"id \xff")
    with pytest.raises(UsageError, match="not UTF-8") as raised:
        read(tmp_path / "f")
    assert raised.value.offset == 3
    monkeypatch.setattr(limits, "TABLE_SCHEMA_MAX_BYTES", 3)
    with pytest.raises(UsageError, match="larger than 3 bytes"):
        read(tmp_path / "f")


SQL = {"INT": "int", "BIGINT": "bigint", "STRING": "varchar(10)", "DOUBLE": "double precision", "DATE": "Date"}
names = st.text("abcAB_ .,<>`é", min_size=1, max_size=6)
scalars = st.sampled_from([TableType(name=name) for name in SQL]) | st.builds(
    lambda p, s: TableType(name="DECIMAL", precision=p, scale=s), st.integers(1, 38), st.integers(0, 9)
)


def structs(kinds: st.SearchStrategy[AnyType]) -> st.SearchStrategy[Group]:
    return st.lists(st.tuples(names, kinds), min_size=1, max_size=4).map(lambda found: Group("struct", tuple(found)))


def nested(kinds: st.SearchStrategy[AnyType]) -> st.SearchStrategy[AnyType]:
    return st.builds(group, st.just("list"), kinds) | st.builds(group, st.just("map"), kinds, kinds) | structs(kinds)


tables = structs(st.recursive(scalars, nested, max_leaves=8))


def sql(kind: AnyType, brackets: str) -> str:
    left, right = brackets
    if isinstance(kind, TableType):
        return SQL.get(kind.name) or f"decimal({kind.precision}, {kind.scale})"
    if kind.kind == "struct":
        return f"struct{left}{columns(kind, brackets)}{right}"
    types = ", ".join(sql(child, brackets) for _, child in kind.fields)
    return f"{'array' if kind.kind == 'list' else 'map'}{left}{types}{right}"


def columns(kind: Group, brackets: str) -> str:
    return ", ".join(f"`{name.replace('`', '``')}` {sql(child, brackets)}" for name, child in kind.fields)


def spark(kind: AnyType) -> Any:
    if isinstance(kind, TableType):
        return kind.name.lower() if kind.name != "DECIMAL" else str(kind).lower()
    types = [spark(child) for _, child in kind.fields]
    if kind.kind == "list":
        return {"type": "array", "elementType": types[0]}
    if kind.kind == "map":
        return {"type": "map", "keyType": types[0], "valueType": types[1]}
    return {"type": "struct", "fields": [{"name": name, "type": spark(child)} for name, child in kind.fields]}


@given(tables, st.sampled_from(["<>", "()"]))
def test_a_schema_is_the_same_as_sql_and_as_json(table: Group, brackets: str) -> None:
    assert parse(columns(table, brackets), "t").root == table
    assert parse(f"create table x ({columns(table, brackets)})", "t").root == table
    assert parse(json.dumps(spark(table)), "t").root == table


@given(tables)
def test_every_leaf_is_found_by_its_own_path_unless_another_has_the_same(table: Group) -> None:
    schema = TableSchema(path="t", root=table)
    for path, kind in schema.leaves():
        assert schema.type_of(path) in {kind, None}
        if "." not in path:
            same = [name for name, _ in table.fields if name.lower() == path.lower()]
            assert schema.type_of(path) == kind or len(same) > 1


@given(st.text(max_size=60) | st.text("ab int,<>()[]{}`'\":;struct array-/*\n", max_size=60))
def test_any_text_gives_a_schema_or_the_declared_error(text: str) -> None:
    for read_it in (parse, table_schema.parse_ddl):
        try:
            read_it(text, "t")
        except UsageError as error:
            assert error.hint
            assert error.offset is None or 0 <= error.offset <= len(text.encode("utf-8", "surrogatepass"))


values = st.recursive(
    st.none() | st.integers() | st.sampled_from(["struct", "int", "list", "map", "decimal(3,1)", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "fields", "name", "element", "schema", "schemas"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["type", "fields", "schema", "schemas", "current-schema-id"]), values))
def test_any_json_gives_a_schema_or_the_declared_error(document: Any) -> None:
    try:
        parse(json.dumps(document), "t")
    except UsageError as error:
        assert error.hint
