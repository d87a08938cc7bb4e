"""Hudi's own classes make and read the same filters, and Hudi on Spark 3.5 inserts by them."""

from __future__ import annotations

import random
import shutil
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path

import pytest
from conftest import need
from support import spark35
from support.reference import chained_filter

import bloomcli
from bloomcli.engine_filters.hudi.layout import Decoded, dynamic, simple
from bloomcli.engine_filters.registry import filters_of
from bloomcli.formats.registry import open_file
from bloomcli.storage.registry import open_source

from .test_footer import GROUPS, KEYS, SIMPLE, WORDS, old
from .test_footer import dynamic as written_dynamic
from .test_footer import simple as written_simple

pytestmark = pytest.mark.interop


def ask(*lines: list[str]) -> list[str]:
    """Hudi's answers, one a line."""
    spark35.need_spark()
    need(shutil.which("javac") is not None, "a JDK on the PATH")
    program = str(Path(__file__).with_name("HudiFilters.java"))
    asked = "".join("\t".join(line) + "\n" for line in lines)
    command = ["java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", spark35.jars("hudi"), program]
    done = subprocess.run(command, input=asked.encode(), capture_output=True, check=True)
    return done.stdout.decode().splitlines()


TEXTS = [key.decode() for key in KEYS]


def test_hudi_makes_the_bits_that_are_computed_here() -> None:
    made = ask(
        ["make", "SIMPLE", "500", "0.01", "500", *TEXTS],
        ["make", "SIMPLE", "300", "1e-9", "500", *WORDS],
        ["make", "DYNAMIC_V0", "100", "0.01", "300", *TEXTS],
        ["make", "SIMPLE", "60000", "1e-9", "60000", "k"],
    )
    first, words, rows, default = (b64decode(text) for text in made)
    assert first == written_simple(KEYS)
    found = simple(words)
    assert found.rows[0].bitset == chained_filter([w.encode() for w in WORDS], found.rows[0].bits, found.rows[0].k)
    assert (found.sized_for, found.asked_fpp) == (300, pytest.approx(1e-9))
    keys = [KEYS[at * 100 : at * 100 + 100] + KEYS[301 + at :: 3] for at in range(3)]
    keys[0].append(KEYS[300])
    assert [row.bitset for row in dynamic(rows).rows] == [chained_filter(row, 959, 7) for row in keys]
    assert (simple(default).rows[0].bits, simple(default).sized_for) == (2_587_966, 60_000)


def text_of(data: bytes) -> str:
    return b64encode(data).decode()


def test_hudi_answers_as_bloom_does_also_for_random_bits_and_old_filters() -> None:
    generator = random.Random(0)
    noise = bytearray(written_simple([]))
    noise[13:] = generator.randbytes(len(noise) - 13)
    noise[-1] &= 1  # m is 4793
    filters = [("SIMPLE", bytes(noise)), ("SIMPLE", old(KEYS[:250])), ("DYNAMIC_V0", written_dynamic(GROUPS[:2]))]
    answers = ask(*(["read", code, text_of(data), *TEXTS, *WORDS] for code, data in filters))
    for (code, data), answer in zip(filters, answers, strict=True):
        found: Decoded = dynamic(data) if code == "DYNAMIC_V0" else simple(data)
        with open_source(SIMPLE) as source:
            (one,) = filters_of(open_file(source)).filters
        one.rows, one._jenkins = found.rows, found.hash == "jenkins"  # type: ignore[attr-defined]
        assert answer == "".join("01"[one.has(text.encode())] for text in (*TEXTS, *WORDS))


def test_what_the_rules_say_of_hudi_is_so() -> None:
    label, cut, unknown, longer = ask(
        ["read", "SIMPLE", text_of(written_dynamic(GROUPS)), *TEXTS],
        ["read", "SIMPLE", text_of(written_simple(KEYS)[:300]), *TEXTS],
        ["read", "CUCKOO", text_of(written_simple(KEYS)), *TEXTS],
        ["read", "DYNAMIC_V0", text_of(written_simple(KEYS)), *TEXTS],
    )
    assert label.count("0") > 300, "engine-filter-label: read without an error, and most keys are missed"
    assert "Exception" in cut
    assert "Exception" in unknown
    assert "Exception" in longer


TABLE = """create table {0} (id string, n int) using hudi location '{1}' tblproperties (primaryKey='id',
preCombineField='n', 'hoodie.index.type'='BLOOM', 'hoodie.index.bloom.num_entries'='500',
'hoodie.index.bloom.fpp'='0.01', 'hoodie.bloom.index.filter.type'='SIMPLE', 'hoodie.metadata.enable'='false',
'hoodie.embed.timeline.server'='false', 'hoodie.parquet.small.file.limit'='0')"""


def test_an_upsert_under_the_index_bloom_inserts_twice_what_validate_finds_missing(tmp_path: Path) -> None:
    sound, zeroed = tmp_path / "sound", tmp_path / "zeroed"
    with spark35.session("hudi", tmp_path) as spark:
        spark.sql("set hoodie.spark.sql.insert.into.operation=upsert")
        spark.sql(TABLE.format("sound", sound).replace("\n", " "))
        spark.sql("insert into sound select format_string('k%05d', id), cast(id as int) from range(0, 500, 1, 1)")
        shutil.copytree(sound, zeroed)
        (path,) = zeroed.glob("*.parquet")
        assert bloomcli.validate(path, deep=True).findings == ()
        found = bloomcli.dump(path, column="_hoodie_record_key")
        bits, none = (text_of(found.header + bits).encode() for bits in (found.bitset, bytes(len(found.bitset))))
        path.write_bytes(path.read_bytes().replace(bits, none))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        assert [one.id for one in bloomcli.validate(path, deep=True).findings] == ["engine-filter-misses"]
        spark.sql(TABLE.format("zeroed", zeroed).replace("\n", " "))
        for name, rows in (("sound", [[1000]]), ("zeroed", [[250], [1000]])):
            spark.sql(f"insert into {name} select 'k00250', 1000")
            assert spark.sql(f"select n from {name} where id = 'k00250' order by n").rows == rows
