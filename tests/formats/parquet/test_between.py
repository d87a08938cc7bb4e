"""Filters that another writer put between row groups: bloom reads and removes them, but their bytes stay."""

from __future__ import annotations

from pathlib import Path

from support.footers import (
    SIGNED_BY,
    with_encrypted,
)

import bloomcli

ROOT = Path(__file__).parents[3]


def test_the_bits_that_an_encrypted_column_gave_away_are_overwritten_where_they_have_to_stay(tmp_path: Path) -> None:
    """arrow-rs writes filters of encrypted columns in plain text; those between row groups can't be cut out."""
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    original = (ROOT / "fixtures" / "parquet" / "arrow_rs_between.parquet").read_bytes()
    column = bloomcli.inspect(ROOT / "fixtures" / "parquet" / "arrow_rs_between.parquet").filters[0].column

    path.write_bytes(with_encrypted(original, *((row_group, 0) for row_group in range(4))))
    bits = [(f.offset, f.length or 0) for f in bloomcli.inspect(path, keys=SIGNED_BY).filters if f.column == column]
    leaks = bloomcli.validate(path, columns=[column], keys=SIGNED_BY).findings
    assert {(f.id, f.severity) for f in leaks} == {("filter-plaintext", "error")}
    assert len(leaks) == len(bits) == 4
    assert f"`bloom remove {path} --columns {column} --in-place`" in (leaks[0].hint or "")
    report = bloomcli.remove(path, columns=[column], output=out, keys=SIGNED_BY)
    new, rest = out.read_bytes(), bytearray(original)
    for at, length in bits[:3]:
        assert new[at : at + length] == bytes(length), "overwritten"
        rest[at : at + length] = bytes(length)
    assert new.startswith(bytes(rest[: bits[3][0]])), "nothing else is"
    assert report.bytes_unreclaimed == sum(length for _, length in bits[:3])
    assert column not in {f.column for f in bloomcli.inspect(out, keys=SIGNED_BY).filters}
