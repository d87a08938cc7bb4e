"""Dictionaries in the answers of `probe`: the values that they exclude, and when they are read and used."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support import mosaicfiles

import bloomcli
from bloomcli import limits
from bloomcli.cli import run
from bloomcli.errors import CorruptFile
from bloomcli.formats.answer import Lookup, UnitFacts, answers
from bloomcli.model.file import Presence
from bloomcli.model.probe import Verdict

WORDS = ["ant", "bee", "cat", "dog"] * 500
NUMBERS = [10, 20, None, 40] * 500


def parquet(path: Path, **options: object) -> Path:
    """Two row groups; every page of each column is dictionary-encoded."""
    table = pa.table({"w": WORDS, "n": pa.array(NUMBERS, pa.int32()), "f": [1.5, -0.0, 2.5, 3.5] * 500})
    pq.write_table(table, path, row_group_size=1000, compression="none", **options)  # type: ignore[arg-type]
    return path


Writer = Callable[[Path], Path]


def verdicts(path: Path, column: str, *values: object) -> tuple[Verdict, ...]:
    """The verdicts of a file."""
    return bloomcli.probe(path, values, column=column).verdicts  # type: ignore[arg-type]


def says(path: Path, column: str, value: object) -> set[bool | None]:
    """The results of all row groups' dictionaries."""
    return {v.dictionary_skip for v in verdicts(path, column, value)}


# --- each format


def orc_file(path: Path) -> Path:
    orc.write_table(pa.table({"w": WORDS}), path, dictionary_key_size_threshold=1.0, stripe_size=64)
    return path


def mosaic(path: Path) -> Path:
    table = pa.table({"w": WORDS, "n": pa.array(NUMBERS, pa.int32()), "f": [1.5, -0.0, 2.5, 3.5] * 500})
    return mosaicfiles.write(path, table, num_buckets=2)


def paged(path: Path) -> Path:
    table = pa.table({"w": WORDS, "n": pa.array(NUMBERS, pa.int32()), "f": [1.5, -0.0, 2.5, 3.5] * 500})
    return mosaicfiles.write(path, table, num_buckets=2, page_size_threshold=1)


@pytest.mark.parametrize("write", [parquet, orc_file, mosaic, paged])
def test_a_value_between_minimum_and_maximum_that_is_no_entry_is_absent(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path / "file")
    assert says(path, "w", "bat") == {True}
    assert says(path, "w", "cat") == {False}
    assert {v.answer for v in verdicts(path, "w", "bat")} == {Presence.ABSENT}
    assert {v.presence for v in verdicts(path, "w", "bat")} == {Presence.NO_FILTER}
    assert run(["probe", str(path), "-c", "w", "bat"]) == 1
    assert run(["probe", str(path), "-c", "w", "bat", "cat"]) == 0
    (totals,) = bloomcli.probe(path, "bat", column="w").totals
    assert totals.dictionary_skipped_row_groups == totals.absent_row_groups == totals.row_groups
    assert (totals.skipped_row_groups, totals.stats_skipped_row_groups) == (0, 0)


@pytest.mark.parametrize("write", [parquet, mosaic, paged])
def test_numbers_are_compared_as_numbers_and_zeros_without_their_signs(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path / "file")
    assert says(path, "n", 30) == {True}
    assert says(path, "n", 20) == {False}
    for zero in ("0.0", "-0.0"):
        assert says(path, "f", zero) == {False}
    assert says(path, "f", 2.0) == {True}


def test_a_false_positive_of_the_filter_is_absent(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"n": [2 * i for i in range(100)] * 20}), tmp_path / "plain")
    bloomcli.add(tmp_path / "plain", ["n"], output=path, max_bytes=32)
    odd = verdicts(path, "n", *range(1, 198, 2))
    lied = [v for v in odd if v.presence is Presence.MAYBE]
    assert lied
    assert {(v.answer, v.dictionary_skip) for v in lied} == {(Presence.ABSENT, True)}
    assert {v.dictionary_skip for v in odd if v.presence is Presence.ABSENT} <= {None}


