"""--exclude, wherever columns are chosen, and globs that leave out what can't have a filter."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import orcfiles
from support.cli import Bloom

import bloomcli
from bloomcli.formats.orc import spec

TABLE = pa.table({"id": range(50), "name": [f"n{i}" for i in range(50)], "secret": [f"s{i}" for i in range(50)]})


@pytest.fixture(params=["parquet", "orc"])
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"f.{request.param}"
    if request.param == "orc":
        return orcfiles.write(path, TABLE)
    pq.write_table(TABLE, path)
    return path


def filtered(path: Path) -> set[str]:
    return {f.column for f in bloomcli.inspect(path).filters}


def test_add_leaves_excluded_columns_out(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    added = bloom("add", plain, "-c", "*", "--exclude", "secret", "--exclude", "x*,i[d]", "-o", out, "-f", "json")
    assert [(c["column"], c["action"]) for c in added.json["changes"]] == [("name", "add")]
    assert filtered(out) == {"name"}
    assert bloomcli.add(plain, "*", exclude="secret", dry_run=True).changes[0].column == "id"


@pytest.mark.parametrize("command", ["add", "remove", "inspect", "validate", "probe"])
def test_a_name_that_is_no_column_is_no_exclusion(bloom: Bloom, plain: Path, command: str) -> None:
    more = {"add": ["-c", "*", "-n"], "remove": ["-n"], "probe": ["3"]}.get(command, [])
    done = bloom(command, plain, *more, "--exclude", "secrte")
    assert done.code == 2
    assert "no column 'secrte' to exclude" in done.err
    assert "did you mean secret?" in done.err


def test_remove_keeps_the_filters_of_excluded_columns(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    bloomcli.add(plain, ["*"], in_place=True)
    assert bloom("remove", plain, "--exclude", "id", "-o", tmp_path / "out").code == 0
    assert filtered(tmp_path / "out") == {"id"}
    assert bloom("remove", plain, "-c", "*e*", "--exclude", "name", "-o", tmp_path / "some").code == 0
    assert filtered(tmp_path / "some") == {"id", "name"}


def test_fold_leaves_the_filters_of_excluded_columns_as_they_are(bloom: Bloom, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(TABLE, path)
    bloomcli.add(path, ["*"], in_place=True, ndv=100_000)
    assert bloom("fold", path, "--exclude", "secret", "-o", tmp_path / "out").code == 0
    sizes = {f.column: f.bitset_bytes for f in bloomcli.inspect(tmp_path / "out").filters}
    assert sizes["secret"] == max(sizes.values()) > 10 * (sizes["id"] or 0)


def test_inspect_shows_no_filters_of_excluded_columns(bloom: Bloom, plain: Path) -> None:
    bloomcli.add(plain, ["*"], in_place=True)
    shown = bloom("inspect", plain, "--exclude", "sec*", "-f", "json").json
    assert {f["column"] for f in shown["filters"]} == {"id", "name"}


def test_validate_says_nothing_of_excluded_columns_and_says_that_it_doesnt(bloom: Bloom, plain: Path) -> None:
    bloomcli.add(plain, ["id", "name"], in_place=True, fpp=0.4)
    asked = ["validate", plain, "--require", "*", "--max-fpp", "0.0001", "--no-policy"]
    assert {f["column"] for f in bloom(*asked, "-f", "json").json["findings"]} == {"id", "name", "secret"}
    some = bloom(*asked, "--exclude", "secret,name", "-f", "json").json
    assert {f["column"] for f in some["findings"]} == {"id"}
    assert some["excluded_columns"] == ["secret", "name"]
    assert some["filters_checked"] == 1
    none = bloom(*asked, "--exclude", "secret,name,id")
    assert none.code == 0
    assert "except of secret, name, id" in none.out


def test_a_baseline_keeps_what_is_known_of_excluded_columns(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    asked = ["validate", plain, "--require", "*", "--no-policy", "--baseline", known]
    assert bloom(*asked, "--update-baseline").code == 0
    assert bloom(*asked, "--exclude", "secret", "--update-baseline").code == 0
    assert {f["column"] for f in bloom(*asked, "-f", "json").json["findings"]} == {"id", "name", "secret"}
    assert bloom(*asked).code == 0, "the entry of the excluded column is still there"


def test_probe_asks_the_one_column_that_isnt_excluded(bloom: Bloom, plain: Path) -> None:
    bloomcli.add(plain, ["id", "name"], in_place=True)
    assert bloom("probe", plain, "3").code == 2
    assert bloom("probe", plain, "3", "--exclude", "n*", "-f", "json").json["column"] == "id"
    assert bloom("probe", plain, "3", "-c", "id", "--exclude", "id").code == 2


def test_of_many_files_the_same_columns_are_excluded(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for name in ("a", "b"):
        (lake / f"{name}{plain.suffix}").write_bytes(plain.read_bytes())
    assert bloom("add", lake, "-c", "*", "--exclude", "secret", "--in-place", "--jobs", 1).code == 0
    assert [filtered(path) for path in sorted(lake.iterdir())] == [{"id", "name"}] * 2
    again = bloom("add", lake, "-c", "*", "--exclude", "secret", "--in-place", "-f", "json").json
    assert {row["status"] for row in again["rows"]} == {"skipped"}
    rows = bloom("inspect", lake, "--exclude", "id", "-f", "json").json["rows"]
    assert [row["filters"] for row in rows] == [1, 1]
    assert (
        bloom("validate", lake, "--exclude", "id", "--deep", "--no-policy", "-f", "json").json["values_checked"]
        == 100
    )
    assert bloom("probe", lake, "-v", "3", "--exclude", "name").code == 0
    assert bloom("remove", lake, "--exclude", "id", "--in-place").code == 0
    assert [filtered(path) for path in sorted(lake.iterdir())] == [{"id"}] * 2


def encrypted(path: Path) -> Path:
    """An ORC file whose column `secret` is encrypted, as its footer says."""

    def edit(file: orcfiles.File) -> None:
        variant = spec.message("EncryptionVariant")(root=3)
        file.footer.encryption = spec.message("Encryption")(variants=[variant]).SerializeToString()

    return orcfiles.edited(orcfiles.write(path, TABLE), path, edit)


def test_globs_leave_encrypted_columns_of_orc_out_and_say_so(bloom: Bloom, tmp_path: Path) -> None:
    path = encrypted(tmp_path / "f.orc")
    done = bloom("add", path, "-c", "*", "-o", tmp_path / "out.orc")
    assert done.code == 0
    assert "left out: secret, encrypted: ORC's filters aren't" in done.out
    assert filtered(tmp_path / "out.orc") == {"id", "name"}
    named = bloom("add", path, "-c", "id,secret", "-o", tmp_path / "no.orc")
    assert named.code == 4
    assert "column secret is encrypted" in named.err
    assert "--exclude secret" in named.err


def test_globs_leave_encrypted_columns_of_parquet_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow and parquet-java sign the footers of such files, which can't be changed at all: no file at hand isn't."""
    from dataclasses import replace

    from bloomcli.formats.parquet.footer import Footer

    whole = Footer.chunk

    def chunk(self: Footer, place: object, *args: object) -> object:
        found = whole(self, place, *args)  # type: ignore[arg-type]
        return replace(found, encrypted=found.column.path == "secret", key_hint="give its key")

    monkeypatch.setattr(Footer, "chunk", chunk)
    pq.write_table(TABLE, tmp_path / "f.parquet", compression="none")
    report = bloomcli.add(tmp_path / "f.parquet", ["*"], output=tmp_path / "out")
    assert {c.column: c.action for c in report.changes} == {"id": "add", "name": "add", "secret": "keep"}
    assert [c.reason for c in report.changes if c.column == "secret"] == ["encrypted: give its key"]


