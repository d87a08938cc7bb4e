"""Hudi's own classes make and read the same filters. On request, because the suite installs no Hudi:

mvn dependency:get -Dtransitive=false -Dartifact=org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0
HUDI_JAR=~/.m2/repository/org/apache/hudi/.../hudi-spark3.5-bundle_2.12-1.2.0.jar pytest THIS_FILE

HUDI_PYTHON, a Python with PySpark 3.5, lets Spark upsert, too: python3 -m venv /tmp/spark35 &&
/tmp/spark35/bin/pip install pyspark==3.5.7.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path

import pytest

import bloomcli
from bloomcli.engine_filters.hudi.layout import Decoded, dynamic, simple
from bloomcli.engine_filters.registry import filters_of
from bloomcli.formats.registry import open_file
from bloomcli.storage.registry import open_source

from .test_footer import GROUPS, KEYS, SIMPLE, WORDS, bits_of, old
from .test_footer import dynamic as written_dynamic
from .test_footer import simple as written_simple

JAR, PYTHON = os.environ.get("HUDI_JAR"), os.environ.get("HUDI_PYTHON")
pytestmark = pytest.mark.skipif(JAR is None, reason="HUDI_JAR names no jar of Hudi")


def ask(*lines: list[str]) -> list[str]:
    """Hudi's answers, one a line."""
    import pyspark

    jars = f"{JAR}:{Path(pyspark.__file__).parent / 'jars'}/*"
    program = str(Path(__file__).with_name("HudiFilters.java"))
    asked = "".join("\t".join(line) + "\n" for line in lines)
    command = ["java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", jars, program]
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
    assert found.rows[0].bitset == bits_of([w.encode() for w in WORDS], found.rows[0].bits, found.rows[0].k)
    assert (found.sized_for, found.asked_fpp) == (300, pytest.approx(1e-9))
    keys = [KEYS[at * 100 : at * 100 + 100] + KEYS[301 + at :: 3] for at in range(3)]
    keys[0].append(KEYS[300])
    assert [row.bitset for row in dynamic(rows).rows] == [bits_of(row, 959, 7) for row in keys]
    assert (simple(default).rows[0].bits, simple(default).sized_for) == (2_587_966, 60_000)


def text_of(data: bytes) -> str:
    return b64encode(data).decode()


def test_hudi_answers_as_bloom_does_also_for_random_bits_and_old_filters() -> None:
    generator = random.Random(0)
    noise = bytearray(written_simple([]))
    noise[13:] = generator.randbytes(len(noise) - 13)
    noise[-1] &= 1  # m is 4793
    for data in (bytes(noise), old(KEYS[:250]), written_dynamic(GROUPS[:2])):
        code = "DYNAMIC_V0" if data == written_dynamic(GROUPS[:2]) else "SIMPLE"
        found: Decoded = dynamic(data) if code == "DYNAMIC_V0" else simple(data)
        (answers,) = ask(["read", code, text_of(data), *TEXTS, *WORDS])
        with open_source(SIMPLE) as source:
            (one,) = filters_of(open_file(source)).filters
        one.rows, one._jenkins = found.rows, found.hash == "jenkins"  # type: ignore[attr-defined]
        assert answers == "".join("01"[one.has(text.encode())] for text in (*TEXTS, *WORDS))


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


@pytest.mark.skipif(PYTHON is None, reason="HUDI_PYTHON names no Python with PySpark 3.5")
def test_an_upsert_under_the_index_bloom_inserts_twice_what_validate_finds_missing(tmp_path: Path) -> None:
    assert PYTHON is not None
    sound, zeroed = tmp_path / "sound", tmp_path / "zeroed"

    def spark(table: Path, step: str) -> str:
        program = str(Path(__file__).with_name("upserts.py"))
        command = [PYTHON, program, str(JAR), str(table), step]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "ROWS 1" in spark(sound, "write")
    shutil.copytree(sound, zeroed)
    (path,) = zeroed.glob("*.parquet")
    assert bloomcli.validate(path, deep=True).findings == ()
    found = bloomcli.dump(path, column="_hoodie_record_key")
    bits, none = (text_of(found.header + bits).encode() for bits in (found.bitset, bytes(len(found.bitset))))
    path.write_bytes(path.read_bytes().replace(bits, none))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    assert [one.id for one in bloomcli.validate(path, deep=True).findings] == ["engine-filter-misses"]
    assert "ROWS 1" in spark(sound, "upsert")
    assert "ROWS 2" in spark(zeroed, "upsert")
