"""Hadoop's checksum files of replaced files, read by Hadoop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bloomcli.errors import CorruptFile
from bloomcli.storage.local.atomic import replacing
from bloomcli.storage.local.source import LocalSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]


@pytest.mark.parametrize("old", ["hadoop's own", "junk"])
def test_hadoop_reads_a_replaced_file_regardless_of_its_sidecar(
    spark: SparkSession, tmp_path: Path, old: str
) -> None:
    text = "".join(f"line {at}\n" for at in range(500))
    spark.createDataFrame([(text.rstrip("\n"),)], "value string").coalesce(1).write.text(str(tmp_path / "t"))
    (file,) = (tmp_path / "t").glob("*.txt")
    sidecar = file.with_name(f".{file.name}.crc")
    assert file.read_text() == text
    if old == "junk":
        sidecar.write_bytes(b"junk")
    with (
        LocalSource(str(file), file) as source,
        replacing(file, source=source, overwrite=True, verify=lambda _: None) as out,
    ):
        out.write(text.upper().encode())
    assert sidecar.exists()
    assert [row.value for row in spark.read.text(str(tmp_path / "t")).collect()] == text.upper().splitlines()


def test_damage_that_hadoop_refuses_to_read_is_refused_and_not_vouched_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = "".join(f"line {at}\n" for at in range(500))
    spark.createDataFrame([(text.rstrip("\n"),)], "value string").coalesce(1).write.text(str(tmp_path / "t"))
    (file,) = (tmp_path / "t").glob("*.txt")
    file.write_text(text.replace("line 300\n", "Line 300\n"))
    for _ in range(2):
        with pytest.raises(Exception, match=r"(?i)checksum"):
            spark.read.text(str(tmp_path / "t")).collect()
        with (
            LocalSource(str(file), file) as source,
            pytest.raises(CorruptFile) as caught,
            replacing(file, source=source, overwrite=True, verify=lambda _: None) as out,
        ):
            out.write(text.upper().encode())
        assert caught.value.offset == text.index("line 300") // 512 * 512
