"""Files opened with a table's names: columns found by field id or name, and refusals."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq
import pytest
from support import mosaicfiles, orcfiles
from support.table_names import by_id, by_name, element, field, orc_ids, parquet_of
from support.thrift import Fields

from bloomcli.commands import find
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError, UsageError
from bloomcli.formats.registry import open_file
from bloomcli.model.schema import ColumnName, ColumnNames
from bloomcli.storage.registry import open_source

FIXTURES: Final = Path(__file__).parents[2] / "fixtures"
OTHER = " (not a column of the table)"
LIST, MAP, MAP_KEY_VALUE = 3, 1, 2
REQUIRED, OPTIONAL, REPEATED = range(3)

TABLE = pa.table(
    [
        [1, 2],
        ["a", "b"],
        [["x"], ["y"]],
        [[("k", 1)], [("l", 2)]],
        [{"email": "e", "age": 1}] * 2,
        [[{"sku": "s", "n": 1}]] * 2,
    ],
    schema=pa.schema(
        [
            field("id", pa.int64(), 1),
            field("name", pa.string(), 2),
            field("tags", pa.list_(field("element", pa.string(), 8)), 3),
            field(
                "props",
                pa.map_(field("key", pa.string(), 9, nullable=False), field("value", pa.int32(), 10)),
                4,
            ),
            field("user", pa.struct([field("email", pa.string(), 11), field("age", pa.int32(), 12)]), 5),
            field(
                "items",
                pa.list_(
                    field("element", pa.struct([field("sku", pa.string(), 14), field("n", pa.int32(), 15)]), 13)
                ),
                6,
            ),
        ]
    ),
)
ORC_IDS = {
    "id": 1, "name": 2, "tags": 3, "tags._elem": 8, "props": 4, "props._key": 9, "props._value": 10, "user": 5,
    "user.email": 11, "user.age": 12, "items": 6, "items._elem": 13, "items._elem.sku": 14, "items._elem.n": 15,
}  # fmt: skip
"""The field ids that Spark 4.1 with Iceberg 1.12 writes."""
CHANGED = by_id(
    order_id=1,
    labels__element=8,
    props__key=9,
    props__value=10,
    user__mail=11,
    user__age=12,
    items__element__code=14,
    items__element__n=15,
    name=16,
)
"""`id`, `tags`, `user.email` and `items.element.sku` were renamed; `name` was dropped, and another one was added."""


def columns(path: Path, names: ColumnNames | None) -> list[str]:
    """The paths of a file's columns."""
    with open_source(path) as source:
        return [column.path for column in open_file(source, names).columns]


def lacking(path: Path, names: ColumnNames) -> list[str]:
    with open_source(path) as source:
        return list(open_file(source, names).missing_columns)


def refused(path: Path, names: ColumnNames) -> BloomError:
    with pytest.raises(BloomError) as caught:
        columns(path, names)
    assert caught.value.path == str(path)
    return caught.value


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)
    return path


@pytest.fixture
def orc(tmp_path: Path) -> Path:
    return orc_ids(orcfiles.write(tmp_path / "plain.orc", TABLE), tmp_path / "a.orc", ORC_IDS)


def test_columns_of_parquet_are_found_by_field_ids(parquet: Path) -> None:
    assert columns(parquet, CHANGED) == [
        "order_id", "name" + OTHER, "labels.element", "props.key", "props.value", "user.mail", "user.age",
        "items.element.code", "items.element.n",
    ]  # fmt: skip
    assert lacking(parquet, CHANGED) == ["name"]
    assert columns(parquet, None)[:3] == ["id", "name", "tags.list.element"]


def test_columns_of_orc_are_found_by_field_ids_lists_and_maps_by_what_they_hold(orc: Path) -> None:
    assert columns(orc, CHANGED) == [
        "order_id", "name" + OTHER, "labels", "labels.element", "props", "props.key", "props.value", "user.mail",
        "user.age", "items", "items.element.code", "items.element.n",
    ]  # fmt: skip
    assert lacking(orc, CHANGED) == ["name"]
    assert columns(orc, None)[:4] == ["id", "name", "tags", "tags._elem"]


def test_columns_say_which_field_id_they_have_and_whether_the_table_has_them(parquet: Path, orc: Path) -> None:
    for path in (parquet, orc):
        with open_source(path) as source:
            first, second, *_ = open_file(source, CHANGED).columns
        assert (first.field_id, first.not_in_table, second.field_id, second.not_in_table) == (1, False, 2, True)


