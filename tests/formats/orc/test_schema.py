"""ORC's list of types: paths, types of literals, and lists that aren't a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomcli.errors import CorruptFile
from bloomcli.formats.orc import schema, spec


def kind(name: str, children: tuple[int, ...] = (), names: tuple[str, ...] = (), **rest: Any) -> Any:
    return spec.message("Type")(kind=spec.value_of("TypeKind", name), subtypes=children, field_names=names, **rest)


def struct(**fields: int) -> Any:
    return kind("STRUCT", tuple(fields.values()), tuple(fields))


TREE = [
    struct(a=1, l=2, m=5, u=10),
    kind("LONG"),
    kind("LIST", (3,)),
    struct(x=4),
    kind("STRING"),
    kind("MAP", (6, 7)),
    kind("STRING"),
    kind("LIST", (8,)),
    kind("MAP", (9, 9)),
    kind("INT"),
    kind("UNION", (11, 12)),
    kind("INT"),
    kind("DATE"),
]


def tree() -> list[Any]:
    """The tree in which a map has two different children."""
    types = [spec.message("Type").FromString(t.SerializeToString()) for t in TREE]
    types[8] = kind("LIST", (9,))
    return types


def test_paths_are_those_that_orc_core_gives() -> None:
    types = schema.read_types(tree(), "f", 0)
    assert [t.path for t in types] == [
        "", "a", "l", "l._elem", "l._elem.x", "m", "m._key", "m._value", "m._value._elem", "m._value._elem._elem",
        "u", "u.0", "u.1",
    ]  # fmt: skip
    assert [t.id for t in types] == list(range(13))
    assert [t.last for t in types] == [12, 1, 4, 4, 4, 9, 6, 9, 9, 9, 12, 11, 12]


@pytest.mark.parametrize(
    ("name", "rest", "physical", "logical", "shown"),
    [
        ("BYTE", {}, "INT32", "INTEGER(8,signed)", "tinyint"),
        ("SHORT", {}, "INT32", "INTEGER(16,signed)", "smallint"),
        ("LONG", {}, "INT64", "INTEGER(64,signed)", "bigint"),
        ("FLOAT", {}, "FLOAT", None, "float"),
        ("DATE", {}, "INT32", "DATE", "date"),
        ("TIMESTAMP", {}, "INT128", "TIMESTAMP(NANOS)", "timestamp"),
        ("DECIMAL", {"precision": 12, "scale": 3}, "INT128", "DECIMAL(12,3)", "decimal(12,3)"),
        ("CHAR", {"maximum_length": 7}, "BYTE_ARRAY", "STRING", "char(7)"),
        ("VARCHAR", {"maximum_length": 9}, "BYTE_ARRAY", "STRING", "varchar(9)"),
        ("BINARY", {}, "BYTE_ARRAY", None, "binary"),
        ("BOOLEAN", {}, "BOOLEAN", None, "boolean"),
    ],
)
def test_a_type_is_read_as_the_parquet_type_that_holds_the_same(
    name: str, rest: dict[str, int], physical: str, logical: str | None, shown: str
) -> None:
    types = schema.read_types([struct(c=1), kind(name, **rest)], "f", 0)
    column = schema.literal_column(types[1])
    assert (column.path, column.physical, column.logical, column.type_name) == ("c", physical, logical, shown)


BAD: dict[str, tuple[list[Any], str]] = {
    "no types": ([], "0 types"),
    "a child that isn't there": ([struct(a=1)], "preorder"),
    "a child far away": ([struct(a=4_000_000_000), kind("INT")], "preorder"),
    "its own child": ([struct(a=0)], "preorder"),
    "a child of two": ([struct(a=1, b=1), kind("INT")], "preorder"),
    "a cycle": ([struct(a=1), kind("LIST", (0,))], "preorder"),
    "not in preorder": ([struct(a=2, b=1), kind("INT"), kind("INT")], "preorder"),
    "types of no column": ([struct(a=1), kind("INT"), kind("INT")], "belong to no column"),
    "a leaf with children": ([struct(a=1), kind("INT", (2,)), kind("INT")], "INT with 1 children"),
    "a list of nothing": ([struct(a=1), kind("LIST")], "LIST with 0 children"),
    "a map without values": ([struct(a=1), kind("MAP", (2,)), kind("INT")], "MAP with 1 children"),
    "too few names": ([kind("STRUCT", (1, 2), ("a",)), kind("INT"), kind("INT")], "2 fields with 1 names"),
    "too many names": ([kind("STRUCT", (1,), ("a", "b")), kind("INT")], "1 fields with 2 names"),
    "too deep": ([kind("LIST", (i + 1,)) for i in range(600)] + [kind("INT")], "deeper than 256"),
}


@pytest.mark.parametrize("name", BAD)
def test_types_that_are_no_tree_in_preorder_are_refused(name: str) -> None:
    types, message = BAD[name]
    with pytest.raises(CorruptFile, match=message) as caught:
        schema.read_types(types, "f", 77)
    assert (caught.value.path, caught.value.offset) == ("f", 77)
    assert (caught.value.field or "").startswith("types[")


def test_the_compiled_messages_are_those_of_the_proto_file() -> None:
    text = Path(spec.__file__).with_name("orc.proto").read_text()
    for name in ("PostScript", "Footer", "StripeFooter", "StripeInformation", "BloomFilter", "Type"):
        fields = spec.message(name).DESCRIPTOR.fields
        block = text.split(f"message {name} {{")[1].split("}")[0]
        assert all(f" {f.name} = {f.number}" in block for f in fields)
        assert block.count(" = ") - block.count("packed = ") == len(fields)
