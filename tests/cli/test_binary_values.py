"""Values of binary columns: UUIDs are found by their text and as `uuid.UUID`, bytes as bytes; and reports say
what was looked up as text."""

from __future__ import annotations

import base64
import ipaddress
import uuid
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support.cli import Bloom

import bloomcli
from bloomcli.errors import UsageError

IDS = [uuid.UUID(int=n * 0x1F3D_5B79_0000_0000_0000_0001 + 1) for n in range(2000)]
THERE, ABSENT = IDS[1234], uuid.UUID(int=7)


def _file(folder: Path, form: str) -> Path:
    path = folder / f"{form}.{'orc' if form == 'orc' else 'parquet'}"
    kind: Any = {"fixed": pa.binary(16), "text": pa.string()}.get(form, pa.binary())
    ids = pa.array(
        [str(one) for one in IDS] if form in {"text", "binary texts"} else [one.bytes for one in IDS], kind
    )
    if form == "uuid":
        ids = pa.ExtensionArray.from_storage(pa.uuid(), ids.cast(pa.binary(16)))
    table = pa.table({"id": ids, "n": range(len(IDS))})
    if form == "orc":
        orc.write_table(table, path)
    else:
        pq.write_table(table, path, row_group_size=500)
    return path


FORMS = ("fixed", "binary", "binary texts", "uuid", "text", "orc")


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_uuid_is_found_whatever_the_column_stores(bloom: Bloom, tmp_path: Path, form: str, filtered: bool) -> None:
    path = _file(tmp_path, form)
    if filtered:
        bloomcli.add(path, ["id"], in_place=True)
    for value in (THERE, str(THERE), str(THERE).upper() if form not in {"text", "binary texts"} else str(THERE)):
        (found,) = bloomcli.find(path, value, column="id", select="n")
        assert found["record"].to_pylist() == [{"n": 1234}], value
        assert not bloomcli.probe(path, value, column="id").absent_everywhere
    assert bloom("find", THERE, path, "-c", "id", "--maybe").code == 0
    assert bloom("probe", path, "-c", "id", "-v", THERE).code == 0
    assert bloom("find", ABSENT, path, "-c", "id").code == 1
    if filtered:
        assert bloom("probe", path, "-c", "id", "-v", ABSENT).code == 1
    index = tmp_path / "ids.bloom-index"
    if form != "orc" or filtered:
        bloomcli.index_build(path, ["id"], output=index)
        assert [len(batch) for batch in bloomcli.find(path, THERE, column="id", index=index)] == [1]


def test_reports_say_what_was_looked_up(bloom: Bloom, tmp_path: Path) -> None:
    fixed, binary, text = (_file(tmp_path, form) for form in ("fixed", "binary", "text"))
    for path, words in ((fixed, f"UUID, 0x{ABSENT.hex}"), (binary, f"UUID, 0x{ABSENT.hex}, and as text")):
        sentence = f"{ABSENT} was looked up as the 16 bytes of the {words}"
        found, probed = bloom("find", ABSENT, path, "-c", "id"), bloom("probe", path, "-c", "id", "-v", ABSENT)
        assert f"value: {sentence}\n" in found.err
        assert sentence in " ".join(probed.out.split())
    spelled = {
        "00112233445566778899aabbccddeeff": "00112233445566778899aabbccddeeff",
        "10.0.0.1": ipaddress.ip_address("10.0.0.1").packed.hex(),
        "2001:db8::1": ipaddress.ip_address("2001:db8::1").packed.hex(),
        base64.b64encode(IDS[3].bytes).decode(): IDS[3].hex,
    }
    for value, meant in spelled.items():
        done = bloom("find", value, binary, "-c", "id")
        assert f"value: {value} was looked up as text; 0x{meant} looks up the bytes" in done.err
        assert "value:" not in bloom("find", value, text, "-c", "id").err, "a text column holds texts"
    for value in ("paid", "nobody@example.org", "0x00112233", "international"):
        assert "value:" not in bloom("find", value, binary, "-c", "id").err


def test_bytes_are_looked_up_as_they_are(tmp_path: Path) -> None:
    values = [b"\xff\x00", b"plain", b"", "größe".encode(), IDS[5].bytes, b"\x00" * 16]
    path = tmp_path / "bytes.parquet"
    pq.write_table(pa.table({"b": pa.array(values, pa.binary()), "n": range(len(values))}), path)
    bloomcli.add(path, ["b"], in_place=True)
    for at, value in enumerate(values):
        for given in (value, [value], bytearray(value), pa.array([value], pa.binary())):
            rows = [row for batch in bloomcli.find(path, given, column="b") for row in batch.to_pylist()]
            assert [row["record"]["n"] for row in rows] == [at], given
        assert not bloomcli.probe(path, value, column="b").absent_everywhere
    with pytest.raises(UsageError, match="can be a text, or hexadecimal digits"):
        bloomcli.find(path, b"0xff", column="b")
    texts = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"t": ["plain", "größe"]}), texts)
    assert [len(batch) for batch in bloomcli.find(texts, [b"plain", "größe".encode()], column="t")] == [2]


def test_values_and_texts_of_rows_are_texts_in_arrow_and_parquet(bloom: Bloom, tmp_path: Path) -> None:
    path, hits = tmp_path / "rows.parquet", tmp_path / "hits.parquet"
    sql = (
        "select 'a' as s, blob 'b' as b, 1.5::decimal(10,2) as d, date '2024-02-29' as day,"
        " timestamp '2024-02-29 01:02:03' as ts, uuid '123e4567-e89b-12d3-a456-426614174000' as u, ['x'] as l"
    )
    duckdb.sql(f"copy ({sql}) to '{path}' (format parquet)")
    (batch,) = bloomcli.find(path, ["a"], column="s")
    assert batch.schema.field("value").type == pa.large_string()
    assert batch["value"].to_pylist() == ["a"]
    assert bloom("find", "a", path, "-c", "s", "-f", "parquet", "-o", hits).code == 0
    assert duckdb.sql(f"select typeof(value), value from '{hits}'").fetchall() == [("VARCHAR", "a")]
    fields = duckdb.sql(f"select unnest(record) from '{hits}'").description
    given = duckdb.sql(f"select * from '{path}'").description
    assert [(name, kind) for name, kind, *_ in fields] == [(name, kind) for name, kind, *_ in given]
    assert duckdb.sql(f"select unnest(record) from '{hits}'").fetchall() == duckdb.sql(sql).fetchall()


def test_bytes_that_were_looked_up_as_text_are_named(bloom: Bloom, tmp_path: Path) -> None:
    """pyarrow, which shows a column of ENUM as bytes, makes people ask for these."""
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"t": ["STRING", "0x41"], "b": [b"STRING", b"0x41"]}), path)
    said = "0x535452494e47 was looked up as text, not as the bytes that it spells"
    assert f"value: {said}\n" in bloom("find", "0x535452494e47", path, "-c", "t").err
    assert said in " ".join(bloom("probe", path, "-c", "t", "-v", "0x535452494e47").out.split())
    found = bloom("find", "0x535452494e47", path, "-c", "b")
    assert (found.code, "looked up as" in found.err) == (0, False)
    assert bloom("find", "0x41", path, "-c", "t").code == 0
