"""Limits and damage in what `inspect` lists of an ORC file; the golden reports have what it lists of the fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.golden import ORC

import bloomcli
from bloomcli.formats.orc import footer
from bloomcli.formats.orc import limits as orc_limits

JAVA = ORC / "java_types.orc"


def test_footers_of_very_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footer.orc_limits, "DUMP_MAX_PARTS", 50)
    with pytest.raises(bloomcli.BloomError, match="more than 50 parts"):
        bloomcli.inspect(JAVA, footer=True)


def test_lists_of_entries_end_at_their_limit_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_limits, "ENTRIES_LISTED_MAX", 2)
    found = bloomcli.inspect(JAVA, columns=["big"], indexes=True).index
    assert [entry.problem for entry in found] == [None, None, "not listed: entries after the first 2"]


def test_a_damaged_row_index_is_a_row(tmp_path: Path) -> None:
    pages = bloomcli.inspect(JAVA, columns=["big"], pages=True).pages
    stream = next(page for page in pages if page.kind == "ROW_INDEX")
    data = bytearray(JAVA.read_bytes())
    data[stream.offset : stream.offset + 3] = b"\xff" * 3
    (tmp_path / "a.orc").write_bytes(data)
    found = bloomcli.inspect(tmp_path / "a.orc", columns=["big"], indexes=True).index
    assert found[0].problem is not None
    assert all(entry.problem is None and entry.stripe == 1 for entry in found[1:])
