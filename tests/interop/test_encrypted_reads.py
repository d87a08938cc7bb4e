"""Other readers read the encrypted files into which bloom writes filters, with and without these filters.

parquet-java reads through Spark's JVM, pyarrow and Polars read in this process. Each file is also written in plain
text: bloom builds the same bits for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from support.encrypted import OpenKms, empty_filters, write_encrypted
from support.orcspark import hadoop_path

import bloomcli
from bloomcli.formats.keys import Keys
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.storage.registry import open_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.spark]

TABLE: Final = pa.table(
    {
        "id": pa.array([i * 7919 % 1000 for i in range(1000)], pa.int64()),
        "name": [None if i % 10 == 3 else f"name {i * 31 % 1000}" for i in range(1000)],
        "open": [f"open {i}" for i in range(1000)],
    }
)
NAMES: Final = [name for name in TABLE["name"].to_pylist() if name is not None]
KEYS: Final[Mapping[str, Any]] = {"kms": OpenKms}
COLUMNS: Final = {"column_keys": {"one": ["id"], "two": ["name"]}}
FILES: Final[Mapping[str, Mapping[str, Any]]] = {
    "uniform-gcm": {"uniform_encryption": True},
    "uniform-ctr": {"uniform_encryption": True, "encryption_algorithm": "AES_GCM_CTR_V1"},
    "uniform-signed": {"uniform_encryption": True, "plaintext_footer": True},
    "columns-gcm": COLUMNS,
    "columns-ctr": {**COLUMNS, "encryption_algorithm": "AES_GCM_CTR_V1"},
    "columns-signed": {**COLUMNS, "plaintext_footer": True},
}


def in_plain(path: Path, **options: Any) -> list[bytes]:
    """The bits of each filter."""
    facts = bloomcli.inspect(path, **options).filters
    assert {f.problem for f in facts} == {None}
    return [
        bloomcli.dump(path, column=f.column, row_group=f.row_group, **options).bitset
        for f in sorted(facts, key=lambda f: (f.column, f.row_group))
    ]


def data_keys(path: Path) -> tuple[bytes, dict[str, bytes]]:
    """The footer's key and those of the columns that have another."""
    with open_source(path) as source:
        footer = ParquetFile(source, Keys(**KEYS)).footer
        assert footer.encryption is not None and footer.encryption.footer_cipher is not None
        own, columns = footer.encryption.footer_cipher.key, footer.encryption.ciphers
        return own, {footer.columns[at].path: c.key for (_, at), c in columns.items() if c.key != own}


def java_rows(spark: SparkSession, path: Path, name: str | None = None) -> list[str]:
    """The rows that parquet-java reads; with `name`, of those with this name."""
    jvm = spark._jvm
    assert jvm is not None
    parquet = jvm.org.apache.parquet
    footer_key, column_keys = data_keys(path)
    own = jvm.java.util.HashMap()
    for column, key in column_keys.items():
        at = parquet.hadoop.metadata.ColumnPath.fromDotString(column)
        own.put(at, parquet.crypto.ColumnDecryptionProperties.builder(at).withKey(key).build())
    keys = parquet.crypto.FileDecryptionProperties.builder().withFooterKey(footer_key).withColumnKeys(own).build()
    support = parquet.hadoop.example.GroupReadSupport()
    builder = parquet.hadoop.ParquetReader.builder(support, hadoop_path(spark, path)).withDecryption(keys)
    if name is not None:
        column = parquet.filter2.predicate.FilterApi.binaryColumn("name")
        wanted = parquet.filter2.predicate.FilterApi.eq(column, parquet.io.api.Binary.fromString(name))
        builder = builder.withFilter(parquet.filter2.compat.FilterCompat.get(wanted))
    reader, rows = builder.build(), []
    while (row := reader.read()) is not None:
        rows.append(str(row.toString()))
    reader.close()
    return rows


@pytest.mark.parametrize("kind", FILES)
def test_bits_are_those_of_the_plain_file_and_readers_read_and_use_them(
    tmp_path: Path, spark: SparkSession, kind: str
) -> None:
    plain, source, out = (tmp_path / f"{name}.parquet" for name in ("plain", "source", "out"))
    write_encrypted(source, TABLE, rows=300, **FILES[kind])
    pq.write_table(TABLE, plain, row_group_size=300, compression="none")
    bloomcli.add(plain, ["id", "name"], in_place=True)
    report = bloomcli.add(source, ["id", "name"], output=out, keys=KEYS, readers=["spark"])
    assert len(report.changes) == 8
    assert in_plain(out, keys=KEYS) == in_plain(plain)
    assert out.read_bytes().startswith(source.read_bytes()[: report.bytes_copied]), "the pages stay"
    checked = bloomcli.validate(out, deep=True, keys=KEYS)
    assert (checked.findings, checked.values_checked) == ((), 1900)

    properties = pe.CryptoFactory(OpenKms).file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration(cache_lifetime=timedelta(minutes=5))
    )
    assert pq.ParquetFile(out, decryption_properties=properties).read().equals(TABLE)
    if not kind.endswith("ctr"):
        footer_key, column_keys = data_keys(out)
        decryption = pl.ParquetDecryptionProperties(footer_key=footer_key, column_keys=column_keys)
        assert pl.read_parquet(out, decryption=decryption).to_arrow().cast(TABLE.schema).equals(TABLE)

    rows = java_rows(spark, source)
    assert java_rows(spark, out) == rows and len(rows) == 1000
    found = java_rows(spark, out, NAMES[5])
    assert found == java_rows(spark, source, NAMES[5]) and len(found) == 1
    empty_filters(out, KEYS)
    assert java_rows(spark, out) == rows
    assert java_rows(spark, out, NAMES[5]) == [], "the filter is read: without its bits the row is lost"

    left = tmp_path / "left.parquet"
    bloomcli.remove(out, output=left, keys=KEYS)
    assert java_rows(spark, left, NAMES[5]) == found
    assert bloomcli.inspect(left, keys=KEYS).filters == ()