def test_a_list_of_orc_that_the_table_dropped_is_none_of_its_columns(orc: Path) -> None:
    assert columns(orc, by_id(id=1))[2:4] == ["tags" + OTHER, "tags._elem" + OTHER]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_two_columns_may_have_swapped_their_names(kind: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(kind)
    assert columns(path, by_id(name=1, id=2))[:2] == ["name", "id"]
    assert lacking(path, by_id(name=1, id=2)) == []


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_a_file_with_field_ids_is_not_searched_by_name(kind: str, request: pytest.FixtureRequest) -> None:
    """Iceberg uses a name mapping only for files without any field id: here `name` is another column."""
    path = request.getfixturevalue(kind)
    names = ColumnNames(columns=(ColumnName(path="name", field_id=16, physical=("name",)),))
    assert columns(path, names)[1] == "name" + OTHER
    assert lacking(path, names) == ["name"]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_a_file_without_field_ids_is_searched_by_every_name_of_the_mapping(kind: str, tmp_path: Path) -> None:
    table = pa.table({"id": [1], "user": [{"email": "e"}], "tags": [["x"]], "props": pa.array([[("k", 1)]], MAPS)})
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        orcfiles.write(path, table)
    names = ColumnNames(
        columns=(
            ColumnName(path="order_id", field_id=1, physical=("order_id", "id", "ID")),
            ColumnName(path="user.mail", field_id=2, physical=("user.mail", "user.email")),
            ColumnName(path="labels.element", field_id=3, physical=("labels.element", "tags.element")),
            ColumnName(path="props.key", field_id=4, physical=("props.key",)),
            ColumnName(path="props.value", field_id=5, physical=("props.value",)),
            ColumnName(path="new", field_id=6, physical=("new",)),
        )
    )
    found = [path for path in columns(path, names) if path not in {"labels", "props"}]
    assert found == ["order_id", "user.mail", "labels.element", "props.key", "props.value"]
    assert lacking(path, names) == ["new"]


MAPS = pa.map_(pa.string(), pa.int64())


def test_delta_finds_columns_by_field_ids_and_their_elements_by_physical_names(tmp_path: Path) -> None:
    """In column mapping's mode `id`, elements, keys and values have no ids."""
    schema = pa.schema([field("col-a", pa.int64(), 1), field("col-b", pa.list_(pa.string()), 3)])
    pq.write_table(pa.table([[1], [["x"]]], schema=schema), tmp_path / "f")
    names = ColumnNames(
        columns=(
            ColumnName(path="id", field_id=1, physical=("col-a",)),
            ColumnName(path="tags.element", physical=("col-b.element",)),
        )
    )
    assert columns(tmp_path / "f", names) == ["id", "tags.element"]


def test_delta_finds_columns_by_physical_names_though_files_have_field_ids(tmp_path: Path) -> None:
    pq.write_table(pa.table([[1]], schema=pa.schema([field("col-a", pa.int64(), 1)])), tmp_path / "f")
    assert columns(tmp_path / "f", by_name(id="col-a")) == ["id"]
    assert columns(tmp_path / "f", by_name(id="col-b")) == ["col-a" + OTHER]


def test_a_name_without_more_is_the_name_in_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "x": [2]}), tmp_path / "f")
    assert columns(tmp_path / "f", ColumnNames(columns=(ColumnName(path="id"),))) == ["id", "x" + OTHER]


def group(name: str, children: int = 1, converted: int | None = LIST) -> Fields:
    return element(name, children, converted=converted)


def repeated(name: str, children: int = 0, converted: int | None = None) -> Fields:
    return element(name, children, repetition=REPEATED, converted=converted)


