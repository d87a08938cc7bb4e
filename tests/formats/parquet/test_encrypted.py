"""Encrypted files by six writers are read as other files are; what can't be decrypted is an error, and no answer."""

from __future__ import annotations

import base64
import json
import os
import pickle
import random
import re
import shutil
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, thrift
from support.encrypted import FILES, KEYS, OpenKms, file, rows_by_arrow, write_encrypted

import bloomcli
from bloomcli.cli import COMMANDS, command_of, run
from bloomcli.commands.options import InspectOptions
from bloomcli.errors import BloomError, CorruptFile, KeyMissing, UnsupportedError, UsageError
from bloomcli.formats.keys import Keys, pairs
from bloomcli.formats.parquet.decryption import PlainSource
from bloomcli.formats.parquet.encryption import Algorithm, Cipher, Kind, module_length
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.formats.parquet.pages import read_pages
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.model.file import UNVERIFIED, Presence, Severity
from bloomcli.model.validate import Finding
from bloomcli.storage.registry import open_source

SAME_ROWS: Final = {"java": "java_uniform_gcm", "polars": "polars_uniform_nofilter"}
"""The file with one key that has the rows of others, by how their names begin."""
OWN_IDS: Final = "encrypt_columns_and_footer_bloom_filter"


def keys(name: str) -> Keys:
    return Keys(**KEYS[name])


def rows_of(name: str) -> list[dict[str, Any]]:
    family = name.split("_", maxsplit=1)[0]
    return rows_by_arrow(SAME_ROWS.get(family, "pyarrow_uniform_gcm_aad_not_stored_nofilter"))


def found(path: Path, given: Keys, values: list[Any], column: str) -> list[dict[str, Any]]:
    rows = bloomcli.find(path, values, column=column, keys=given)
    records = [record for batch in rows for record in batch.column("record").to_pylist()]
    assert not rows.report.errors, rows.report.errors
    return records


@pytest.mark.parametrize("name", KEYS)
def test_every_filter_statistic_and_index_agrees_with_the_values(name: str) -> None:
    report = bloomcli.validate(file(name), deep=True, columns=["*"], keys=keys(name))
    assert [f.message for f in report.findings] == []
    shown = bloomcli.inspect(file(name), keys=keys(name))
    assert shown.rows == (2000 if name == OWN_IDS else shown.rows)
    assert all(one.problem is None for one in shown.filters)
    assert dict(shown.details)["encryption"].startswith("AES_GCM")


@pytest.mark.parametrize("name", sorted(KEYS.keys() - {OWN_IDS}))
def test_the_rows_are_those_that_arrow_reads_of_the_same_data(name: str) -> None:
    rows = rows_of(name)
    some = rows[::7]
    by_id = found(file(name), keys(name), [row["id"] for row in some], "id")
    assert by_id == some
    names = {row["name"] for row in some}
    assert found(file(name), keys(name), sorted(names), "name") == [row for row in rows if row["name"] in names]
    probed = bloomcli.probe(file(name), [row["id"] for row in rows], column="id", keys=keys(name))
    assert all(total.answer is not Presence.ABSENT for total in probed.totals)


def test_pages_without_a_tag_are_decrypted_in_several_threads_at_once() -> None:
    cipher = Cipher(bytes(16), Algorithm("AES_GCM_CTR_V1", b"aad"), (0, 0))
    plain = [bytes([number]) * 99 for number in range(200)]
    modules = [cipher.encrypt(page, Kind.DATA_PAGE, number) for number, page in enumerate(plain)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda module: cipher.decrypt(module, Kind.DATA_PAGE), modules * 50))
    finally:
        sys.setswitchinterval(before)
    assert found == plain * 50


def test_a_plain_file_in_place_of_an_encrypted_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(CorruptFile, match="another file is in its place"):
        bloomcli.inspect(path, keys={"files": {str(path): (b"0" * 16, None)}})


def test_pages_that_are_read_in_order_are_read_and_decrypted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"id": pa.array(range(200_000), pa.int64())})
    path = write_encrypted(tmp_path / "in.parquet", table, rows=100_000, uniform_encryption=True)
    modules, decrypt = Counter[tuple[Any, ...]](), Cipher.decrypt

    def recorded(self: Cipher, module: bytes, kind: Kind, page: int | None = None) -> bytes:
        modules[self.ordinals, kind, page] += 1
        return decrypt(self, module, kind, page)

    monkeypatch.setattr(Cipher, "decrypt", recorded)
    with open_source(path) as source:
        opened = ParquetFile(source, Keys(kms=OpenKms))
        chunks = [opened.footer.chunk(key) for key in opened.footer.chunk_keys()]
        pages = [page for chunk in chunks for page in read_pages(opened.source, chunk)]
        assert isinstance(opened.source, PlainSource)
        assert opened.source.bytes_read < 1.2 * sum(chunk.compressed_bytes for chunk in chunks)
    assert sum(page.non_null for page in pages if not page.dictionary) == 200_000
    assert len(modules) > 2 * len(pages) > 10
    assert set(modules.values()) == {1}