def test_the_text_has_a_column_and_a_count_of_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = parquet(tmp_path / "f.parquet")
    assert run(["probe", str(path), "-c", "w", "bat"]) == 1
    out = capfd.readouterr().out
    assert "dictionary says" in out
    assert "(filters alone: 0, min/max alone: 0 row groups, dictionaries: 2 more)" in out
    assert run(["probe", str(path), "-c", "w", "zoo"]) == 1
    assert "dictionary says" not in capfd.readouterr().out


# --- when it is read


def test_it_is_read_only_where_filter_and_statistics_leave_the_value(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    bloomcli.add(parquet(tmp_path / "plain"), ["w"], output=path)
    with mock.patch("bloomcli.formats.parquet.dictionary._entries") as entries:
        assert says(path, "w", "zoo") == {None}  # min/max
        assert says(path, "w", "bat") == {None}  # the filter
        assert not entries.called
        entries.return_value = None
        says(path, "w", "cat")
        assert entries.call_count == 2


def test_it_is_read_once_for_all_values(tmp_path: Path) -> None:
    from bloomcli.formats.parquet import dictionary

    path = parquet(tmp_path / "f.parquet")
    with mock.patch.object(dictionary, "_entries", wraps=dictionary._entries) as entries:
        bloomcli.probe(path, ["bat", "cat", "cow"], column="w")
    assert entries.call_count == 2


def test_large_dictionaries_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [(parquet, "p"), (orc_file, "o"), (mosaic, "m"), (paged, "g")]
    for write, name in files:
        write(tmp_path / name)
    monkeypatch.setattr(limits, "PROBED_DICTIONARY_MAX_BYTES", 8)
    assert {*says(tmp_path / "p", "w", "bat"), *says(tmp_path / "o", "w", "bat")} == {None}
    assert says(tmp_path / "m", "w", "bat") == {None}
    monkeypatch.undo()
    monkeypatch.setattr(limits, "PROBED_DICTIONARIES_MAX_BYTES", 60)  # enough for one of two, of 28 + 28 bytes
    assert [v.dictionary_skip for v in verdicts(tmp_path / "p", "w", "bat")] == [True, None]
    monkeypatch.setattr(limits, "PROBED_DICTIONARIES_MAX_BYTES", 1)
    for _, name in files:
        assert says(tmp_path / name, "w", "bat") == {None}


# --- what proves that every value is an entry


def test_a_chunk_that_fell_back_to_plain_pages_is_not_ruled_out(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    words = [f"word {i:05}" for i in range(20_000)]
    pq.write_table(pa.table({"w": words}), path, dictionary_pagesize_limit=1000, data_page_size=1000)
    assert says(path, "w", "word 00003x") == {None}
    assert says(path, "w", "word 19999") == {None}


def test_without_encoding_statistics_the_page_headers_prove_it(tmp_path: Path) -> None:
    from bloomcli.formats.parquet import footer

    path = parquet(tmp_path / "f.parquet", data_page_size=200)
    fell_back = tmp_path / "fell_back.parquet"
    words = [f"word {i:05}" for i in range(20_000)]
    pq.write_table(pa.table({"w": words}), fell_back, dictionary_pagesize_limit=1000, data_page_size=1000)
    original = footer.Footer.chunk

    def without(self: footer.Footer, *args: object) -> object:
        from dataclasses import replace

        chunk = original(self, *args)  # type: ignore[arg-type]
        return replace(chunk, only_dictionary_encoded=False, encodings_known=False)

    with mock.patch.object(footer.Footer, "chunk", without):
        assert says(path, "w", "bat") == {True}
        assert says(fell_back, "w", "word 00003x") == {None}
        with mock.patch("bloomcli.formats.parquet.dictionary._HEADERS_READ", 0):
            assert says(path, "w", "bat") == {None}


def test_orc_stripes_without_a_dictionary_are_not_ruled_out(tmp_path: Path) -> None:
    path = tmp_path / "f.orc"
    orc.write_table(pa.table({"w": WORDS}), path, dictionary_key_size_threshold=0.0)
    assert says(path, "w", "bat") == {None}


# --- when it isn't used


def test_a_dictionary_without_its_own_minimum_is_not_used(tmp_path: Path) -> None:
    path = parquet(tmp_path / "f.parquet", write_page_checksum=False)
    data = path.read_bytes()
    wrong = data.replace(struct.pack("<iii", 10, 20, 40), struct.pack("<iii", 11, 20, 40))
    assert wrong != data
    path.write_bytes(wrong)
    assert says(path, "n", 30) == {None}
    assert {v.answer for v in verdicts(path, "n", 30)} == {Presence.NO_FILTER}


def test_a_mosaic_dictionary_that_the_statistics_contradict_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "f.mosaic"
    table = pa.table({"n": pa.array(NUMBERS, pa.int32())})
    mosaicfiles.write(path, table, num_buckets=1, stats_columns=["n"], compression=0)
    assert says(path, "n", 30) == {True}
    data = path.read_bytes()
    wrong = data.replace(struct.pack(">iii", 10, 20, 40), struct.pack(">iii", 11, 20, 40))
    assert wrong != data
    path.write_bytes(wrong)
    assert says(path, "n", 30) == {None}


def test_a_damaged_dictionary_leaves_the_answer_and_says_why(tmp_path: Path) -> None:
    path = parquet(tmp_path / "f.parquet", write_page_checksum=True)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"\3\0\0\0bee", b"\3\0\0\0bat"))
    found = verdicts(path, "w", "bat", "cow")
    assert {v.answer for v in found} == {Presence.NO_FILTER}
    assert {v.reason for v in found} == {
        "the dictionary can't be read: the page's bytes don't match the checksum in its header:"
        " they changed after they were written"
    }
    assert run(["probe", str(path), "-c", "w", "bat"]) == 0