X, Y = element("x"), element("y")
SHAPES: Final[dict[str, tuple[list[Fields], list[str]]]] = {
    "the specification's": ([group("a"), repeated("list", 1), element("element")], ["t.element"]),
    "Hive's": ([group("a"), repeated("bag", 1), element("array_element")], ["t.element"]),
    "Avro's": ([group("a"), repeated("array")], ["t.element"]),
    "Avro's of structs with one field": ([group("a"), repeated("array", 1), X], ["t.element.x"]),
    "Thrift's": ([group("a"), repeated("a_tuple", 1), X], ["t.element.x"]),
    "of structs without a group around them": (
        [group("a"), repeated("e", 2), X, Y],
        ["t.element.x", "a.e.y" + OTHER],
    ),
    "a repeated field": ([repeated("a")], ["t.element"]),
    "a repeated group": ([repeated("a", 1), X], ["t.element.x"]),
    "a map": ([group("a", 1, MAP), repeated("map", 2), element("k"), element("v")], ["t.key", "t.value"]),
    "an old map of lists": (
        [
            *(group("a", 1, MAP_KEY_VALUE), repeated("map", 2, MAP_KEY_VALUE), element("key")),
            *(group("value"), repeated("list", 1), element("element")),
        ],
        ["t.key", "t.value.element"],
    ),
    "structs that are called like a list's groups": (
        [element("a", 1), element("list", 1), element("element")],
        ["a.list.element" + OTHER],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_groups_around_elements_are_no_part_of_names(shape: str, tmp_path: Path) -> None:
    """Whatever names a writer gives them, by the formats' rules for older files."""
    elements, found = SHAPES[shape]
    path = parquet_of(tmp_path / "f", *elements, roots=1)
    steps = ("element", "element.x", "key", "value", "value.element")
    names = ColumnNames(columns=tuple(ColumnName(path=f"t.{step}", physical=(f"a.{step}",)) for step in steps))
    assert columns(path, names) == found


def test_a_table_may_have_a_column_with_the_name_of_what_it_does_not_have(parquet: Path) -> None:
    names = ColumnNames(columns=(ColumnName(path="id" + OTHER, field_id=2),))
    assert columns(parquet, names)[:2] == ["id" + OTHER + OTHER, "id" + OTHER]


def test_one_field_id_of_two_columns_is_damage(tmp_path: Path) -> None:
    schema = pa.schema([field("a", pa.int64(), 7), field("b", pa.int64(), 7)])
    pq.write_table(pa.table([[1], [2]], schema=schema), tmp_path / "f.parquet")
    orcfiles.write(tmp_path / "plain", pa.table({"a": [1], "b": [2]}))
    orc_ids(tmp_path / "plain", tmp_path / "f.orc", {"a": 7, "b": 7})
    for path in (tmp_path / "f.parquet", tmp_path / "f.orc"):
        error = refused(path, by_id(x=7))
        assert isinstance(error, CorruptFile)
        assert "a and b have the same field id, 7" in error.reason
        assert error.offset is not None
        assert columns(path, by_id(x=8)) == ["a" + OTHER, "b" + OTHER]  # writers have put one id on all columns


def test_two_names_of_one_column_in_a_file_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "order_id": [2]}), tmp_path / "f")
    error = refused(tmp_path / "f", by_name(order_id=("id", "order_id")))
    assert isinstance(error, UnsupportedError)
    assert "id and order_id have names of the same column of the table, order_id" in error.reason


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([ColumnName(path="a", field_id=1), ColumnName(path="b", field_id=1)], "have the same field id, 1"),
        ([ColumnName(path="a", field_id=1), ColumnName(path="a", field_id=2)], "two columns of the table are called"),
        ([ColumnName(path="a", physical=("x",)), ColumnName(path="b", physical=("y", "x"))], "same name in files"),
    ],
)
def test_a_table_with_one_id_or_name_for_two_columns_is_refused(
    names: list[ColumnName], reason: str, parquet: Path, orc: Path
) -> None:
    for path in (parquet, orc):
        error = refused(path, ColumnNames(columns=tuple(names)))
        assert isinstance(error, UsageError)
        assert reason in error.reason


def test_a_file_without_field_ids_needs_a_name_mapping(tmp_path: Path) -> None:
    """Iceberg would take columns by their positions."""
    pq.write_table(pa.table({"id": [1]}), tmp_path / "f.parquet")
    orcfiles.write(tmp_path / "f.orc", pa.table({"id": [1]}))
    for path in (tmp_path / "f.parquet", tmp_path / "f.orc"):
        error = refused(path, by_id(id=1))
        assert isinstance(error, UnsupportedError)
        assert "no field ids" in error.reason
        assert "schema.name-mapping.default" in str(error.hint)


@pytest.mark.parametrize("value", ["x", "-1", "99999999999", "1.0", "", "१"])
def test_a_field_id_of_orc_that_is_no_number_is_damage(value: str, tmp_path: Path) -> None:
    orcfiles.write(tmp_path / "plain", pa.table({"a": [1]}))
    path = orc_ids(tmp_path / "plain", tmp_path / "f.orc", {"a": value})
    error = refused(path, by_id(a=1))
    assert isinstance(error, CorruptFile)
    assert error.field == "types[1].attributes"
    assert columns(path, None) == ["a"]


