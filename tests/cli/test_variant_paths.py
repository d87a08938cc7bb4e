"""Leaves of shredded VARIANT columns are named by their paths, and absence from one proves nothing where its sibling
`value` has values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, patches
from support.cli import Bloom
from support.golden import FIXTURES

import bloomcli
from bloomcli.errors import NothingToFilter, UnknownColumn
from bloomcli.formats.parquet.schema import SPARK_SCHEMA
from bloomcli.model.file import Presence
from bloomcli.values.variant_paths import canonical, leaf, step

FILE = FIXTURES / "spark_variant.parquet"
ID = "v.typed_value.user.typed_value.id.typed_value"
ID_VALUE = 4
"""The ordinal of the sibling `value`. In the second row group it has one value."""
PATHS = ["v:$.user.id", "v:$.user.name", "v:$.tags[*]", "v:$['a.b']"]


def group(**fields: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(fields.values()), list(fields))


def with_nulls(target: Path, nulls: int | None, *, bounds: bool) -> Path:
    """The file with another null count of the sibling `value` of the second row group, with or without its bounds."""

    def edit(metadata: Any) -> None:
        statistics = footers.meta(metadata, 1, ID_VALUE)[footers.STATISTICS][1]
        kind, _ = statistics.pop(patches.NULLS)
        if nulls is not None:
            statistics[patches.NULLS] = (kind, nulls)
        for field in (patches.MIN, patches.MAX, patches.MIN_VALUE, patches.MAX_VALUE) if not bounds else ():
            statistics.pop(field, None)
        ordered = dict(sorted(statistics.items()))
        statistics.clear()
        statistics.update(ordered)

    return footers.edit_file(FILE, target, edit)


def test_every_shredded_leaf_has_a_path_and_no_other_leaf_has_one() -> None:
    """Fields of objects, elements of lists, and names with dots."""
    found = [c.variant_path for c in bloomcli.inspect(FILE).by_column]
    assert [path for path in found if path is not None] == PATHS
    assert [c.column for c in bloomcli.inspect(FILE, columns=PATHS[0]).by_column] == [ID]


def test_a_path_and_its_leaf_are_the_same_column(bloom: Bloom) -> None:
    """Spark's spellings, globs, and the leaf's own name; where paths have no name, the leaf keeps its own."""
    for name in ("v:$.user.id", "v:$['user'].id", 'v:$["user"]["id"]', "v:$.*.id", ID):
        assert bloom("probe", FILE, "-c", name, "42", "-f", "json").json["column"] == ID
    advised = bloomcli.advise(FILE, columns=["v:$['user'].id"], exclude=["v:$.user.name"]).columns
    assert [c.variant_path for c in advised] == ["v:$.user.id"]
    chosen = bloomcli.inspect(FILE, columns="*", exclude="v:$.user.*").by_column
    assert [c.variant_path for c in chosen if c.variant_path] == PATHS[2:]


ODD_PATHS = ['s.v:$["it\'s"]', "s.v:$['']", "s.v:$['x*']", "s.v:$.items[*].n"]


def odd(path: Path, kind: object = "variant", *, key: str = SPARK_SCHEMA) -> Path:
    """Groups with the leaves of a VARIANT and no annotation, which have this type in Spark's schema."""
    leaf = group(value=pa.array([None], pa.binary()), typed_value=pa.array([7]))
    items = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), group(typed_value=group(n=leaf)))
    fields = group(**{"it's": leaf, "a'\"b": leaf, "": leaf, "x*": leaf, "items": group(typed_value=items)})
    metadata, value = pa.array([b"\1\0\0"]), pa.array([None], pa.binary())
    variant = group(metadata=metadata, value=value, typed_value=fields)
    several = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), variant)
    named = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k"]), variant)
    table = pa.table({"s": group(v=variant), "typed_value": [1], "o": leaf, "l": several, "m": named})
    lists = {"type": "array", "elementType": kind, "containsNull": True}
    maps = {"type": "map", "keyType": "string", "valueType": kind, "valueContainsNull": True}
    structs = {"type": "struct", "fields": [{"name": "v", "type": kind}]}
    fields = [{"name": name, "type": one} for name, one in (("s", structs), ("l", lists), ("m", maps))]
    written = {"other": "1", key: json.dumps({"type": "struct", "fields": fields})}
    pq.write_table(table.replace_schema_metadata(written), path)
    return path