@pytest.mark.parametrize(
    ("order", "crc_is_of", "problem"),
    [
        ((1, 2, 3, 5), None, None),
        ((1, 2, 3, 4, 5), "module", None),
        ((5, 4, 3, 2, 1), "module", None),
        ((4, 9, 3, 63, 5, 1, 2), "plain", None),
        ((3, 2, 1, 5, 4), "other", "don't match the checksum"),
        ((1, 2, 5), None, "PageHeader has no compressed_page_size"),
        ((1, 2, 3, 5, 3), None, "repeated"),
        ((1, 2, 3, 5, 1000), None, "repeated"),
    ],
)
def test_page_headers_with_fields_in_any_order_are_read(
    order: tuple[int, ...], crc_is_of: str | None, problem: str | None, tmp_path: Path
) -> None:
    table = pa.table({"id": pa.array(range(20), pa.int64())})
    path = write_encrypted(tmp_path / "in.parquet", table, dictionary=False, uniform_encryption=True)
    data = bytearray(path.read_bytes())
    with open_source(path) as source:
        footer = ParquetFile(source, Keys(kms=OpenKms)).footer
        (chunk,) = map(footer.chunk, footer.chunk_keys())
        assert footer.encryption is not None
        cipher = footer.encryption.ciphers[0, 0]
    at, end = chunk.data_offset, chunk.data_offset + module_length(data[chunk.data_offset :])
    plain = cipher.decrypt(data[at:end], Kind.DATA_PAGE_HEADER, 0)
    fields, _ = thrift.parse(plain)
    body = data[end : end + fields[3][1]]
    crcs = {"module": zlib.crc32(body), "plain": zlib.crc32(cipher.decrypt(body, Kind.DATA_PAGE, 0)), "other": 7}
    crc = crcs[crc_is_of or "other"]
    fields |= {4: (thrift.I32, crc - (crc >> 31 << 32)), 9: (thrift.BINARY, b"x"), 63: (thrift.TRUE, True)}
    fields |= {1000: (thrift.I64, 1), 5: (thrift.STRUCT, {n: fields[5][1][n] for n in (1, 2, 3, 4)})}
    parts = [bytes([fields[n][0]]) + thrift.zigzag(n) + thrift.encode({1: fields[n]})[1:-1] for n in order]
    new = b"".join(parts) + b"\0"
    assert len(new) <= len(plain), "what follows a structure is ignored"
    data[at:end] = cipher.encrypt(new.ljust(len(plain), b"\0"), Kind.DATA_PAGE_HEADER, 0)
    path.write_bytes(data)
    rows = bloomcli.find(path, [3, 19], column="id", keys=Keys(kms=OpenKms))
    assert [each for batch in rows for each in batch["record"].to_pylist()] == (
        [] if problem else [{"id": 3}, {"id": 19}]
    )
    assert (problem or "()") in str(rows.report.errors)


