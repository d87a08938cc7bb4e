"""Metadata that is read without Java: columns, requested filters, and groups of files."""

from __future__ import annotations

import pytest

from bloomcli.errors import UsageError
from bloomcli.tables.base import FilterRequest
from bloomcli.tables.iceberg.schema import column_names, filter_requests
from bloomcli.tables.iceberg.table import grouped

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {
            "id": 2,
            "name": "user",
            "type": {"type": "struct", "fields": [{"id": 5, "name": "email", "type": "string"}]},
        },
        {"id": 3, "name": "tags", "type": {"type": "list", "element-id": 6, "element": "string"}},
        {
            "id": 4,
            "name": "prices",
            "type": {
                "type": "map",
                "key-id": 7,
                "key": "string",
                "value-id": 8,
                "value": {"type": "struct", "fields": [{"id": 9, "name": "net", "type": "decimal(9, 2)"}]},
            },
        },
        {"id": 10, "name": "any", "type": "variant"},
        {"id": 11, "name": "nothing", "type": "unknown"},
        {"id": 12, "name": "place", "type": "geometry(srid:4326)"},
    ],
}


def test_leaves_have_the_table_s_paths_and_their_field_ids() -> None:
    found = {column.path: column.field_id for column in column_names(SCHEMA, None).columns}
    assert found == {
        "id": 1,
        "user.email": 5,
        "tags.element": 6,
        "prices.key": 7,
        "prices.value.net": 9,
        "place": 12,
    }


def test_a_name_mapping_gives_every_combination_of_a_column_s_names() -> None:
    mapping = [
        {"field-id": 1, "names": ["id", "record_id"]},
        {"field-id": 2, "names": ["user", "u"], "fields": [{"field-id": 5, "names": ["email", "mail"]}]},
        {"field-id": 3, "names": ["tags"], "fields": [{"field-id": 6, "names": ["element"]}]},
        {"names": ["dropped"]},
    ]
    found = {column.path: column.physical for column in column_names(SCHEMA, mapping).columns}
    assert found["id"] == ("id", "record_id")
    assert found["user.email"] == ("user.email", "user.mail", "u.email", "u.mail")
    assert found["tags.element"] == ("tags.element",)
    assert found["prices.key"] == ()


def test_wanted_filters_are_those_that_are_enabled_with_their_rate_and_size() -> None:
    properties = {
        "write.parquet.bloom-filter-enabled.column.user.email": "TRUE",
        "write.parquet.bloom-filter-fpp.column.user.email": "0.001",
        "write.parquet.bloom-filter-enabled.column.id": "true",
        "write.parquet.bloom-filter-enabled.column.tags.element": "false",
        "write.parquet.bloom-filter-max-bytes": "65536",
        "write.orc.bloom.filter.columns": "id, user.email",
        "write.orc.bloom.filter.fpp": "0.02",
    }
    assert filter_requests(properties, "t") == (
        FilterRequest(column="id", format="parquet", max_bytes=65536),
        FilterRequest(column="user.email", format="parquet", fpp=0.001, max_bytes=65536),
        FilterRequest(column="id", format="orc", fpp=0.02),
        FilterRequest(column="user.email", format="orc", fpp=0.02),
    )
    assert filter_requests({"write.format.default": "orc"}, "t") == ()


def test_a_property_that_is_no_number_is_named() -> None:
    properties = {
        "write.parquet.bloom-filter-enabled.column.id": "true",
        "write.parquet.bloom-filter-max-bytes": "1M",
    }
    with pytest.raises(UsageError, match="bloom-filter-max-bytes is not a number: '1M'"):
        filter_requests(properties, "t")


@pytest.mark.parametrize(
    ("numbers", "equality", "groups"),
    [
        ([3, 1, 2], [], [(1, [3, 1, 2])]),
        ([1, 2, 3], [2], [(1, [1]), (2, [2, 3])]),
        ([1, 2, 3], [4], [(1, [1, 2, 3])]),
        ([1, 2, 3], [1], [(1, [1, 2, 3])]),
        ([1, 2, 3, 9], [2, 3], [(1, [1]), (2, [2]), (3, [3, 9])]),
        ([], [2], []),
    ],
)
def test_an_equality_delete_parts_files_that_it_applies_to_from_others(
    numbers: list[int], equality: list[int], groups: list[tuple[int, list[int]]]
) -> None:
    found = grouped([(number, number) for number in numbers], equality)
    assert found == groups
    for shared, members in found:
        for number in members:
            assert [e for e in equality if number < e] == [e for e in equality if shared < e]
