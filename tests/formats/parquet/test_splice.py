"""Splices change nothing but filters: all other bytes stay, and added filters can be removed."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, thrift
from support.footers import claims, places, stripped
from support.tables import write

import bloomcli
from bloomcli.cli import command_of
from bloomcli.errors import UsageError
from bloomcli.formats.parquet import splice
from bloomcli.formats.parquet.footer import COLUMN_INDEX, FILTER, PAGES, Region, read_footer
from bloomcli.formats.parquet.splice import Part
from bloomcli.model.file import ChunkKey
from bloomcli.storage.registry import open_source


def table(rows: int = 300) -> pa.Table:
    """A table of five columns, one of them nested and one BOOLEAN."""
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "name": [f"n{i % 37}" if i % 5 else None for i in range(rows)],
            "tags": [[f"t{i}", None] for i in range(rows)],
            "price": [i / 4 for i in range(rows)],
            "flag": [i % 2 == 0 for i in range(rows)],
        }
    )


ALL = ["id", "name", "tags.*", "price"]


def original(folder: Path, **options: Any) -> Path:
    options.setdefault("rows", 100)
    return write(folder / "in", table(), **options)


LAYOUTS = {
    "plain": {},
    "page_index": {"write_page_index": True},
    "one_group": {"rows": 1000},
    "v2_zstd": {"page_version": 2, "compression": "zstd", "write_page_index": True, "store_schema": False},
}


@pytest.mark.parametrize(
    ("layout", "columns"), [(layout, ALL) for layout in LAYOUTS] + [("page_index", ["id"]), ("plain", ["price"])]
)
def test_add_keeps_the_body_and_all_of_the_footer_but_two_fields(
    tmp_path: Path, layout: str, columns: list[str]
) -> None:
    before = original(tmp_path, **LAYOUTS[layout]).read_bytes()
    bloomcli.add(tmp_path / "in", columns, output=tmp_path / "out")
    after = (tmp_path / "out").read_bytes()
    body, footer = footers.split(before)
    assert after.startswith(body)
    assert stripped(after) == footer
    assert footers.tree(after) != footers.tree(before)
    assert pq.read_table(tmp_path / "out").equals(pq.read_table(tmp_path / "in"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_add_then_remove_gives_the_original_back_bit_for_bit(tmp_path: Path, layout: str) -> None:
    path = original(tmp_path, **LAYOUTS[layout])
    before = path.read_bytes()
    bloomcli.add(path, ALL, output=tmp_path / "out")
    bloomcli.remove(tmp_path / "out", output=tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == before == path.read_bytes()
    assert claims((tmp_path / "out").read_bytes())


@pytest.mark.parametrize(("offset", "length"), [(0, None), (-1, None), (0, 0), (None, 77)])
def test_fields_for_no_filter_are_all_that_does_not_come_back(
    tmp_path: Path, offset: int | None, length: int | None
) -> None:
    """The help of `remove` describes this: `add` replaces an offset without a filter, which can then be removed."""
    before = original(tmp_path).read_bytes()
    with open_source(tmp_path / "in") as source:
        footer = read_footer(source)
    fields = {splice.OFFSET: offset, splice.LENGTH: length}
    edits = [e for p in footer.chunk_keys({0}) for e in splice.set_fields(footer.meta_struct(p), fields)]
    raw = splice.apply_edits(footer.raw, edits)
    (tmp_path / "old").write_bytes(before[: footer.start] + raw + len(raw).to_bytes(4, "little") + b"PAR1")
    bloomcli.add(tmp_path / "old", ["id", "price"], output=tmp_path / "added")
    bloomcli.remove(tmp_path / "added", output=tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == before != (tmp_path / "old").read_bytes()
    help_of_remove = command_of("remove").help or ""
    assert "an offset of 0 or -1, a length alone" in " ".join(help_of_remove.split())


def test_replace_leaves_no_byte_of_the_filters_it_replaces(tmp_path: Path) -> None:
    path = original(tmp_path)
    bloomcli.add(path, ["id", "name"], output=tmp_path / "once", fpp=0.02)
    bloomcli.add(path, ["id", "name"], output=tmp_path / "large", ndv=5000)
    bloomcli.add(tmp_path / "large", ["id", "name"], output=tmp_path / "twice", replace=True, fpp=0.02)
    assert (tmp_path / "twice").read_bytes() == (tmp_path / "once").read_bytes()


@pytest.mark.parametrize("page_index", [False, True], ids=["no_index", "page_index"])
@pytest.mark.parametrize("columns", [["id"], ["name"], ["id", "price"], []], ids=lambda c: " ".join(c) or "all")
@pytest.mark.parametrize("command", ["remove", "fold"])
def test_filters_that_pyarrow_wrote_go_and_the_page_indexes_move_along(
    tmp_path: Path, command: str, columns: list[str], page_index: bool
) -> None:
    blooms = {name: {"ndv": 2000, "fpp": 1e-6} for name in ("id", "name", "price")}
    path = original(tmp_path, write_page_index=page_index, blooms=blooms, compression="zstd")
    assert len(claims(path.read_bytes())) == 9
    report = getattr(bloomcli, command)(path, columns=columns, output=tmp_path / "out")
    after = (tmp_path / "out").read_bytes()
    assert len(claims(after)) == (9 if command == "fold" else 9 - 3 * (len(columns) or 3))
    assert {c.action for c in report.changes} == {command}
    sizes = [sum(length for *_, length in claims(data)) for data in (path.read_bytes(), after)]
    footer_sizes = [len(footers.split(data)[1]) for data in (path.read_bytes(), after)]
    assert sizes[0] > sizes[1]
    assert len(path.read_bytes()) - len(after) == sizes[0] - sizes[1] + footer_sizes[0] - footer_sizes[1]
    assert bloomcli.validate(tmp_path / "out", deep=True).findings == ()
    if page_index:
        assert indexes(after) == indexes(path.read_bytes()) != []
    found = pq.read_table(tmp_path / "out", filters=[("id", ">=", 130), ("price", "<", 60.0)])
    assert found["id"].to_pylist() == list(range(130, 240))
    assert pq.read_table(tmp_path / "out", page_checksum_verification=False).equals(table())


def indexes(data: bytes) -> list[tuple[Any, Any]]:
    """Parse every chunk's column index and offset index at the footer's offsets, and check the pages' locations."""
    metadata = footers.tree(data)
    found = []
    for group, column in places(data):
        chunk = footers.chunk(metadata, group, column)
        assert footers.OFFSET_INDEX_OFFSET in chunk
        parsed = []
        for field in (footers.OFFSET_INDEX_OFFSET, footers.COLUMN_INDEX_OFFSET):
            offset, length = chunk[field][1], chunk[field + 1][1]
            tree, end = thrift.parse(data, offset)
            assert end == offset + length
            parsed.append(tree)
        found.append(tuple(parsed))
    return found