def test_a_group_that_is_a_column_of_the_table_is_not_lacking(parquet: Path) -> None:
    """Such as a variant, which a file stores as a group."""
    assert lacking(parquet, by_id(v=5, w=77)) == ["w"]


def test_tables_have_no_files_of_other_formats(tmp_path: Path) -> None:
    path = mosaicfiles.write(tmp_path / "f.mosaic", pa.table({"id": [1, 2, 3]}))
    error = refused(path, by_id(id=1))
    assert isinstance(error, UnsupportedError)
    assert "mosaic files" in error.reason


def arrow_leaves(kind: pa.DataType, steps: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The leaves of an Arrow type."""
    if isinstance(kind, pa.BaseExtensionType):
        yield from arrow_leaves(kind.storage_type, steps)
    elif pa.types.is_struct(kind):
        for inner in kind:
            yield from arrow_leaves(inner.type, (*steps, inner.name))
    elif pa.types.is_map(kind):
        yield from arrow_leaves(kind.key_type, (*steps, "key"))
        yield from arrow_leaves(kind.item_type, (*steps, "value"))
    elif pa.types.is_nested(kind) and not pa.types.is_union(kind):
        yield from arrow_leaves(kind.value_type, (*steps, "element"))
    else:
        yield steps


def test_every_column_of_every_fixture_has_the_name_that_pyarrow_gives_it() -> None:
    """Another implementation of the rules for lists and maps, on the files of many writers."""
    seen = 0
    for path in sorted(FIXTURES.rglob("*")):
        reader = {".parquet": pq.read_schema, ".orc": lambda path: pa_orc.ORCFile(path).schema}.get(path.suffix)
        if reader is None:
            continue
        try:
            schema: pa.Schema = reader(path)
        except (OSError, pa.ArrowException):
            continue  # a damaged file
        leaves = [".".join(steps) for column in schema for steps in arrow_leaves(column.type, (column.name,))]
        if any(pa.types.is_union(column.type) for column in schema) or len(set(leaves)) < len(leaves):
            continue
        names = ColumnNames(columns=tuple(ColumnName(path=f"c{at}", physical=(n,)) for at, n in enumerate(leaves)))
        with open_source(path) as source:
            file = open_file(source, names)
            assert [column.path for column in file.leaves] == [name.path for name in names.columns], path
            assert not file.missing_columns
        seen += 1
    assert seen > 100


def ids_of(kind: pa.DataType) -> set[int]:
    """The field ids of a type's fields, at any depth."""
    found = set()
    for field_ in (kind.field(at) for at in range(kind.num_fields)):
        metadata = field_.metadata or {}
        found |= {int(metadata[key]) for key in (b"PARQUET:field_id", b"iceberg.id") if key in metadata}
        found |= ids_of(field_.type)
    return found


def record_ids(path: Path, names: ColumnNames, *select: str) -> set[int]:
    """The field ids in the records that a search of a table's file returns."""
    batches: list[pa.RecordBatch] = []
    options = FindOptions(column="order_id", select=select, names=names).checked()
    find.run(str(path), options, Values(["1"]), batches.append)
    assert sum(batch.num_rows for batch in batches) == 1
    return ids_of(batches[0].schema.field("record").type)


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_records_with_selected_columns_keep_the_field_ids_by_which_a_table_finds_them(
    kind: str, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(kind)
    chosen = record_ids(path, CHANGED, "order_id", "user.mail", "items.element.code", "labels.element")
    assert {1, 3, 5, 11, 6, 14} <= chosen <= {1, 3, 8, 5, 11, 6, 13, 14}


def test_records_with_timestamps_beyond_nanoseconds_keep_their_field_ids(tmp_path: Path) -> None:
    times = pa.array([dt.datetime(9000, 1, 1)] * 2, pa.timestamp("us"))
    plain = orcfiles.write(tmp_path / "plain.orc", pa.table({"id": [1, 2], "at": times}))
    path = orc_ids(plain, tmp_path / "a.orc", {"id": 1, "at": 2})
    names = ColumnNames((ColumnName("order_id", 1), ColumnName("moment", 2)))
    assert record_ids(path, names, "order_id", "moment") == record_ids(path, names) == {1, 2}