def test_lists_of_objects_and_odd_names_have_paths(tmp_path: Path) -> None:
    """Spark 4.0 doesn't annotate the groups, and names their types. A name with both quotes can't be in a path."""
    path = odd(tmp_path / "odd.parquet")
    found = [c.variant_path for c in bloomcli.inspect(path).by_column if c.variant_path is not None]
    groups = ("s.v", "l.list.element", "m.key_value.value")
    assert found == [name.replace("s.v", group) for group in groups for name in ODD_PATHS]
    for name in found:
        assert len(bloomcli.inspect(path, columns=name).by_column) == 1


NO_VARIANTS: list[object] = [
    {"type": "struct", "fields": [{"name": "metadata", "type": "binary"}]},
    *(None, 7, [], {}, {"type": ["struct"]}, {"type": "struct", "fields": 1}),
]


@pytest.mark.parametrize(
    ("kind", "key"), [("variant", "another.key"), *((kind, SPARK_SCHEMA) for kind in NO_VARIANTS)]
)
def test_a_struct_with_the_leaves_of_a_variant_is_none(tmp_path: Path, kind: object, key: str) -> None:
    """Its fields have no paths, its `value` doesn't make absence uncertain, and globs select all of it."""
    odd(tmp_path / "variant.parquet")
    path = odd(tmp_path / "struct.parquet", kind, key=key)
    assert [c.variant_path for c in bloomcli.inspect(path).by_column if c.variant_path] == []
    out = tmp_path / "out.parquet"
    added = bloomcli.add(path, ["s.v.*"], output=out)
    assert {"s.v.metadata", "s.v.value"} <= {c.column for c in added.changes if c.action == "add"}
    assert bloomcli.probe(out, ["8"], column="s.v.typed_value.x*.typed_value").absent_everywhere


def test_encoded_values_of_a_variant_get_no_filter_by_a_glob_and_no_advice(tmp_path: Path) -> None:
    """No query compares them. A file with such filters keeps them until somebody removes them."""
    encoded = [c.column for c in bloomcli.inspect(FILE).by_column if c.column.endswith((".metadata", ".value"))]
    assert len(encoded) == 8
    out = tmp_path / "out.parquet"
    assert not {
        f.column for f in bloomcli.add(FILE, ["*"], output=out, replace=True).changes if f.action != "keep"
    } & set(encoded)
    advice = {c.column: (c.recommended, c.reason_id) for c in bloomcli.advise(FILE).columns}
    assert [advice[name] for name in encoded] == [(False, "unfilterable")] * len(encoded)
    bloomcli.add(FILE, ["v.value"], output=out, overwrite=True)
    (value,) = bloomcli.advise(out, columns=["v.value"]).columns
    assert value.reason == "encoded values of a VARIANT, which no query compares; its 2 filters of 128 B can go"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("v:$.usr.id", "did you mean v:$.user.id"),
        ("v:$.user", "v:$.user is a group; its leaves: v:$.user.id, v:$.user.name"),
        ("v:$.tags[0]", "did you mean v:$.tags[*]"),
        ("v:$.user[", "v:$.user"),
    ],
)
def test_a_path_that_is_not_shredded_is_refused_with_those_that_are(name: str, hint: str) -> None:
    """A lookup elsewhere would find nothing, although the file may have the value."""
    with pytest.raises(UnknownColumn) as error:
        bloomcli.probe(FILE, ["1"], column=name)
    assert hint in str(error.value.hint)


def test_a_glob_of_several_paths_is_refused_with_the_paths(bloom: Bloom) -> None:
    assert "hint: one of v:$.user.id, v:$.user.name\n" in bloom("probe", FILE, "-c", "v:$.user.*", "1").err


def test_paths_have_one_spelling() -> None:
    """Names that are no paths stay as they are."""
    spellings = {"v:$": "v:$", "a.v:$['b']['c d']": "a.v:$.b['c d']", "v:$.t[*].x": "v:$.t[*].x"}
    assert {name: canonical(name) for name in spellings} == spellings
    for name in ("v", "v:$.", "v:$['a", "v:$.a[0]", "v:$x", "v:$.*"):
        assert canonical(name) == name
    for name in ("a", "a.b", "", "'", '"', "[*]", "a]b", "ä b"):
        assert canonical(f"v:${step(name)}") == f"v:${step(name)}"


