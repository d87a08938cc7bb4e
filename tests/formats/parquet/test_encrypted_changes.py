"""Changes of encrypted files: what is written, what stays, and what is refused.

`tests/interop/test_encrypted_reads.py` reads the results with other readers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from support.encrypted import MASTERS, LocalKms, OpenKms, WrappingKms, write_encrypted

import bloomcli
from bloomcli.errors import BloomError, CorruptFile, KeyMissing, UnsupportedError, UsageError, WriteError
from bloomcli.formats.keys import Keys
from bloomcli.formats.parquet import splice
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.formats.parquet.repair import Maker
from bloomcli.model.file import FilterFacts, Presence
from bloomcli.storage.local.store import LocalStore
from bloomcli.storage.registry import open_source

ROWS: Final = 120
TABLE: Final = pa.table(
    {
        "id": pa.array([i * 37 % ROWS for i in range(ROWS)], pa.int64()),
        "name": [f"name {i * 31 % ROWS}" for i in range(ROWS)],
        "open": [f"open {i}" for i in range(ROWS)],
    }
)
ALL: Final[Mapping[str, Any]] = {"kms": OpenKms}
COLUMNS: Final[Mapping[str, Any]] = {"column_keys": {"one": ["id"], "two": ["name"]}}
UNIFORM: Final[Mapping[str, Any]] = {"uniform_encryption": True}
SIGNED: Final[Mapping[str, Any]] = {**COLUMNS, "plaintext_footer": True}
KINDS: Final[Mapping[str, Mapping[str, Any]]] = {"uniform": UNIFORM, "columns": COLUMNS, "signed": SIGNED}


@pytest.fixture(params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file without filters."""
    return write_encrypted(tmp_path / "in.parquet", TABLE, **KINDS[request.param])


def opened(path: Path, keys: Mapping[str, Any] = ALL) -> ParquetFile:
    """The file; it is closed, so that only its metadata can be used."""
    with open_source(path) as source:
        return ParquetFile(source, Keys(**keys))


def own_keys(path: Path, *columns: str) -> dict[str, Any]:
    """The footer's key and those of some columns, as direct keys."""
    footer = opened(path).footer
    assert footer.encryption is not None and footer.encryption.footer_cipher is not None
    ciphers = {footer.columns[at].path: cipher.key for (_, at), cipher in footer.encryption.ciphers.items()}
    return {
        "footer_key": footer.encryption.footer_cipher.key,
        "column_keys": {name: ciphers[name] for name in columns},
    }


def problems(path: Path, keys: Mapping[str, Any] = ALL) -> list[str]:
    """The findings of a deep check."""
    return [f"{f.id} {f.column}" for f in bloomcli.validate(path, deep=True, columns=["*"], keys=keys).findings]


def bits_of(path: Path, fact: FilterFacts) -> bytes:
    """The end of a filter, as it is in the file."""
    assert fact.offset is not None and fact.length is not None
    return path.read_bytes()[fact.offset : fact.offset + fact.length][-32:]


def test_each_change_leaves_a_sound_file_whose_pages_are_the_same_bytes(path: Path, tmp_path: Path) -> None:
    pages, plain = path.read_bytes(), opened(path).footer
    add = bloomcli.add(path, ["id", "name"], in_place=True, keys=ALL, readers=["spark"], fpp=0.0001)
    assert path.read_bytes().startswith(pages[: plain.start])
    assert (add.bytes_copied, problems(path)) == (plain.start, [])
    absent, there = (bloomcli.probe(path, [text], column="name", keys=ALL).totals[0] for text in ("nobody", "name 7"))
    assert (absent.presence, there.presence) == (Presence.ABSENT, Presence.MAYBE)
    before = [f.bitset_bytes for f in bloomcli.inspect(path, keys=ALL).filters]
    bloomcli.fold(path, fpp=0.2, in_place=True, keys=ALL)
    assert [f.bitset_bytes for f in bloomcli.inspect(path, keys=ALL).filters] < before
    bloomcli.add(path, ["name"], in_place=True, keys=ALL, readers=["spark"], replace=True)
    assert problems(path) == []
    bloomcli.remove(path, in_place=True, keys=ALL)
    assert path.stat().st_size == len(pages)
    left = opened(path).footer
    assert left.raw[: left.top.end] == plain.raw[: plain.top.end], "the metadata are those from before"
    bloomcli.repair(path, add=["page-index"], in_place=True, keys=ALL)
    assert problems(path) == []
    after = opened(path).footer
    key = next(after.chunk_keys())
    assert len(after.index_extents(key, after.metadata(key))) == 2