def test_globs_leave_columns_of_an_unknown_codec_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bloomcli.formats.parquet import codecs

    monkeypatch.setattr(codecs, "_CODECS", {k: v for k, v in codecs._CODECS.items() if k != "ZSTD"})
    codec = {"id": "snappy", "name": "zstd", "secret": "snappy"}
    pq.write_table(TABLE, tmp_path / "f.parquet", compression=codec)
    report = bloomcli.add(tmp_path / "f.parquet", ["*"], output=tmp_path / "out")
    reasons = {c.column: c.reason for c in report.changes}
    assert reasons == {"id": None, "secret": None, "name": "compressed by ZSTD, which isn't known here"}


def test_orcs_own_sizes_are_news_only_where_a_rate_was_requested(bloom: Bloom, tmp_path: Path) -> None:
    """orc-core's size for 1 % gives 1.02 % at 10,000 values."""
    path = orcfiles.write(tmp_path / "f.orc", {"id": range(40_000)})
    quiet = bloom("add", path, "-c", "*", "-o", tmp_path / "out.orc")
    assert quiet.code == 0
    assert "too small" not in quiet.out
    assert {c.misses_target for c in bloomcli.add(path, ["id"], output=tmp_path / "api.orc").changes} == {False}
    done = bloom("add", path, "-c", "*", "--fpp", "1%", "-o", tmp_path / "out.orc", "--overwrite")
    assert "1 filter too small for the target false-positive rate: id" in done.out
    capped = bloom("add", path, "-c", "*", "--max-bytes", "4KiB", "-o", tmp_path / "out.orc", "--overwrite")
    assert "too small for the target" in capped.out