def test_filters_in_front_of_bytes_of_unknown_meaning_are_forgotten_but_nothing_moves(tmp_path: Path) -> None:
    path = original(tmp_path, blooms={"id": {"ndv": 100}})
    data = path.read_bytes()
    offset, length = claims(data)[0][2:]
    body, _ = footers.split(data)
    path.write_bytes(footers.join(body + b"unclaimed", footers.split(data)[1]))
    bloomcli.remove(path, output=tmp_path / "out")
    after = (tmp_path / "out").read_bytes()
    assert after.startswith(body + b"unclaimed")
    assert data[offset : offset + length] in after
    assert not claims(after)


def test_bytes_that_pages_and_a_filter_claim_do_not_move() -> None:
    pages, index = Region(4, 100, PAGES, ChunkKey(0, 0)), Region(120, 130, COLUMN_INDEX, ChunkKey(0, 0))
    for start in (4, 90, 99, 100):
        of_filter = Region(start, 120, FILTER, ChunkKey(0, 0))
        assert splice.movable_start([pages, of_filter, index], 130) == (100 if start == 100 else 120)


class Counted(int):
    """A number that counts how often one like it is compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) < int(other)

    def __le__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) <= int(other)

    def __gt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) > int(other)


@pytest.mark.parametrize("kept", [0, 2], ids=["all go", "every second goes"])
def test_work_grows_with_the_filters_not_with_their_square(kept: int) -> None:
    count = 4000
    claims = [Region(Counted(10 * i), Counted(10 * i + 9), FILTER, ChunkKey(0, i)) for i in range(count)]
    gone = {Part(FILTER, region.key) for region in claims if not kept or region.key.column % kept}
    Counted.compared = 0
    cuts, unreclaimed, _ = splice._cuts(claims, gone, 0)
    assert len(list(splice._moves(claims, cuts))) >= count - 2  # all after the first cut
    assert (len(cuts), unreclaimed) == (len(gone), 0)
    assert Counted.compared < 40 * count  # log2(4000) is 12; of all pairs there are 16 million


def test_a_filter_is_cut_out_where_it_can_be_and_shares_no_byte_with_what_stays() -> None:
    for seed in range(300):
        check_cuts(random.Random(seed))


def check_cuts(of: random.Random) -> None:
    kinds = [PAGES, COLUMN_INDEX, FILTER, FILTER]
    starts = [of.randrange(40) for _ in range(of.randrange(1, 9))]
    claims = sorted(
        Region(start, start + of.randrange(9), of.choice(kinds), ChunkKey(0, i)) for i, start in enumerate(starts)
    )
    going = [r for r in claims if r.kind == FILTER and of.random() < 0.6]
    movable = of.randrange(30)
    stay = [r for r in claims if r not in going]
    free = [r for r in going if r.start >= movable and not any(s.start < r.end and r.start < s.end for s in stay)]
    cuts, unreclaimed, unused = splice._cuts(claims, {Part(r.kind, r.key) for r in going}, movable)
    assert {at for a, b in cuts for at in range(a, b)} == {at for r in free for at in range(r.start, r.end)}
    assert unreclaimed == sum(r.end - r.start for r in going if r not in free)
    assert {*unused} == {
        r for r in going if r.start < movable and not any(s.start < r.end for s in stay if s.end > r.start)
    }
    assert all(a[1] < b[0] for a, b in itertools.pairwise(cuts))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["flag"], "column flag is BOOLEAN"),
        (["*", "flag"], "column flag is BOOLEAN"),
        (["fl*"], "none of the selected columns can have a filter"),
    ],
    ids=str,
)
def test_a_boolean_column_is_refused(tmp_path: Path, columns: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bloomcli.add(original(tmp_path), columns, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
