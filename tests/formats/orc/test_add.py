"""add on ORC files: the bits are those that the values hash to; sizes, kinds of streams, replacing."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import orcfiles
from support.orcfiles import BLOOM_FILTER, BLOOM_FILTER_UTF8, CASES, File

import bloomcli
from bloomcli import __version__
from bloomcli.errors import FilterExists, UsageError
from bloomcli.formats.orc import footer
from bloomcli.formats.orc.footer import Footer

pytestmark = pytest.mark.slow

IDS = {name: at for at, name in enumerate(CASES, 1)}
ROWS = 70


def expected_size(count: int, fpp: float) -> tuple[int, int]:
    """orc-core's (m, k)."""
    wanted = int(-count * math.log(fpp) / math.log(2) ** 2)
    bits = wanted + 64 - wanted % 64
    return bits, max(1, math.floor(bits / count * math.log(2) + 0.5))


def groups(stripe: int, stride: int) -> Iterator[tuple[int, int, range]]:
    """(stripe, row group, rows) of a file of ROWS rows."""
    for at, start in enumerate(range(0, ROWS, stripe)):
        end = min(start + stripe, ROWS)
        for group, first in enumerate(range(start, end, stride)):
            yield at, group, range(first, min(first + stride, end))


@pytest.mark.parametrize(("stripe", "stride", "fpp"), [(ROWS, 100, 0.05), (32, 10, 0.001), (20, 20, 0.05)])
def test_a_row_groups_filter_holds_what_its_values_hash_to(
    tmp_path: Path, stripe: int, stride: int, fpp: float
) -> None:
    path = orcfiles.write(tmp_path / "f", orcfiles.everything(ROWS), stripe=stripe, stride=stride)
    report = bloomcli.add(path, list(CASES), output=tmp_path / "out", fpp=fpp)
    size = expected_size(stride, fpp)
    seen = 0
    for name, case in CASES.items():
        values = [case.values[i % len(case.values)] for i in range(ROWS)]
        for at, group, rows in groups(stripe, stride):
            dumped = bloomcli.dump(tmp_path / "out", column=name, stripe=at, row_group=group)
            hashed = {case.hash(values[i]) for i in rows if values[i] is not None}
            assert dumped.bitset == orcfiles.bits_of(hashed, *size), (name, at, group)
            assert (dumped.facts.bitset_bytes, dumped.facts.hash_functions) == (size[0] // 8, size[1])
            seen += 1
    assert seen == len(bloomcli.inspect(tmp_path / "out").filters)
    for change in report.changes:
        values = CASES[change.column].array(ROWS).to_pylist()
        start = (change.stripe or 0) * stripe
        assert change.values == sum(v is not None for v in values[start : start + stripe])
        assert (change.action, change.row_group, change.source) == ("add", None, "stripe")
        assert change.filters == sum(at == change.stripe for at, _, _ in groups(stripe, stride))
    assert bloomcli.validate(tmp_path / "out", deep=True, require=list(CASES)).findings == ()


@pytest.mark.parametrize(("kind", "streams"), [(None, 1), ("utf8", 1), ("both", 2)])
def test_old_streams_are_added_where_their_readers_understand_them(
    tmp_path: Path, kind: str | None, streams: int
) -> None:
    path = orcfiles.write(tmp_path / "f", orcfiles.everything(40), stripe=20, stride=9)
    bloomcli.add(path, list(CASES), output=tmp_path / "out", kind=kind)
    file = orcfiles.split(tmp_path / "out")
    without = {"decimal_9_2", "decimal_38_10", "decimal_38_38", "timestamp"}
    for stripe, part in enumerate(file.stripes):
        for name, column in IDS.items():
            kinds = [s.kind for s in part.footer.streams if s.column == column and s.kind >= BLOOM_FILTER]
            assert kinds == ([BLOOM_FILTER_UTF8] if name in without or streams == 1 else [7, 8]), name
            new = file.filters(column, stripe).bloom_filter
            assert all(not item.bitset and item.HasField("utf8bitset") for item in new)
            if len(kinds) == 2:
                old = file.filters(column, stripe, BLOOM_FILTER).bloom_filter
                longs = [struct.unpack(f"<{len(i.utf8bitset) // 8}Q", i.utf8bitset) for i in new]
                assert [tuple(i.bitset) for i in old] == longs
                assert all(not item.HasField("utf8bitset") for item in old)
                assert [i.num_hash_functions for i in old] == [i.num_hash_functions for i in new]
    assert bloomcli.validate(tmp_path / "out", deep=True).findings == ()


def test_old_streams_of_strings_are_not_added_for_writers_whose_readers_would_ignore_them(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "plain", orcfiles.everything(10))
    orcfiles.edited(path, tmp_path / "f", lambda f: setattr(f.postscript, "writer_version", 2))
    bloomcli.add(tmp_path / "f", ["string", "binary", "int64"], output=tmp_path / "out", kind="both")
    found = {(f.column, f.encoding) for f in bloomcli.inspect(tmp_path / "out").filters}
    both = {(c, e) for c in ("binary", "int64") for e in ("BLOOM_FILTER", "BLOOM_FILTER_UTF8")}
    assert found == {("string", "BLOOM_FILTER_UTF8"), *both}


def test_a_kind_that_is_none_is_refused(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "f", {"a": [1]})
    with pytest.raises(UsageError, match="no kind of filter is called 'utf16'"):
        bloomcli.add(path, ["a"], dry_run=True, kind="utf16")


@pytest.mark.parametrize(
    ("fpp", "ndv", "cap"),
    [
        *((0.2, None, None), (0.05, 1, None), (0.01, 50, None), (0.01, 5000, None), (1e-6, 50, 4096)),
        *((0.01, None, 32), (1e-6, None, 100), (0.01, 5000, 100), (0.2, 1, 32)),
    ],
)
def test_a_filter_is_sized_by_the_stride_or_the_given_number_of_values_and_capped(
    tmp_path: Path, fpp: float, ndv: int | None, cap: int | None
) -> None:
    path = orcfiles.write(tmp_path / "f", {"a": range(200)}, stride=100)
    (change,) = bloomcli.add(path, ["a"], output=tmp_path / "out", fpp=fpp, ndv=ndv, max_bytes=cap).changes
    count = min(ndv or 100, 100)
    bits, k = expected_size(count, fpp)
    if cap is not None and bits > cap * 8:
        bits = cap // 8 * 64
        k = max(1, math.floor(bits / count * math.log(2) + 0.5))
    rates = []
    for group in range(2):
        dumped = bloomcli.dump(tmp_path / "out", row_group=group)
        hashed = map(orcfiles.long_hash, range(group * 100, group * 100 + 100))
        assert dumped.bitset == orcfiles.bits_of(hashed, bits, k)
        rates.append((int.from_bytes(dumped.bitset).bit_count() / bits) ** k)
    assert change.bitset_bytes == bits // 8
    assert change.fpp == pytest.approx(max(rates))
    assert (change.target_fpp, change.misses_target) == (fpp, max(rates) > fpp)
    assert bloomcli.validate(tmp_path / "out", deep=True).ok


@pytest.mark.parametrize(("column", "count"), [("a", 100), ("l._elem", 5000)])
def test_more_values_than_rows_are_only_below_lists(tmp_path: Path, column: str, count: int) -> None:
    path = orcfiles.write(tmp_path / "f", {"a": range(200), "l": [[i] * 3 for i in range(200)]}, stride=100)
    (change,) = bloomcli.add(path, [column], output=tmp_path / "out", fpp=0.01, ndv=5000).changes
    assert change.bitset_bytes == expected_size(count, 0.01)[0] // 8


class Walked(tuple[Any, ...]):
    """Counts how often its items are iterated."""

    __slots__ = ()
    walks = 0

    def __iter__(self) -> Iterator[Any]:
        Walked.walks += 1
        return super().__iter__()


def test_no_column_makes_all_types_or_streams_be_gone_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else work grows with the square of the columns, and a table may have thousands."""
    whole, types = Footer._read_stripe_footer, footer.read_types

    def stripe_footer(self: Footer, stripe: footer.Stripe) -> footer.StripeFooter:
        found = whole(self, stripe)
        return replace(found, streams=Walked(found.streams))

    monkeypatch.setattr(Footer, "_read_stripe_footer", stripe_footer)
    monkeypatch.setattr(footer, "read_types", lambda *args: Walked(types(*args)))
    walks = []
    for columns in (6, 24):
        table = {f"c{i}": orcfiles.CASES[("int32", "string", "decimal_9_2")[i % 3]].array(9) for i in range(columns)}
        path = orcfiles.write(tmp_path / "f", table)
        Walked.walks = 0
        bloomcli.add(path, ["*"], output=tmp_path / "out", overwrite=True)
        assert bloomcli.validate(tmp_path / "out", deep=True).filters_checked == columns
        assert bloomcli.add(tmp_path / "out", ["*"], replace=True, in_place=True).changes
        walks.append(Walked.walks)
    assert walks[0] == walks[1] > 0


def test_replace_makes_new_filters_of_both_kinds_and_leaves_other_columns_alone(tmp_path: Path) -> None:
    table = {"a": range(60), "b": [f"text {i}" for i in range(60)]}
    path = orcfiles.write(tmp_path / "plain", table, stripe=20, blooms=[2])
    bloomcli.add(path, ["a"], output=tmp_path / "f", kind="both", fpp=0.2)
    report = bloomcli.add(tmp_path / "f", ["a"], output=tmp_path / "out", replace=True, fpp=0.001)
    assert {c.action for c in report.changes} == {"replace"}
    before, after = orcfiles.split(tmp_path / "f"), orcfiles.split(tmp_path / "out")
    for stripe in range(3):
        kinds = [s[:2] for s in after.streams(stripe) if s[0] >= BLOOM_FILTER]
        assert kinds == [(BLOOM_FILTER_UTF8, 1), (BLOOM_FILTER_UTF8, 2)]
        assert [s for s in after.streams(stripe) if s[1] == 2] == [s for s in before.streams(stripe) if s[1] == 2]
    fresh = tmp_path / "fresh"
    bloomcli.add(path, ["a"], output=fresh, fpp=0.001)
    assert (tmp_path / "out").read_bytes() == fresh.read_bytes()


def bad_cpp(version: str | None) -> Any:
    def edit(file: File) -> None:
        file.footer.ClearField("software_version")
        if version:
            file.footer.software_version = version

    return edit


@pytest.mark.parametrize("version", [None, "1.7.0", "1.6.11-SNAPSHOT"])
def test_a_bad_cpp_writers_file_says_afterwards_who_wrote_its_filters(tmp_path: Path, version: str | None) -> None:
    table = {"a": list(range(60)), "b": list(range(60)), "c": [f"text {i}" for i in range(60)]}
    path = orcfiles.write(tmp_path / "plain", table, stripe=20, blooms=[2, 3])
    orcfiles.edited(path, tmp_path / "f", bad_cpp(version))
    report = bloomcli.add(tmp_path / "f", ["a", "b"], output=tmp_path / "out", replace=True)
    assert [(c.column, c.action) for c in report.changes if c.stripe == 1] == [
        ("c", "remove"),
        ("a", "add"),
        ("b", "replace"),
    ]
    file = orcfiles.split(tmp_path / "out")
    release, dash, rest = (version or "unknown").partition("-")
    assert file.footer.software_version == f"{release} (filters by bloomcli {__version__}){dash}{rest}"
    assert file.footer.writer == 1
    assert bloomcli.validate(tmp_path / "out", deep=True, require=["a", "b"]).findings == ()
    assert {f.column for f in bloomcli.inspect(tmp_path / "out").filters} == {"a", "b"}
    bloomcli.add(tmp_path / "out", ["c"], in_place=True)
    assert orcfiles.split(tmp_path / "out").footer.software_version == file.footer.software_version
    assert orcfiles.read(tmp_path / "out").to_pydict() == table


@pytest.mark.parametrize(
    ("layout", "options"),
    [
        ({"stripe": 20, "stride": 7}, {"kind": "both"}),
        ({"stripe": 20, "stride": 7}, {"max_bytes": 64}),
        ({"compression": "zstd"}, {"ndv": 9000, "fpp": 1e-9}),
    ],
    ids=str,
)
def test_a_dry_run_writes_nothing_and_its_figures_are_upper_bounds(
    tmp_path: Path, layout: dict[str, Any], options: dict[str, Any]
) -> None:
    path = orcfiles.write(tmp_path / "f", orcfiles.everything(90), **layout)
    names = [*CASES, *orcfiles.NESTED]
    dry = bloomcli.add(path, names, dry_run=True, **options)
    assert list(tmp_path.iterdir()) == [path]
    real = bloomcli.add(path, names, output=tmp_path / "out", **options)
    key = [(c.stripe, c.column, c.action, c.filters, c.bitset_bytes) for c in dry.changes]
    assert key == [(c.stripe, c.column, c.action, c.filters, c.bitset_bytes) for c in real.changes]
    assert dry.bytes_after >= real.bytes_after == (tmp_path / "out").stat().st_size
    assert (dry.bytes_decoded, dry.bytes_copied) == (real.bytes_decoded, real.bytes_copied)
    gone = bloomcli.remove(tmp_path / "out", dry_run=True)
    done = bloomcli.remove(tmp_path / "out", in_place=True)
    assert gone.changes == done.changes
    assert gone.bytes_after >= done.bytes_after == (tmp_path / "out").stat().st_size
    assert {(c.action, c.old_bitset_bytes) for c in done.changes} == {("remove", key[0][4])}


def test_the_empty_file_of_the_corpus_and_old_hives_take_filters(corpus: Path, tmp_path: Path) -> None:
    for name in ("TestOrcFile.emptyFile", "orc_split_elim_new", "TestOrcFile.testPredicatePushdown", "decimal"):
        path = corpus / f"{name}.orc"
        kinds = {f.column for f in bloomcli.inspect(path).filters}
        assert not kinds
        schema = [f.name for f in orcfiles.read(path).schema if not pa.types.is_nested(f.type)]
        names = [n for n in schema if not pa.types.is_boolean(orcfiles.read(path).schema.field(n).type)]
        bloomcli.add(path, names, output=tmp_path / name)
        assert list(orcfiles.unfiltered(orcfiles.split(tmp_path / name))) == list(
            orcfiles.unfiltered(orcfiles.split(path))
        )
        assert orcfiles.read(tmp_path / name).equals(orcfiles.read(path))
        assert bloomcli.validate(tmp_path / name, deep=True).findings == ()


def test_filters_of_a_stripe_without_rows_never_remain_next_to_new_ones(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "f", {"a": range(60), "b": ["text"] * 60}, stripe=20, blooms=[1])

    def empty(file: File) -> None:
        file.stripes[1].info.number_of_rows = 0
        file.footer.number_of_rows = 40

    orcfiles.edited(path, path, empty)
    with pytest.raises(FilterExists, match="column a has filters in stripe 0 already"):
        bloomcli.add(path, ["a"], output=tmp_path / "out")
    bloomcli.remove(path, output=tmp_path / "some")
    file = orcfiles.split(path)
    for stripe in (0, 2):
        file.drop(file.place(BLOOM_FILTER_UTF8, 1, stripe), stripe)
    (tmp_path / "some").write_bytes(file.join())
    with pytest.raises(FilterExists, match="column a has filters in stripe 1 already"):
        bloomcli.add(tmp_path / "some", ["a"], output=tmp_path / "out")
    report = bloomcli.add(path, ["a"], output=tmp_path / "out", replace=True)
    assert [(c.action, c.stripe) for c in report.changes] == [("remove", 1), ("replace", 0), ("replace", 2)]
    found = bloomcli.validate(tmp_path / "out", deep=True).findings
    assert {f.id for f in found} == {"statistics-counts"}, "those of the file count the rows of all stripes"