def test_no_nonce_is_used_twice(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bloomcli.formats.parquet.encryption import Cipher

    nonces = []
    encrypt = Cipher.encrypt

    def recorded(self: Cipher, *args: Any, **options: Any) -> bytes:
        module = encrypt(self, *args, **options)
        if options.get("nonce") is None:
            nonces.append(module[4:16])
        return module

    monkeypatch.setattr(Cipher, "encrypt", recorded)
    for name in ("a", "b"):
        bloomcli.add(path, ["id"], output=tmp_path / name, keys=ALL, readers=["spark"])
    assert len(set(nonces)) == len(nonces) >= 2 * (3 * 2 + 1)


@pytest.mark.parametrize("kind", ["columns", "signed"])
def test_the_columns_whose_keys_are_given_are_changed_and_the_others_stay(kind: str, tmp_path: Path) -> None:
    path = write_encrypted(tmp_path / "in.parquet", TABLE, **KINDS[kind])
    bloomcli.add(path, ["name"], in_place=True, keys=ALL, readers=["spark"])
    keys, out = own_keys(path, "id"), tmp_path / "out.parquet"
    with pytest.raises(KeyMissing, match="column name is encrypted in row group 0, and its key isn't given") as no:
        bloomcli.add(path, ["id", "name"], output=out, keys=keys, replace=True)
    assert "--column-key name=env:NAME" in (no.value.hint or "")
    bloomcli.add(path, ["id", "open"], output=out, keys=keys)
    assert problems(out) == []
    assert {f.column for f in bloomcli.inspect(out, keys=ALL).filters} == {"id", "name", "open"}
    stored, before = (opened(each).footer.encryption for each in (out, path))
    assert stored is not None and before is not None
    column = {c.path: c.index for c in opened(path).columns}["name"]
    for row_group in (0, 1):
        assert (row_group, column) in stored.ciphers
    if kind == "signed":  # of an encrypted footer's, nothing says that `name` has a filter
        with pytest.raises(KeyMissing, match="column name is encrypted in row group 0, and its key isn't given"):
            bloomcli.remove(out, in_place=True, keys=keys)
    bloomcli.remove(out, columns=["id", "open"], in_place=True, keys=keys)
    assert {f.column for f in bloomcli.inspect(out, keys=ALL).filters} == {"name"}
    assert problems(out) == []


@pytest.mark.parametrize("kind", ["columns", "signed"])
def test_filters_whose_key_is_not_given_do_not_move(kind: str, tmp_path: Path) -> None:
    """The filters of `name` lie between those of `id`; their locations are encrypted."""
    path = write_encrypted(tmp_path / "in.parquet", TABLE, **KINDS[kind])
    bloomcli.add(path, ["id", "name"], in_place=True, keys=ALL)
    bloomcli.remove(path, columns=["id"], in_place=True, keys=own_keys(path, "id"))
    assert {f.column for f in bloomcli.inspect(path, keys=ALL).filters} == {"name"}
    assert problems(path) == []


def test_a_signed_footer_needs_its_key(tmp_path: Path) -> None:
    path = write_encrypted(tmp_path / "in.parquet", TABLE, **SIGNED)
    keys = own_keys(path, "id")
    changes: list[Callable[..., Any]] = [
        partial(bloomcli.add, path, ["open"], in_place=True),
        partial(bloomcli.remove, path, in_place=True),
        partial(bloomcli.repair, path, add=["page-index"], in_place=True),
    ]
    for change, given in itertools.product(changes, ({}, {"column_keys": keys["column_keys"]})):
        with pytest.raises(UnsupportedError, match="the footer is signed, and its key isn't given") as refused:
            change(keys=given)
        assert "--footer-key env:NAME" in (refused.value.hint or "")
    before = path.read_bytes()
    with pytest.raises(CorruptFile, match="signature"):
        bloomcli.add(path, ["open"], in_place=True, keys=keys | {"footer_key": bytes(16)})
    assert path.read_bytes() == before


def test_duckdb_gets_no_filters_that_it_cannot_read(tmp_path: Path) -> None:
    path = write_encrypted(tmp_path / "in.parquet", TABLE, **UNIFORM)
    with pytest.raises(
        UsageError, match=r"DuckDB can't read such a column with a filter.*\[reader-encrypted\]"
    ) as no:
        bloomcli.add(path, ["id"], in_place=True, keys=ALL)
    assert "--readers spark,trino" in (no.value.hint or "")
    bloomcli.add(path, ["id"], in_place=True, keys=ALL, readers=["spark"])
    found = bloomcli.validate(path, readers=["duckdb"], keys=ALL).findings
    assert [(f.id, f.severity, f.column) for f in found] == [("reader-encrypted", "error", "id")]
    assert bloomcli.validate(path, readers=["spark", "polars"], keys=ALL).findings == ()
    other = write_encrypted(tmp_path / "other.parquet", TABLE, **COLUMNS)
    bloomcli.add(other, ["id", "name"], in_place=True, keys=ALL)  # DuckDB doesn't read these columns anyway
    assert bloomcli.validate(other, readers=["duckdb"], keys=ALL).findings == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_in_plain_text_is_an_error_and_replaced_by_modules(tmp_path: Path, kind: str) -> None:
    """As arrow-rs writes it. The bits that can't be cut out are overwritten."""
    path = write_encrypted(tmp_path / "in.parquet", TABLE, **KINDS[kind])
    with pytest.MonkeyPatch.context() as patch:
        reopened = splice.reopened
        patch.setattr(splice, "sealed", lambda *args: args[2])
        patch.setattr(splice, "reopened", lambda written, old: (reopened(written, old)[0], written))
        bloomcli.add(path, ["name"], in_place=True, keys=ALL, readers=["spark"])
    bits = [bits_of(path, fact) for fact in bloomcli.inspect(path, keys=ALL).filters]
    found = bloomcli.validate(path, keys=ALL).findings
    assert {(f.id, f.severity, f.column) for f in found} == {("filter-plaintext", "error", "name")}
    assert len(found) == len(bits) == 3
    with pytest.raises(BloomError, match="anybody can look guesses up"):
        bloomcli.dump(path, column="name", keys=ALL)
    out, gone = tmp_path / "out.parquet", tmp_path / "gone.parquet"
    bloomcli.add(path, ["name"], output=out, keys=ALL, readers=["spark"], replace=True)
    assert problems(out) == []
    assert not any(each in out.read_bytes() for each in bits)
    bloomcli.remove(path, output=gone, keys=ALL)
    assert not any(each in gone.read_bytes() for each in bits)
    assert bloomcli.inspect(gone, keys=ALL).filters == ()


@pytest.mark.parametrize("kms", [WrappingKms, LocalKms])
@pytest.mark.parametrize("double", [True, False], ids=["double", "single"])
@pytest.mark.parametrize("internal", [True, False], ids=["internal", "external"])
def test_keys_that_are_wrapped_once_or_twice_here_or_there_open_the_file(
    kms: type[WrappingKms], double: bool, internal: bool, tmp_path: Path
) -> None:
    path = write_encrypted(
        tmp_path / "in.parquet", TABLE, kms=kms, double_wrapping=double, internal_key_material=internal, **COLUMNS
    )
    given = {"keys": MASTERS}
    bloomcli.add(path, ["id", "name"], in_place=True, keys=given)
    for each in (given, {"kms": kms}):
        assert problems(path, each) == []
        assert len(bloomcli.inspect(path, keys=each).filters) == 6
    wrong = {"keys": {**MASTERS, "one": MASTERS["two"]}}
    with pytest.raises(CorruptFile, match="the file's key material can't be used: the key or the AAD"):
        bloomcli.inspect(path, keys=wrong)
    with pytest.raises(UnsupportedError) as missing:
        bloomcli.inspect(path)
    assert "--key footer=env:NAME" in (missing.value.hint or "")
    some = {"keys": {"footer": MASTERS["footer"], "two": MASTERS["two"]}}
    assert dict(bloomcli.inspect(path, keys=some).details)["not readable"] == "id (one): without the key"


@pytest.mark.parametrize("change", [bloomcli.remove, bloomcli.fold])
@pytest.mark.parametrize("columns", [[], ["id"], ["open", "id"]])
def test_filters_of_a_column_whose_key_is_missing_are_not_taken_for_none(
    change: Callable[..., Any], columns: list[str], tmp_path: Path
) -> None:
    path = write_encrypted(tmp_path / "in.parquet", TABLE, kms=WrappingKms, **COLUMNS)
    bloomcli.add(path, ["id", "open"], in_place=True, keys={"keys": MASTERS}, readers=["spark"])
    some = {"keys": {"footer": MASTERS["footer"], "two": MASTERS["two"]}}
    before = path.read_bytes()
    with pytest.raises(KeyMissing, match="column id is encrypted, and its key isn't given") as missing:
        change(path, columns=columns, in_place=True, keys=some)
    assert "--column-key id=env:NAME" in (missing.value.hint or "")
    assert path.read_bytes() == before
    change(path, columns=["open"], in_place=True, keys=some)
    assert {f.column for f in bloomcli.inspect(path, keys={"keys": MASTERS}).filters} >= {"id"}


def test_key_material_in_a_file_of_its_own_goes_along(tmp_path: Path) -> None:
    path = write_encrypted(tmp_path / "in.parquet", TABLE, **COLUMNS, internal_key_material=False)
    out = tmp_path / "new" / "out.parquet"
    out.parent.mkdir()
    bloomcli.add(path, ["id"], output=out, keys=ALL, readers=["spark"])
    names = sorted(each.name for each in out.parent.iterdir())
    assert names == ["_KEY_MATERIAL_FOR_out.parquet.json", "out.parquet"]
    assert problems(out) == []
    bloomcli.remove(out, in_place=True, keys=ALL)
    assert sorted(each.name for each in out.parent.iterdir()) == names


@pytest.mark.parametrize("change", [partial(bloomcli.add, columns=["id"], readers=["spark"]), bloomcli.remove])
def test_a_file_never_stands_without_its_key_material_nor_with_that_of_another(
    change: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = (
        write_encrypted(tmp_path / f"{name}.parquet", TABLE, **COLUMNS, internal_key_material=False)
        for name in ("in", "out")
    )
    material = tmp_path / "_KEY_MATERIAL_FOR_out.parquet.json"
    before = material.read_bytes(), out.read_bytes()
    replace = LocalStore.replace

    def failing(self: LocalStore, broken: str, target: str, pieces: Any, **given: Any) -> int:
        """Replace a file; one whose name has `broken` in it fails at the last moment."""
        verify = given["verify"]

        def then_fail(written: Any) -> None:
            if verify is not None:
                verify(written)
            if broken in target:
                raise WriteError("the disk is full", path=target)

        return replace(self, target, pieces, **given | {"verify": then_fail})

    for broken in ("KEY_MATERIAL", "/out.parquet", "/new.parquet"):
        monkeypatch.setattr(LocalStore, "replace", partialmethod(failing, broken))
        for target in (out, tmp_path / "new.parquet"):
            if broken in {"KEY_MATERIAL", f"/{target.name}"}:
                with pytest.raises(WriteError, match="the disk is full"):
                    change(path, output=target, overwrite=True, keys=ALL)
        assert (material.read_bytes(), out.read_bytes()) == before
        assert not (tmp_path / "new.parquet").exists()
    monkeypatch.undo()
    with pytest.raises(UsageError, match="exists"):
        change(path, output=out, keys=ALL)
    assert (material.read_bytes(), out.read_bytes()) == before
    change(path, output=out, overwrite=True, keys=ALL)
    assert (problems(out), material.read_bytes() == before[0]) == ([], False)


def with_an_empty_page(path: Path) -> Path:
    """A file whose second page has no value, and whose third one has one."""
    lists = pa.array([["a"] * count for count in (1, 2, 2, 1, 2, 2, 1)], pa.list_(pa.string()))
    return write_encrypted(
        path, pa.table({"c": lists}), layout={"data_page_size": 1, "write_batch_size": 10}, **UNIFORM
    )


@pytest.mark.parametrize("exclude", [[], ["c*"]], ids=["by values", "by headers"])
def test_a_new_index_of_encrypted_pages_has_those_without_values_for_readers_that_number_pages_by_it(
    tmp_path: Path, exclude: list[str]
) -> None:
    path = with_an_empty_page(tmp_path / "in.parquet")
    repaired = bloomcli.repair(path, output=tmp_path / "out", add=["page-index"], exclude=exclude, keys=ALL)
    assert {one.pages for one in repaired.structures} == {3}
    assert problems(tmp_path / "out") == []


def test_pages_behind_one_that_an_index_leaves_out_are_decrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_an_empty_page(tmp_path / "in.parquet")
    monkeypatch.setattr(Maker, "_full", lambda maker: [page for page in maker.measured.pages if page.values])
    repaired = bloomcli.repair(path, in_place=True, add=["page-index"], keys=ALL)
    assert {one.pages for one in repaired.structures} == {2}
    assert problems(path) == []
