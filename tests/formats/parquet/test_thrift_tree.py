"""The whole footer: the fields that thriftpy2 reads, and by number those that it drops; hostile bytes are errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import golden
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.transport import TMemoryBuffer

import bloomcli
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.formats.parquet.spec import Location
from bloomcli.storage.registry import open_source

HERE = Location("a.parquet", 100, "")
FILES = sorted(golden.FIXTURES.glob("*.parquet"))


def footer_of(path: Path) -> bytes | None:
    """The raw footer; None if the file can't be opened."""
    try:
        with open_source(path) as source:
            return ParquetFile(source).footer.raw
    except BloomError:
        return None


def plain(value: Any) -> Any:
    """thriftpy2's object without missing fields, with enums as numbers and strings as bytes."""
    if hasattr(value, "thrift_spec"):
        return {key: plain(item) for key, item in vars(value).items() if item is not None}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.encode() if isinstance(value, str) else value


def named(value: Any, names: dict[str, int]) -> Any:
    """A decoded tree with the names of enums as numbers, and text and hex as bytes."""
    if isinstance(value, dict):
        if value.keys() == {"hex"}:
            return bytes.fromhex(value["hex"])
        return {key: named(item, names) for key, item in value.items() if not key.isdigit()}
    if isinstance(value, list):
        return [named(item, names) for item in value]
    return value.encode() if isinstance(value, str) else value


def numbered(tree: Any, enums: dict[str, Any], key: str = "") -> Any:
    """A decoded tree whose enum names are numbers again, by the keys of their fields."""
    if isinstance(tree, dict):
        return {name: numbered(item, enums, name) for name, item in tree.items()}
    if isinstance(tree, list):
        return [numbered(item, enums, key) for item in tree]
    return enums[key]._NAMES_TO_VALUES[tree] if key in enums and isinstance(tree, str) else tree


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_known_fields_are_what_thriftpy2_reads(path: Path) -> None:
    raw = footer_of(path)
    if raw is None:
        return
    module = spec.structures()
    enums = {
        "repetition_type": module.FieldRepetitionType,
        "converted_type": module.ConvertedType,
        "codec": module.CompressionCodec,
        "encodings": module.Encoding,
        "encoding": module.Encoding,
        "page_type": module.PageType,
        "type": module.Type,
    }
    wanted = module.FileMetaData()
    wanted.read(TCompactProtocol(TMemoryBuffer(raw)))
    found = spec.tree_of("FileMetaData", raw, HERE)
    assert named(numbered(found, enums), {}) == plain(wanted)


def test_unknown_fields_have_their_numbers_and_bytes_are_hex() -> None:
    # KeyValue {1: "a", 2: not UTF-8, 7: i32 5, 9: struct {1: true, 2: list<binary>["x"]}, 10: double, 11: map}
    raw = bytes.fromhex("1801611801ff550a2c11191801780017000000000000f03f1b0155020400")
    assert spec.tree_of("KeyValue", raw, HERE) == {
        "key": "a",
        "value": {"hex": "ff"},
        "7": 5,
        "9": {"1": True, "2": [{"hex": "78"}]},
        "10": 1.0,
        "11": [{"key": 1, "value": 2}],
    }


def test_a_known_field_of_another_type_is_as_unknown_as_its_number() -> None:
    assert spec.tree_of("KeyValue", bytes.fromhex("150a00"), HERE) == {"1": 5}


def test_enum_values_without_a_name_keep_their_number() -> None:
    assert spec.tree_of("SchemaElement", bytes.fromhex("155400"), HERE) == {"type": "CODE 42"}


def test_cut_off_footers_are_errors_with_their_offset() -> None:
    raw = footer_of(golden.FIXTURES / "orders.parquet")
    assert raw is not None
    for size in range(0, len(raw), 97):
        with pytest.raises(CorruptFile) as error:
            spec.tree_of("FileMetaData", raw[:size], HERE)
        assert (error.value.path, (error.value.offset or 0) >= 100) == ("a.parquet", True)


def test_structures_of_very_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = footer_of(golden.FIXTURES / "orders.parquet")
    assert raw is not None
    monkeypatch.setattr(parquet_limits, "DUMP_MAX_PARTS", 100)
    with pytest.raises(UnsupportedError, match="more than 100 parts"):
        spec.tree_of("FileMetaData", raw, HERE)


def test_large_footers_are_refused_before_they_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_limits, "DUMP_MAX_BYTES", 1000)
    with pytest.raises(UnsupportedError, match="at most 1000 are written"):
        bloomcli.inspect(golden.FIXTURES / "orders.parquet", footer=True)