def test_encrypted_columns_and_values_that_no_filter_can_exclude_are_never_looked_up() -> None:
    def never(lookup: Lookup) -> bool | None:
        raise AssertionError(lookup)

    facts = UnitFacts(
        row_group=0, rows=1, chunk_bytes=1, row_group_bytes=1, dictionary_excludes=never, stats_skip=[None]
    )
    unknowable = Lookup(None, "NaN", (), ())
    known = Lookup(None, None, (b"x",), (1,))
    impossible = Lookup("out of range", None, (b"x",), (1,))
    for changed in (
        facts._replace(lookups=[unknowable]),
        facts._replace(lookups=[impossible]),
        facts._replace(lookups=[known], encrypted=True),
        facts._replace(lookups=[known], type_fault="a fault"),
        facts._replace(lookups=[known], stats_skip=[True]),
    ):
        list(answers([changed], explain=False))
    with pytest.raises(AssertionError):
        list(answers([facts._replace(lookups=[known])], explain=False))


def test_hostile_mosaic_dictionaries_are_faults_and_not_allocations(tmp_path: Path) -> None:
    from bloomcli.formats.mosaic import dictionary
    from bloomcli.formats.registry import open_file
    from bloomcli.storage.registry import open_source

    path = mosaicfiles.write(tmp_path / "f.mosaic", pa.table({"w": WORDS}), num_buckets=1, compression=0)
    data = path.read_bytes()
    at = data.index(b"\x04\x03ant")
    path.write_bytes(data[:at] + b"\x7f" + data[at + 1 :])  # 127 entries
    with open_source(path) as source:
        footer = open_file(source).footer  # type: ignore[attr-defined]
        with pytest.raises(CorruptFile):
            dictionary.entries(footer, footer.row_groups[0], footer.columns[0])


@pytest.mark.parametrize("options", [{}, {"page_size_threshold": 1}])
def test_dry_runs_size_mosaic_filters_by_their_dictionaries_entries(tmp_path: Path, options: dict[str, int]) -> None:
    path = tmp_path / "f.mosaic"
    table = pa.table({"w": WORDS, "c": ["same"] * 2000, "id": range(2000)})
    mosaicfiles.write(path, table, num_buckets=2, **options)
    planned = bloomcli.add(path, ["*"], dry_run=True, mosaic_draft=True)
    done = bloomcli.add(path, ["*"], output=tmp_path / "out.mosaic", mosaic_draft=True)
    sizes = {c.column: c.bitset_bytes for c in done.changes}
    bounds = {c.column: c.bitset_bytes for c in planned.changes}
    assert (bounds["w"], sizes["w"]) == (64, 32)
    assert (bounds["c"], sizes["c"]) == (64, 32)
    assert bounds["id"] >= sizes["id"] > 1000  # type: ignore[operator]
    assert planned.bytes_after >= done.bytes_after