@pytest.mark.slow
def test_many_files_in_several_processes_and_an_index(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for name in ("java_columns_gcm", "java_uniform_gcm", "java_columns_ctr"):
        shutil.copy(file(name), lake)
    given = keys("java_uniform_gcm")
    assert bloomcli.validate([lake], deep=True, jobs=2, keys=given).ok
    row = rows_by_arrow("java_uniform_gcm")[5]
    assert found(lake, given, [row["id"]], "id") == [row] * 3
    index = tmp_path / "lake.bloom-index"
    refused = bloomcli.index_build(lake, ["id"], output=index, keys=given)
    assert all(
        "column id is encrypted, and an index has filters in the clear" in (r.error or "") for r in refused.errors
    )
    assert len(refused.errors) == 3
    bloomcli.index_build(lake, ["id"], output=index, overwrite=True, keys=given, allow_plaintext_index=True)
    rows = bloomcli.find(lake, [row["id"]], column="id", keys=given, index=index)
    assert sum(batch.num_rows for batch in rows) == 3
    assert bloomcli.advise(lake, keys=given).columns


# --- without keys, and with wrong ones


def test_dump_and_fold_miss_the_key_of_a_column_as_other_commands_do() -> None:
    path = file("java_columns_gcm_plaintext_footer")
    with pytest.raises(KeyMissing, match="the filter is encrypted with its column") as caught:
        bloomcli.fold(path, columns=["id"], dry_run=True)
    assert caught.value.exit_code == KeyMissing.exit_code
    assert run(["dump", str(path), "--column", "id", "--row-group", "0"]) == KeyMissing.exit_code


def test_an_index_says_that_it_never_rules_out_what_is_encrypted_without_a_key(tmp_path: Path) -> None:
    path = file("java_columns_gcm_plaintext_footer")
    reports = [bloomcli.index_build(path, [name], output=tmp_path / name) for name in ("id", "plain")]
    never = "the index never rules out some of its column chunks, because their values can't be looked up"
    assert [[never in remark for remark in report.remarks] for report in reports] == [[True], [False]]


def test_without_keys_the_error_names_the_key() -> None:
    with pytest.raises(KeyMissing, match="the footer is encrypted, and its key isn't given") as caught:
        bloomcli.inspect(file("java_columns_gcm"))
    assert caught.value.hint == "give its key: --footer-key env:NAME, or by the file's name for it, --key kf=env:NAME"
    with pytest.raises(UnsupportedError) as caught:
        bloomcli.inspect(file("spark_columns_external"))
    assert "--key footerkey=env:NAME" in str(caught.value.hint)


def test_without_a_columns_key_the_others_are_read() -> None:
    given = Keys(keys={"kf": KEYS["java_columns_gcm"]["keys"]["kf"]})
    shown = bloomcli.inspect(file("java_columns_gcm"), keys=given)
    details = dict(shown.details)
    assert details["not readable"] == "id (kc1), name (kc2): without the key"
    assert details["encrypted columns"] == "v (kf)"
    plain = bloomcli.find(file("java_columns_gcm"), ["p1"], column="plain", select=["plain"], keys=given)
    assert sum(batch.num_rows for batch in plain) > 0
    report = bloomcli.validate(file("java_columns_gcm"), keys=given)
    assert [(f.id, f.column) for f in report.findings] == [("filter-encrypted", "id"), ("filter-encrypted", "name")]
    rows = bloomcli.find(file("java_columns_gcm"), ["name-0"], column="name", keys=given)
    assert list(rows) == []
    (error,) = rows.report.errors
    assert "column name is encrypted, and its key isn't given" in str(error.error)
    assert "--column-key name=env:NAME" in str(error.hint)


def test_a_signed_footer_is_verified_and_shown_as_such() -> None:
    name = "java_columns_gcm_plaintext_footer"
    assert dict(bloomcli.inspect(file(name), keys=keys(name)).details)["footer signature"] == "verified by kf"
    unverified = dict(bloomcli.inspect(file(name)).details)["footer signature"]
    assert unverified == "not verified: its key isn't given (kf)"


def test_inspect_names_add_only_where_the_keys_suffice_for_it(capfd: pytest.CaptureFixture[str]) -> None:
    path = str(file("java_columns_gcm_plaintext_footer"))
    for flags in ([], ["--key", f"kf=hex:{KEYS['java_columns_gcm_plaintext_footer']['keys']['kf'].hex()}"]):
        assert run(["inspect", path, "-c", "plain", *flags]) == 0
        shown = " ".join(capfd.readouterr().out.split())
        assert ("`bloom add FILE" in shown) is bool(flags), shown


@pytest.mark.slow
@pytest.mark.parametrize("change", ["no footer key", "another name of the key", "no keys"])
def test_what_rests_on_a_footer_that_is_not_verified_says_so(
    change: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = "java_columns_gcm_plaintext_footer"
    path, given = tmp_path / "f.parquet", dict(KEYS[name]["keys"])
    bloomcli.add(file(name), ["plain"], output=path, keys=keys(name))
    data = path.read_bytes()
    at = data.rindex(b"kf")
    path.write_bytes(data[:at] + b"kx" + data[at + 2 :] if change == "another name of the key" else data)
    if change != "another name of the key":
        given = {} if change == "no keys" else {"kc1": given["kc1"], "kc2": given["kc2"]}
    found = [f for f in bloomcli.validate(path, keys=Keys(keys=given)).findings if f.id == "footer-unverified"]
    assert [(f.severity, "--footer-key env:NAME" in (f.hint or "")) for f in found] == [
        ("note" if change == "no keys" else "warning", True)
    ]
    flags = [f"--key={each}=hex:{key.hex()}" for each, key in given.items()]
    probe, find = (["probe", path, "-c", "plain", "p1"], ["find", path, "-c", "plain", "p1", "--select", "plain"])
    for command in (
        probe,
        find,
        ["inspect", path, tmp_path],
        ["probe", path, tmp_path, "-c", "plain", "--value", "p1"],
        ["index", "build", path, "-c", "plain", "-o", tmp_path / "i"],
        advise := ["advise", path, "-c", "plain"],
        dump := ["dump", path, "-c", "plain"],
        ["advise", path, "-c", "plain", "--report", f"html={tmp_path / 'a.html'}"],
    ):
        assert run([*map(str, command), *flags]) == 0
        shown = capfd.readouterr()
        assert UNVERIFIED in " ".join((shown.out + shown.err).split()), command
    assert UNVERIFIED in unescape((tmp_path / "a.html").read_text())
    for command in (probe, find, advise, dump):
        run([*map(str, command), *flags, "--format", "json"])
        assert json.loads(capfd.readouterr().out)["unverified"]


SIGNED: Final = sorted(name for name in KEYS if "plaintext_footer" in name)


@pytest.mark.parametrize("name", SIGNED)
@pytest.mark.parametrize(
    "cut", ["signature", "algorithm and signature", "algorithm", "algorithm, but not the encrypted metadata"]
)
def test_a_footer_whose_signature_was_cut_off_is_refused_with_keys_and_without(
    name: str, cut: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.parquet"
    body, footer = footers.split(file(name).read_bytes())
    metadata, end = thrift.parse(footer)
    if cut == "signature":
        stripped = footer[:end]
    else:
        del metadata[8], metadata[9]
        if "metadata" in cut:
            for row_group, column in footers.places(file(name).read_bytes()):
                footers.chunk(metadata, row_group, column).pop(8, None)
        stripped = thrift.encode(metadata) + (footer[end:] if cut == "algorithm" else b"")
    path.write_bytes(footers.join(body, stripped))
    message = "signature has 0 bytes, not 28" if cut == "signature" else "the footer has no encryption_algorithm"
    plain = bloomcli.inspect(file(name)).by_column[-1].column
    calls: list[Callable[..., Any]] = [
        partial(bloomcli.inspect, path),
        partial(bloomcli.validate, path),
        partial(bloomcli.probe, path, ["p1"], column=plain),
        partial(bloomcli.dump, path, column=plain),
        partial(bloomcli.add, path, [plain], in_place=True),
        partial(bloomcli.remove, path, in_place=True),
    ]
    for call in calls:
        for given in (keys(name), None):
            with pytest.raises(CorruptFile, match=message) as caught:
                call(keys=given)
            assert "get the file from its source again" in (caught.value.hint or "")


def test_a_footer_whose_signature_was_cut_off_is_refused_among_many_files_that_filters_rule_out(
    tmp_path: Path,
) -> None:
    signed, lake = tmp_path / "signed.parquet", tmp_path / "lake"
    name = "java_columns_gcm_plaintext_footer"
    bloomcli.add(file(name), ["plain"], output=signed, keys=keys(name))
    body, footer = footers.split(signed.read_bytes())
    metadata, _ = thrift.parse(footer)
    del metadata[8], metadata[9]
    stripped = footers.join(body, thrift.encode(metadata))
    for row_group, column in footers.places(signed.read_bytes()):
        for field in (8, 9):
            footers.chunk(metadata, row_group, column).pop(field, None)
    plain = footers.join(body, thrift.encode(metadata))
    lake.mkdir()
    for number in range(60):
        (lake / f"{number:02}.parquet").write_bytes(stripped if number == 50 else plain)
    found = bloomcli.find(lake, ["absent"], column="plain")
    assert list(found) == []
    (error,) = found.report.errors
    assert (Path(error.path).name, "the footer has no encryption_algorithm" in str(error.error)) == (
        "50.parquet",
        True,
    )


@pytest.mark.parametrize("number", [-5, 0, 3000])
def test_a_field_of_any_number_in_a_chunk_is_left_out_of_the_plain_metadata(tmp_path: Path, number: int) -> None:
    name = "java_columns_gcm_plaintext_footer"
    body, footer = footers.split(file(name).read_bytes())
    metadata, end = thrift.parse(footer)
    chunk = footers.chunk(metadata, 0, 0)
    fields = {number: (thrift.I32, 7), **chunk}
    chunk.clear()
    chunk.update(fields)
    path = tmp_path / "in.parquet"
    path.write_bytes(footers.join(body, thrift.encode(metadata) + footer[end:]))
    known = {one: key for one, key in KEYS[name]["keys"].items() if one != "kf"}  # nothing verifies the footer
    found = bloomcli.inspect(path, keys=Keys(keys=known)).filters
    assert found == bloomcli.inspect(file(name), keys=Keys(keys=known)).filters


def test_keys_for_no_encrypted_column_are_said() -> None:
    name = "java_columns_gcm"
    keys_ = KEYS[name]["keys"]
    given = Keys(keys={"kf": keys_["kf"]}, column_keys={"idd": keys_["kc1"], "plain": keys_["kc1"]})
    unused = "no column with a key of its own is named idd, plain"
    assert dict(bloomcli.inspect(file(name), keys=given).details)["keys not used"] == unused
    with pytest.raises(UnsupportedError, match="column id is encrypted") as caught:
        bloomcli.dump(file(name), column="id", keys=given)
    assert unused in (caught.value.hint or "")
    assert "keys not used" not in dict(bloomcli.inspect(file(name), keys=keys(name)).details)


WRONG: Final = "the key or the AAD prefix is another one, or the bytes were changed"


def answers(path: Path, given: Keys) -> None:
    """Read everything of a file. Raises BloomError for each fault, and for a footer that isn't verified."""
    if "not verified" in dict(bloomcli.inspect(path, keys=given).details).get("footer signature", ""):
        raise CorruptFile("not verified")
    for finding in bloomcli.validate(path, deep=True, columns=["*"], keys=given).findings:
        raise CorruptFile(finding.message)


@pytest.mark.parametrize("name", KEYS)
def test_a_wrong_footer_key_opens_nothing(name: str) -> None:
    given = KEYS[name]
    wrong = bytes(16)
    other = Keys(footer_key=wrong, aad_prefix=given.get("aad_prefix"), column_keys=given.get("column_keys", {}))
    message = "the footer's signature isn't that of its bytes" if "plaintext" in name else WRONG
    with pytest.raises(CorruptFile, match=message):
        bloomcli.inspect(file(name), keys=other)


@pytest.mark.parametrize("name", ["java_columns_gcm", "java_columns_ctr", "java_columns_gcm_plaintext_footer"])
def test_a_wrong_column_key_opens_nothing(name: str) -> None:
    other = Keys(keys={**KEYS[name]["keys"], "kc1": KEYS[name]["keys"]["kc2"]})
    with pytest.raises(CorruptFile, match=f"a chunk of column id can't be decrypted: {WRONG}"):
        bloomcli.inspect(file(name), keys=other)


def test_a_wrong_or_missing_aad_prefix_opens_nothing() -> None:
    name = "pyarrow_uniform_gcm_aad_not_stored_nofilter"
    with pytest.raises(CorruptFile, match=WRONG):
        bloomcli.inspect(file(name), keys=Keys(footer_key=KEYS[name]["footer_key"], aad_prefix=b"testes"))
    with pytest.raises(UsageError, match="doesn't store its AAD prefix"):
        bloomcli.inspect(file(name), keys=Keys(footer_key=KEYS[name]["footer_key"]))
    stored = "java_columns_gcm_aes256_aad_stored"
    with pytest.raises(UsageError, match="stores another AAD prefix"):
        bloomcli.inspect(file(stored), keys=Keys(**{**KEYS[stored], "aad_prefix": b"other"}))


def places(name: str) -> list[tuple[int, int]]:
    """The modules of a file's chunks: pages, filters and indexes, by their offsets and lengths."""
    from bloomcli.formats.parquet.footer import regions

    with open_source(file(name)) as source:
        footer = ParquetFile(source, keys(name)).footer
        assert footer.encryption is not None
        return [
            (one.start, one.end - one.start)
            for one in regions(footer, lambda _: None)
            if (one.key.row_group, one.key.column) in footer.encryption.ciphers
        ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["java_columns_gcm", "java_columns_gcm_plaintext_footer", "java_columns_ctr"])
def test_swapped_modules_are_refused(name: str, tmp_path: Path) -> None:
    """Two pieces of the same length and kind, of two row groups or columns: only the AAD tells them apart."""
    data, swapped = file(name).read_bytes(), 0
    by_length: dict[int, list[int]] = {}
    for start, length in places(name):
        by_length.setdefault(length, []).append(start)
    for length, starts in by_length.items():
        for first, second in pairwise(starts):
            changed = bytearray(data)
            changed[first : first + length] = data[second : second + length]
            changed[second : second + length] = data[first : first + length]
            path = tmp_path / "swapped.parquet"
            path.write_bytes(changed)
            with pytest.raises(CorruptFile):
                answers(path, keys(name))
            swapped += 1
    assert swapped >= 6


CONFIGURATIONS: Final = (
    "java_columns_gcm",
    "java_columns_ctr",
    "java_columns_gcm_plaintext_footer",
    "java_columns_gcm_aes256_aad_stored",
    "java_uniform_gcm",
    "pyarrow_uniform_gcm_aad_not_stored_nofilter",
    "spark_columns_external",
)
"""A file of each way to encrypt."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_any_changed_byte_is_an_error_and_no_answer(name: str, tmp_path: Path) -> None:
    """With AES-GCM every byte of a module and of the footer is authentic. Pages under AES-CTR aren't."""
    data, random_ = file(name).read_bytes(), random.Random(name)
    modules = (
        []
        if "ctr" in name
        else [at for start, size in places(name) for at in random_.sample(range(start, start + size), 2)]
    )
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if data.endswith(b"PARE"):  # what the key is called isn't authentic
        footer = Struct("FileCryptoMetaData", data, footer, Location("", 0, "")).end
    for at in (*modules, *(random_.randrange(footer, len(data)) for _ in range(12))):
        changed = bytearray(data)
        changed[at] ^= 1 << random_.randrange(8)
        path = tmp_path / file(name).name
        path.write_bytes(changed)
        material = FILES / f"_KEY_MATERIAL_FOR_{path.name}.json"
        if material.exists():
            shutil.copy(material, tmp_path)
        with pytest.raises(BloomError):
            answers(path, keys(name))


@pytest.mark.parametrize("name", ["java_columns_gcm", "duckdb_uniform", "java_columns_gcm_plaintext_footer"])
def test_cut_files_are_refused(name: str, tmp_path: Path) -> None:
    data, path = file(name).read_bytes(), tmp_path / "cut.parquet"
    for size in (4, 11, 12, len(data) // 2, len(data) - 1, len(data) - 9):
        path.write_bytes(data[:size] if size < 5 else data[:size] + data[-8:])
        with pytest.raises(BloomError):
            answers(path, keys(name))


def test_a_filter_in_plain_text_of_an_encrypted_column_gives_no_answer(tmp_path: Path) -> None:
    """arrow-rs writes such filters. Nobody can tell whether they were changed."""
    name = "java_columns_gcm_plaintext_footer"
    with open_source(file(name)) as source:
        opened = ParquetFile(source, keys(name))
        chunk = next(iter(opened.filters.locations({0})))
        start, length = chunk.bloom_filter_offset or 0, chunk.bloom_filter_length or 0
        plain = opened.source.read_at(start, length)
    data = bytearray(file(name).read_bytes())
    data[start : start + length] = plain
    path = tmp_path / "leak.parquet"
    path.write_bytes(data)
    first = bloomcli.probe(path, [-1], column="id", keys=keys(name)).verdicts[0]
    assert first.presence is not Presence.ABSENT
    assert "the column is encrypted, and its filter isn't" in (first.reason or "")


# --- keys


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("hex:30313233343536373839303132333435", b"0123456789012345"),
        ("base64:MDEyMzQ1Njc4OTAxMjM0NQ==", b"0123456789012345"),
        ("env:BLOOM_TEST_KEY", b"0123456789012345"),
        ("@{folder}/key", b"0123456789012345"),
        (b"0123456789012345", b"0123456789012345"),
    ],
)
def test_the_forms_of_keys(given: Any, key: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOOM_TEST_KEY", "base64:MDEyMzQ1Njc4OTAxMjM0NQ==\n")
    (tmp_path / "key").write_text("hex:30313233343536373839303132333435\n")
    text = given.format(folder=tmp_path) if isinstance(given, str) else given
    assert Keys(footer_key=text).footer_key == key


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("0123456789012345", "has none of the forms hex:DIGITS, base64:TEXT, env:NAME or @FILE"),
        ("text:0123456789012345", "has none of the forms"),
        ("", "has none of the forms"),
        ("env:", "has none of the forms"),
        ("@", "has none of the forms"),
        ("MDEyMzQ1Njc4OTAxMjM0NQ==", "has none of the forms"),
        ("hex:3031", "has 2 bytes, and a key has 16, 24 or 32"),
        ("hex:303132333435363738393031323334zz", "isn't valid hex"),
        ("base64:!!", "isn't valid base64"),
        ("env:BLOOM_TEST_UNSET", "BLOOM_TEST_UNSET, which isn't set"),
        ("@no-such-folder/key", "can't be read: No such file"),
        (17, "is neither bytes nor a text"),
    ],
)
def test_other_texts_are_refused_without_being_shown(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        Keys(column_keys={"id": given})
    assert "the key of column id" in str(caught.value)
    for secret in ("0123456789012345", "MDEyMzQ1", "3031"):
        assert secret not in str(caught.value.message).replace("hex:30313233...", "")


def test_an_empty_key_is_refused_as_if_its_variable_was_forgotten(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", str(file("java_columns_gcm_plaintext_footer")), "--footer-key", ""]) == 2
    assert "the footer's key has none of the forms" in capfd.readouterr().err


def test_names_with_an_equals_sign_take_a_key() -> None:
    assert pairs(["a=b=hex:00", "c=base64:AA=="], "--key") == {"a=b": "hex:00", "c": "base64:AA=="}
    for wrong in (["hex:00"], ["=hex:00"], ["a=hex:00", "a=hex:01"]):
        with pytest.raises(UsageError):
            pairs(wrong, "--key")


class Kms:
    """A KMS with the interface of pyarrow's KmsClient, whose master keys are the settings."""

    def __init__(self, config: Any) -> None:
        self.keys = config.custom_kms_conf

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        raw = base64.b64decode(wrapped_key)
        key = bytes.fromhex(self.keys[master_key_identifier])
        return AESGCM(key).decrypt(raw[:12], raw[12:], master_key_identifier.encode())


@pytest.mark.parametrize("name", ["spark_columns_double", "spark_columns_external"])
def test_a_kms_unwraps_the_keys(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = {each: key.hex() for each, key in KEYS[name]["keys"].items()}
    assert bloomcli.validate(file(name), deep=True, keys=Keys(kms=Kms, kms_config=config)).ok
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    assert bloomcli.inspect(file(name), keys=Keys(kms="test_encrypted:Kms", kms_config=config)).filters
    with pytest.raises(UsageError, match="the KMS doesn't unwrap a key by the master key footerkey: KeyError"):
        bloomcli.inspect(file(name), keys=Keys(kms=Kms))
    with pytest.raises(UsageError, match="no class of a KMS can be imported as 'nowhere:Kms'"):
        bloomcli.inspect(file(name), keys=Keys(kms="nowhere:Kms"))
    with pytest.raises(CorruptFile, match="the file's key material can't be used"):
        bloomcli.inspect(file(name), keys=Keys(keys={**KEYS[name]["keys"], "footerkey": bytes(16)}))
    if "external" in name:
        shutil.copy(file(name), tmp_path)
        with pytest.raises(BloomError, match="_KEY_MATERIAL_FOR_spark_columns_external"):
            bloomcli.inspect(tmp_path / file(name).name, keys=keys(name))


def test_a_class_of_a_kms_that_cannot_be_imported_is_an_error_for_a_file_that_needs_none() -> None:
    plain = file("pyarrow_uniform_gcm_aad_not_stored_nofilter")
    for name, begin in (
        ("nowhere:Kms", "nowhere import Kms"),
        ("json:Kms", "json import Kms"),
        ("nowhere", "nowhere"),
    ):
        with pytest.raises(UsageError, match=f"can be imported as '{name}'") as caught:
            bloomcli.inspect(plain, keys=Keys(kms=name))
        assert f"`python -c 'from {begin}" in str(caught.value.hint)
    assert run(["inspect", str(plain), "--kms", "nowhere:Kms"]) == 2


def test_key_material_that_was_cut_off_is_an_error_that_says_where_it_is(tmp_path: Path) -> None:
    name = "spark_columns_external"
    path = Path(shutil.copy(file(name), tmp_path))
    material = tmp_path / f"_KEY_MATERIAL_FOR_{path.name}.json"
    material.write_bytes((FILES / material.name).read_bytes()[:-9])
    with pytest.raises(CorruptFile, match="isn't a JSON object") as caught:
        bloomcli.inspect(path, keys=keys(name))
    assert f"from its source again, with {material}" in str(caught.value.hint)


def test_hostile_key_material_is_an_error(tmp_path: Path) -> None:
    name = "spark_columns_external"
    path = Path(shutil.copy(file(name), tmp_path))
    material = json.loads((FILES / f"_KEY_MATERIAL_FOR_{path.name}.json").read_text())
    footer = json.loads(material["footerKey"])
    for change in (
        *(
            {**footer, field: value}
            for field in ("wrappedDEK", "wrappedKEK", "keyEncryptionKeyID", "masterKeyID")
            for value in (None, 7, "%%", "AAAA", "")
        ),
        [],
        7,
    ):
        (tmp_path / f"_KEY_MATERIAL_FOR_{path.name}.json").write_text(json.dumps({"footerKey": json.dumps(change)}))
        with pytest.raises(BloomError):
            bloomcli.inspect(path, keys=keys(name))
    for text in ("", "[" * 100_000, "[]", "7", '{"footerKey": {}}'):
        (tmp_path / f"_KEY_MATERIAL_FOR_{path.name}.json").write_text(text)
        with pytest.raises(BloomError):
            bloomcli.inspect(path, keys=keys(name))


def spellings(key: bytes) -> list[bytes]:
    return [key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key), repr(key).encode()]


def with_keys() -> Iterator[tuple[str, click.Command]]:
    """Yield the commands that take keys, by their names."""
    for name in COMMANDS:
        command = command_of(name)
        parts = command.commands.items() if isinstance(command, click.Group) else [("", command)]
        yield from (
            (f"{name} {part}".strip(), one) for part, one in parts if any("--key" in each.opts for each in one.params)
        )


WITH_KEYS: Final = dict(with_keys())
LINES: Final[dict[str, Sequence[str]]] = {
    "inspect": ("{path}", "{path} --footer", "{path} {file}", "{lake} --all", "{lake} {reports}"),
    "probe": ("{path} -c id 1000007", "{path} -c name --explain name-13", "{lake} -c id --value 1000007"),
    "find": ("{path} 1000007 -c id -o {out}", "{lake} name-13 -c name"),
    "advise": ("{path}", "{path} {file}", "{lake} --policy {out}.toml --overwrite", "{lake} {reports}"),
    "add": ("{path} -c v --readers spark -o {out}", "{copy} -c v,id --replace --readers spark --dry-run"),
    "validate": (
        "{path} --deep",
        "{path} {file}",
        "{lake} --deep --baseline {out}.json --update-baseline",
        "{lake} {reports}",
    ),
    "fold": ("{path} --fpp 0.3 -o {out}", "{copy} --fpp 0.3 --dry-run"),
    "repair": ("{path} --add page-index,statistics -o {out}", "{copy} --dry-run"),
    "remove": ("{path} -o {out}", "{copy} --dry-run"),
    "dump": ("{path} -c id -o {out}",),
    "index build": ("{path} -c id --allow-plaintext-index -o {index} --overwrite",),
    "index update": ("{path} --index {index} --allow-plaintext-index",),
}
"""What each of them is called with; the first with each of its formats."""


def test_every_command_that_takes_keys_is_looked_at() -> None:
    assert WITH_KEYS.keys() == LINES.keys()


def outputs(command: str, folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> dict[str, bytes]:
    """What a command prints and writes, with the right keys, with a wrong one, and with one in none of the forms: by
    the name of a format, of a file, ``default``, ``wrong key`` and ``no form``."""
    name = "java_columns_gcm"
    secrets = KEYS[name]["keys"]
    flags = [f"--key={each}=hex:{key.hex()}" for each, key in secrets.items()]
    (form,) = (p for p in WITH_KEYS[command].params if p.name == "form")
    assert isinstance(form.type, click.Choice)
    lake, copy = folder / "lake", folder / "copy"
    lake.mkdir()
    places = {each: str(folder / each) for each in ("lake", "copy", "index", "out")}
    for target in (lake, copy):
        shutil.copy(file(name), target)
    if command == "index update":
        run([*f"index build {file(name)} -c id --allow-plaintext-index -o {places['index']}".split(), *flags])
    kinds = ("html", "json", "csv", *(("sarif", "junit") if command == "validate" else ()))
    for one in ("file", "reports"):
        places[one] = " ".join(f"--report {kind}={folder}/{one}.{kind}" for kind in kinds)
    more = {"default": flags} | {one: [*flags, "--format", one] for one in form.type.choices}
    wrong = {"wrong key": [*flags[:-1], f"--key=kc2=hex:{bytes(16).hex()}"]}
    wrong["no form"] = [f"--footer-key={secrets['kf'].hex()}"]
    found: dict[str, bytes] = {}
    for number, line in enumerate(LINES[command]):
        words = f"{command} {line}".format(path=file(name), **places).split()
        for kind, given in (more | wrong if number == 0 else {"default": flags}).items():
            (folder / "out").unlink(missing_ok=True)
            code = run([*words, *given])
            assert code == 0 if kind == "default" else code != 70, (words, kind)
            found[kind] = found.get(kind, b"") + b"".join(capfdbinary.readouterr())
    return found | {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


def leaks(found: dict[str, bytes]) -> set[str]:
    """The names of the outputs with a key in any of its forms."""
    forms = [form for key in KEYS["java_columns_gcm"]["keys"].values() for form in spellings(key)]
    return {name for name, data in found.items() if any(form in data for form in forms)}


@pytest.mark.slow
@pytest.mark.parametrize("command", LINES)
def test_no_command_shows_a_key(command: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    found = outputs(command, tmp_path, capfdbinary)
    assert sum(map(len, found.values())) > 200
    assert leaks(found) == set()


_KINDS: Final = ("json", "csv", "sarif", "junit")
KEY_TEXT: Final = KEYS["java_columns_gcm"]["keys"]["kc2"].hex()
PLANTED: Final[dict[str, tuple[str, Callable[..., Any], str, set[str]]]] = {
    "a finding": (
        "bloomcli.formats.parquet.check.page_headers",
        lambda *_: Finding(id="page-header", severity=Severity.NOTE, message=KEY_TEXT),
        "validate",
        {"default", "text", "github", *_KINDS}
        | {f"{one}.{kind}" for one in ("file", "reports") for kind in ("html", *_KINDS)},
    ),
    "an error": (
        "bloomcli.formats.parquet.encryption.WrongModule.__str__",
        lambda _: KEY_TEXT,
        "dump",
        {"wrong key"},
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_key_that_is_shown_is_seen_in_each_output(
    what: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holds `test_no_command_shows_a_key` to its name: commands are made to show a key."""
    target, shows, command, names = PLANTED[what]
    monkeypatch.setattr(target, shows)
    assert leaks(outputs(command, tmp_path, capfdbinary)) == names


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYS)
def test_filters_are_added_to_every_file_proven_used_and_removed(name: str, tmp_path: Path) -> None:
    path, given = Path(shutil.copy(file(name), tmp_path)), keys(name)
    material = FILES / f"_KEY_MATERIAL_FOR_{path.name}.json"
    if material.exists():
        shutil.copy(material, tmp_path)
    bloomcli.add(path, ["*"], in_place=True, replace=True, keys=given, readers=["spark"])
    report = bloomcli.validate(path, deep=True, columns=["*"], keys=given)
    shown = bloomcli.inspect(path, keys=given)
    assert (report.findings, len(shown.filters)) == ((), shown.row_groups * shown.columns)
    if name != OWN_IDS:
        rows = rows_of(name)
        for column in ("id", "name"):
            values = list({row[column] for row in rows} - {None})
            probed = bloomcli.probe(path, values, column=column, keys=given)
            assert all(total.answer is Presence.MAYBE for total in probed.totals)
        assert found(path, given, [row["id"] for row in rows[::7]], "id") == rows[::7]
    bloomcli.remove(path, in_place=True, keys=given)
    assert bloomcli.inspect(path, keys=given).filters == ()
    assert bloomcli.validate(path, deep=True, columns=["*"], keys=given).findings == ()


def test_keys_are_masked_in_texts_and_sealed_in_pickles(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = b"0123456789012345", b"1234567890123450"
    given = Keys(footer_key=secrets[0], keys={"kf": secrets[1]}, aad_prefix=b"tester", kms="json:JSONDecoder")
    assert "keys=Keys(footer_key=..., " in repr(InspectOptions(keys=given))
    assert repr(given) == "Keys(footer_key=..., keys=['kf'], aad_prefix=..., kms=...)"
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(given, protocol)
        assert pickle.loads(data) == given
        for key in secrets:
            assert not [one for one in spellings(key) if one in data]
    monkeypatch.delattr(Keys, "__reduce__")
    data = pickle.dumps(given)
    assert all(any(one in data for one in spellings(key)) for key in secrets), "unsealed ones are seen"


def test_sealed_keys_open_in_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(Keys(footer_key=bytes(16)))
    monkeypatch.setattr("bloomcli.formats.keys._seal", [os.urandom(32)])
    with pytest.raises(UsageError, match="can't be opened in this process"):
        pickle.loads(data)