def test_absence_is_uncertain_where_the_sibling_has_values_of_other_types() -> None:
    """In row 200 `user.id` is a text. In row 201 `user.name` is null, which equals no value."""
    report = bloomcli.probe(FILE, ["42", "500"], column="v:$.user.id")
    answers = {(v.value, v.row_group): (v.answer, v.presence, v.stats_skip) for v in report.verdicts}
    assert answers["42", 0][0] is Presence.MAYBE
    assert answers["500", 0] == (Presence.ABSENT, Presence.ABSENT, True)
    assert answers["500", 1] == (Presence.UNKNOWN, Presence.UNKNOWN, None)
    assert not report.absent_everywhere
    assert report.variant_path == "v:$.user.id"
    assert bloomcli.probe(FILE, ["nobody"], column="v:$.user.name").absent_everywhere


@pytest.mark.parametrize(
    ("nulls", "bounds", "answer"),
    [
        (150, False, Presence.ABSENT),  # --deep finds this one out
        (150, True, Presence.UNKNOWN),  # only nulls, and a minimum
        (None, False, Presence.UNKNOWN),
        (151, False, Presence.UNKNOWN),
        (-1, False, Presence.UNKNOWN),
    ],
)
def test_a_null_count_is_believed_only_where_nothing_contradicts_it(
    tmp_path: Path, nulls: int | None, bounds: bool, answer: Presence
) -> None:
    """The metadata of the sibling say whether an absent value is proven."""
    path = with_nulls(tmp_path / "nulls.parquet", nulls, bounds=bounds)
    (total,) = bloomcli.probe(path, ["5000"], column="v:$.user.id").totals
    assert total.answer is answer


def test_deep_proves_the_null_count_of_the_sibling(tmp_path: Path) -> None:
    """The sibling has no filter, and its null count is read for the column's filter all the same."""
    path = with_nulls(tmp_path / "nulls.parquet", 150, bounds=False)
    found = [f.column for f in bloomcli.validate(path, deep=True, columns="v:$.user.id").findings]
    assert found == ["v.typed_value.user.typed_value.id.value"]
    assert not bloomcli.validate(FILE, deep=True).findings


def test_find_tells_of_values_of_other_types_and_no_script_takes_them_for_absent(bloom: Bloom) -> None:
    """`user.id` of row 200 is the text 5000."""
    nothing = bloom("find", FILE, "-c", "v:$.user.id", "5000")
    assert nothing.code == 4
    assert "not searched: values of v:$.user.id that have other types than the column, in 1 row group" in nothing.err
    some = bloom("find", FILE, "-c", "v:$.user.id", "42", "-f", "json")
    assert (some.code, some.json["rows"], some.json["other_types"]) == (0, 1, 1)
    assert bloom("find", FILE, "-c", "v:$.tags[*]", "t7", "--select", "n", "-f", "jsonl").json["record"] == {"n": 7}
    assert bloom("find", FILE, "-c", "v:$['a.b']", "nothing").code == 1


def test_find_tells_of_them_in_every_file_of_a_lake(tmp_path: Path, bloom: Bloom) -> None:
    """The filters of the second file aren't looked up in compiled code, which doesn't know the sibling."""
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.parquet").write_bytes(FILE.read_bytes())
    found = bloom("find", tmp_path, "-c", "v:$.user.id", "5000", "-f", "json")
    assert (found.code, found.json["other_types"]) == (4, 3)


def test_add_says_where_an_absent_value_is_not_proven(tmp_path: Path, bloom: Bloom) -> None:
    """One remark for the column; none for a column whose sibling has only nulls."""
    out = tmp_path / "added.parquet"
    result = bloom("add", FILE, "-c", "v:$.user.id,v:$['a.b']", "--replace", "-o", out)
    assert result.out.count("remark: ") == 1
    assert "remark: v:$.user.id: in 1 row group a value that the filter doesn't have may still be there" in result.out
    assert {f.column for f in bloomcli.inspect(out).filters} >= {"v.typed_value.a.b.typed_value"}


