"""Changes to a toy file: the chunks keep their places, filters and footer follow them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bloom_toy import spec
from bloom_toy.file import ToyFile
from bloomcli.errors import CorruptFile, FilterExists, WriteError
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import ChangeResult, Plan, Tick
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.change import FilterChange
from bloomcli.model.file import Column
from bloomcli.storage.base import KeptRange, Pieces, Source

Build = Callable[[], tuple[SplitBlockFilter, FilterChange]]


class Change(Plan):
    """Removes and adds filters, and copies the others."""

    def __init__(self, file: ToyFile, gone: set[spec.Key], new: Mapping[spec.Key, Build], read: int = 0) -> None:
        self.file, self.new = file, new
        self.kept = {key: place for key, place in file.footer.filters.items() if key not in gone}
        self.bytes_to_decode = read
        self.bytes_to_copy = file.footer.body_end + sum(size for _, size in self.kept.values())
        self.new_bytes_bound = 0
        self.removed: tuple[FilterChange, ...] = ()

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The chunks, the filters that stay, the new ones, the footer."""
        footer, places, changes = self.file.footer, dict[spec.Key, tuple[int, int]](), list(self.removed)
        position = footer.body_end
        yield KeptRange(0, position)
        for key, (at, size) in sorted(self.kept.items(), key=lambda item: item[1]):
            yield KeptRange(at, size)
            places[key] = (position, size)
            position += size
        for key, build in self.new.items():
            bits, change = build()
            changes.append(change)
            data = spec.HEADER.pack(bits.nbytes) + bytes(bits.bitset)
            yield data
            places[key] = (position, len(data))
            position += len(data)
            tick(footer.chunks[key[0]][key[1]][1])
        tail = footer.encoded(places)
        yield tail

        def verify(written: Source) -> None:
            if written.size != position + len(tail) or spec.read_footer(written).encoded(places) != tail:
                raise WriteError("the file that was written isn't the one that was planned")

        self._result = ChangeResult(changes=tuple(changes), bytes_decoded=self.bytes_to_decode, verify=verify)


def adding(file: ToyFile, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool) -> Change:
    """Plan filters for columns. Raises FilterExists if a column has one, without `replace` or `missing`."""
    keys = [(group, column.index) for group in range(file.row_group_count) for column in columns]
    there = set(keys) & file.footer.filters.keys()
    if there and not (replace or missing):
        raise FilterExists("there are filters already", path=file.source.path, hint="--replace builds new ones")
    todo = [key for key in keys if replace or key not in there]

    def of(key: spec.Key) -> SizeRule:
        return rule.of(file.columns[key[1]].path)

    def size(key: spec.Key) -> int:
        own = of(key)
        if own.ndv is not None:
            return sizing.bytes_for_ndv(own.ndv, own.fpp)
        return sizing.upper_bound_bytes(file.footer.rows[key[0]], own.fpp)

    def change(key: spec.Key, bits: SplitBlockFilter | None) -> FilterChange:
        return FilterChange(
            row_group=key[0],
            column=file.columns[key[1]].path,
            action="replace" if key in there else "add",
            bitset_bytes=min(size(key), rule.largest_split_block) if bits is None else bits.nbytes,
            values=file.footer.rows[key[0]],
            fpp=None if bits is None else bits.fpp,
            target_fpp=of(key).fpp,
            misses_target=bits is not None and bits.fpp > of(key).fpp,
            source="chunks",
        )

    def build(key: spec.Key) -> tuple[SplitBlockFilter, FilterChange]:
        hashes = file.hashes(key)

        def filled(larger: int | None) -> SplitBlockFilter:
            bits = SplitBlockFilter.empty(larger or size(key))
            bits.insert_hashes(memoryview(hashes).cast("B"), len(hashes))
            return bits

        bits = of(key).build_filter(filled)
        return bits, change(key, bits)

    read = sum(file.footer.chunks[group][column][1] for group, column in todo)
    plan = Change(file, set(todo) & there, {key: lambda key=key: build(key) for key in todo}, read)  # type: ignore[misc]
    plan.planned = tuple(change(key, None) for key in todo)
    plan.new_bytes_bound = _bound(file, plan.planned)
    return plan


def _bound(file: ToyFile, changes: Sequence[FilterChange]) -> int:
    """Bytes of filters that are written, and of a footer that names them: 4 numbers of at most 20 digits each."""
    return sum((c.bitset_bytes or 0) + 100 for c in changes) + len(file.footer.encoded(file.footer.filters))


def removing(file: ToyFile, gone: set[spec.Key]) -> Change:
    """Filters taken out."""
    plan = Change(file, gone, {})
    plan.removed = plan.planned = tuple(
        FilterChange(
            row_group=group,
            column=file.columns[column].path,
            action="remove",
            bitset_bytes=None,
            old_bitset_bytes=file.facts_of((group, column)).bitset_bytes,
        )
        for group, column in sorted(gone)
    )
    plan.new_bytes_bound = _bound(file, ())
    return plan


def folding(file: ToyFile, columns: set[int] | None, rule: SizeRule) -> Change:
    """Filters folded to the smallest size that meets the rule. Raises CorruptFile for one that can't be read."""
    new: dict[spec.Key, Build] = {}
    changes = []
    for key in file.keys(columns):
        bits = file.load(key)
        if isinstance(bits, str):
            raise CorruptFile(bits, path=file.source.path, offset=file.footer.filters[key][0])
        folded = bits.folded_to(rule.fpp, rule.max_bytes, rule.smallest_split_block)
        change = FilterChange(
            row_group=key[0],
            column=file.columns[key[1]].path,
            action="fold" if folded.nbytes < bits.nbytes else "keep",
            bitset_bytes=folded.nbytes,
            old_bitset_bytes=bits.nbytes,
            fpp=folded.fpp,
            target_fpp=rule.fpp,
            misses_target=folded.fpp > rule.fpp,
        )
        changes.append(change)
        if change.action == "fold":
            new[key] = lambda folded=folded, change=change: (folded, change)  # type: ignore[misc]
    plan = Change(file, set(new), new)
    plan.removed = tuple(change for change in changes if change.action == "keep")
    plan.planned = tuple(changes)
    plan.new_bytes_bound = _bound(file, changes)
    return plan