def test_paths_mean_leaves_of_the_specifications_names() -> None:
    """In a policy, which has no file. Names of steps may have wildcards, those in quotes have none."""
    leaves = {
        "v:$": "v.typed_value",
        "a.v:$.b[*]['c.d']": "a.v.typed_value.b.typed_value.list.element.typed_value.c.d.typed_value",
        "v:$.user.*": "v.typed_value.user.typed_value.*.typed_value",
        "v:$['x*']": "v.typed_value.x[*].typed_value",
        "v:$.b[0]": "v:$.b[0]",
        "v": "v",
    }
    assert {name: leaf(name) for name in leaves} == leaves
    known = {c.variant_path: c.column for c in bloomcli.inspect(FILE).by_column if c.variant_path}
    assert {path: leaf(path) for path in known} == known


POLICY = """\
require = ["v:$['a.b']", "v:$.tags[*]", "v:$.user.*"]
[columns."v:$.user['id']"]
max-fpp = 1e-9
[columns."v:$.user.name".off]
filter-required = "not yet"
"""


def test_a_policy_takes_paths_and_leaves(tmp_path: Path, bloom: Bloom) -> None:
    """Limits, requirements, rules that are off, and a baseline. Adding by the policy adds what it requires."""
    policy, baseline, out = tmp_path / "bloom.toml", tmp_path / "known.json", tmp_path / "out.parquet"
    policy.write_text(POLICY)
    found = bloom("validate", FILE, "--policy", policy, "-f", "json").json["findings"]
    counted = [(one["id"], one["column"]) for one in found if one["severity"] == "error"]
    missing = ("filter-required", "v.typed_value.a.b.typed_value")
    assert sorted(counted) == [("filter-fpp", ID), ("filter-fpp", ID), missing]
    bloom("validate", FILE, "--policy", policy, "--update-baseline", "--baseline", baseline)
    assert bloom("validate", FILE, "--policy", policy, "--baseline", baseline).code == 0
    assert bloom("add", FILE, "--policy", policy, "-o", out, "--replace").code == 0
    assert not [one for one in bloomcli.validate(out, policy=policy).findings if one.severity == "error"]
    for name in ("v:$.usr.id", "v:$['a.c']"):
        policy.write_text(f'require = ["{name}"]\n')
        (finding,) = bloom("validate", FILE, "--policy", policy, "-f", "json").json["findings"]
        assert (finding["message"], finding["column"]) == ("the file has no such column", name)
        assert "did you mean" in finding["hint"]
        assert f"requires a filter on column {name!r}" in bloom("add", FILE, "--policy", policy, "-o", out).err


def test_an_index_takes_paths_and_rules_out_no_values_of_other_types(tmp_path: Path, bloom: Bloom) -> None:
    """In row 200 `user.id` is the text 5000, so that the second row group has to be opened for any value."""
    path, index = tmp_path / "f.parquet", tmp_path / "i.bloom"
    path.write_bytes(FILE.read_bytes())
    built = bloom("index", "build", path, "-c", "v:$.user['id']", "-c", "v.typed_value.a.b.typed_value", "-o", index)
    assert built.code == 0, built.err
    some = bloom("find", path, "-c", 'v:$["user"].id', "42", "--index", index, "-f", "json")
    assert (some.code, some.json["rows"], some.json["other_types"]) == (0, 1, 1)
    assert bloom("find", path, "-c", "v:$.user.id", "5000", "--index", index).code == 4
    assert bloom("find", path, "-c", "v.typed_value.a.b.typed_value", "none", "--index", index).code == 1
    other = bloom("find", path, "-c", "v:$.user.name", "n7", "--index", index)
    assert "the index has no column 'v:$.user.name'" in other.err
    assert bloom("index", "update", path, "--index", index).code == 0
    wrong = bloom("index", "build", path, "-c", "v:$.usr.id", "-o", tmp_path / "j.bloom")
    assert "did you mean v:$.user.id" in wrong.err


def test_all_columns_can_be_named_though_none_of_them_can_have_a_filter() -> None:
    paths = [str(c.column) for c in bloomcli.inspect(FILE).by_column]
    typed = [path for path in paths if path == "n" or path.endswith("typed_value")]
    report = bloomcli.validate(FILE, columns=["*"], exclude=typed, deep=True)
    assert (report.findings, report.filters_checked, report.values_checked) == ((), 0, 0)
    with pytest.raises(NothingToFilter, match="none of the selected columns can have a filter"):
        bloomcli.validate(FILE, columns=["v.m*"])
