"""Replaces data files, and the delete files that name them, by Iceberg's own rewrite.

A new file has the rows of its old file in the same order, whatever deletes apply to it. So a concurrent delete
doesn't invalidate it: positions are read again from the newest snapshot, and the commit is repeated. Only a data file
that another commit has removed is a conflict.

The delete files that apply to a new file must be those of its old file. Iceberg may break that by itself
(`_endangered`), so a commit is planned as Iceberg would read it before it takes place, and once more after it.

Iceberg repeats a commit by itself if another one comes first. Its own checks don't protect data files that keep their
data sequence number: it ignores new equality deletes, and drops those that apply to no file but the new ones. So only
appends may come between the plan and the commit; after any other commit, bloom plans again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from bloomcli.concurrency.signals import deferred
from bloomcli.concurrency.threads import Threads
from bloomcli.errors import BloomError, UnsupportedError, WriteError
from bloomcli.formats.registry import open_file
from bloomcli.storage.registry import open_source
from bloomcli.tables.base import CommitInfo, Conflict, DataFile, Replacement, TableChange, UnknownOutcome, WrongCommit
from bloomcli.tables.iceberg.deletes import AddedDeletes, DeleteChanges, ReplacedFile, plan_deletes
from bloomcli.tables.iceberg.java import (
    GUAVA,
    ICEBERG,
    NO_SUCH_FILE,
    WITH_ROW_IDS,
    Java,
    Methods,
    class_names,
    format_version,
    message,
    raised_in,
    reading,
)
from bloomcli.tables.iceberg.scans import Applied, Tasks, has_deletes, position_deletes, tasks_in
from bloomcli.tables.iceberg.statistics import corrected, leaves_of
from bloomcli.tables.iceberg.table import ReadTable
from bloomcli.tables.java import java_errors
from bloomcli.version import __version__
from bloomcli.words import counted

_SNAPSHOT: Final = f"{ICEBERG}.Snapshot"
_ITERABLE: Final = "java.lang.Iterable"
_PREDICATE: Final = f"{GUAVA}.base.Predicate"
_APPEND: Final = "append"
"""The operation of snapshots that add data files, and neither remove files nor add deletes."""


def unchanged_since(java: Java, table: Any, snapshot_id: int, *, but_appends: bool) -> Any:
    """A ``SnapshotAncestryValidator``: each ancestor of a commit is an ancestor of the snapshot, or an append.

    Args:
        java: the Java of the session.
        table: an ``org.apache.iceberg.Table``.
        snapshot_id: the snapshot that a commit was planned for.
        but_appends: whether appends may come between.
    """
    methods = Methods(java)
    snapshot = methods.bound(table, f"{ICEBERG}.Table", "snapshot", _SNAPSHOT, "long")
    lookup = methods.as_interface("java.util.function.Function", snapshot)
    ids = java.iceberg("util.SnapshotUtil").ancestorIds(table.snapshot(snapshot_id), lookup)
    ancestors = java.type("java.util.HashSet")(ids)
    contains = methods.bound(ancestors, "java.util.Set", "contains", "boolean", "java.lang.Object")
    equals = methods.bound(_APPEND, "java.lang.Object", "equals", "boolean", "java.lang.Object")
    is_known = methods.then(
        methods.unbound(_SNAPSHOT, "snapshotId", "long"), methods.taking(contains, "boolean", "long")
    )
    is_append = methods.then(
        methods.unbound(_SNAPSHOT, "operation", "java.lang.String"),
        methods.taking(equals, "boolean", "java.lang.String"),
    )
    allowed = methods.as_interface(_PREDICATE, methods.either(is_known, is_append) if but_appends else is_known)
    every = methods.static(f"{GUAVA}.collect.Iterables", "all", "boolean", _ITERABLE, _PREDICATE)
    return methods.as_interface(f"{ICEBERG}.SnapshotAncestryValidator", methods.with_arguments(every, 1, allowed))


_TRIES: Final = 5
"""The most attempts if other commits conflict, in addition to Iceberg's own retries."""

_READERS: Final = 8
"""New files that are checked, ORC files that are opened, and delete files that are copied, at a time."""

_CHANGED: Final = {"ValidationException", "CommitFailedException"}
_RUN: Final = "bloom.run-id"
_BATCH: Final = "bloom.batch"


class _Stale(Exception):
    """Another commit came first."""


class IcebergTable(ReadTable):
    """A table of an Iceberg catalog of the session, whose files can be replaced."""

    def commit(self, replacements: Sequence[Replacement], info: CommitInfo) -> int:
        """Replace data files with their deletes in one atomic commit, and return the id of its last snapshot."""
        if not replacements:
            raise ValueError("a commit without replacements")
        self._check_sizes(replacements)
        for _ in range(_TRIES):
            self.refresh()
            self.check_changes(new_row_ids=self.new_row_ids)  # the format version may have changed
            unnumbered = (r.old.record for r in replacements if r.old.lineage is None)  # when they were listed
            if self.keeps_row_ids and any(record.snapshot != self.version for record in unnumbered):
                replacements = self._listed_again(replacements)
            if numbered := [r.old.path for r in replacements if self.lineage_changed(r.old)]:
                raise Conflict("rows have got row ids since their files were copied", path=self.name, paths=numbered)
            try:
                return _Attempt(self, replacements, info).run()
            except _Stale:
                replacements = self._listed_again(replacements)
        raise Conflict(f"other commits came between {_TRIES} times", path=self.name)

    def _check_sizes(self, replacements: Sequence[Replacement]) -> None:
        """Raise WriteError if the table's own file system can't open a new file, or has another size for it."""
        io = self.table.io()

        def check(replacement: Replacement) -> None:
            try:
                size = io.newInputFile(replacement.path).getLength()
            except java_errors() as error:
                raise WriteError(f"the new file can't be opened: {message(error)}", path=replacement.path) from None
            if size != replacement.size:
                raise WriteError(
                    f"the new file has {counted(size, 'byte')}, and {replacement.size} were written",
                    path=replacement.path,
                )

        with Threads(_READERS, "bloom-iceberg") as threads:
            threads.map(check, replacements)

    def _listed_again(self, replacements: Sequence[Replacement]) -> list[Replacement]:
        """The replacements with their data files' records in the newest snapshot. Raises Conflict if one was removed.

        The row lineage stays that of the plan, because the new files were written with it.
        """
        self.refresh()
        by_path = {r.old.path: r for r in replacements}
        updates: dict[str, Replacement] = {}
        for file in self.files():
            if file.path in by_path:
                replacement = by_path[file.path]
                updates[file.path] = replacement._replace(old=replace(file, lineage=replacement.old.lineage))
        removed = by_path.keys() - updates.keys()
        if removed:
            raise Conflict("another commit has removed data files", path=self.name, paths=removed)
        return [updates[r.old.path] for r in replacements]

    def changes(self, after: int | None) -> list[TableChange]:
        """The snapshots of the branch's history, without those that aren't newer than `after`."""
        with reading("the table's snapshots can't be read", self.name):
            changes: list[TableChange] = []
            oldest = None if after is None else self.table.snapshot(after)
            snapshot = None if self.version is None else self.table.snapshot(self.version)
            while snapshot is not None and (oldest is None or _age(snapshot) > _age(oldest)):
                changes.append(TableChange(int(snapshot.snapshotId()), str(snapshot.operation()), _run_of(snapshot)))
                parent = snapshot.parentId()
                snapshot = None if parent is None else self.table.snapshot(parent)
            return changes[::-1]


class _Attempt:
    """One attempt to commit."""

    def __init__(self, table: IcebergTable, replacements: Sequence[Replacement], info: CommitInfo) -> None:
        self.table = table
        self.info = info
        self.by_old = {r.old.path: r for r in replacements}
        self.groups = table.groups([r.old for r in replacements], table.version)
        self.start = self._oldest({r.old.record.snapshot for r in replacements})
        self.sequenced = format_version(table.table) > 1
        self.new_paths: list[str] = []
        self.old = Applied(table.java, (r.old.record.task for r in replacements))
        """The delete files of the old files, in the replacements' order."""
        self.copied: dict[str, str] = {}
        """The locations of copies of equality delete files, by those of the originals."""
        self.own: dict[str, tuple[str, int | None]] = {}
        """The new position deletes of each new file that needs some, by its path."""
        self.removed: set[tuple[str, int | None]] = set()
        self.rewritten: list[Any] = []

    def _oldest(self, snapshots: Iterable[int]) -> int:
        """The snapshot from which Iceberg checks changes for conflicts."""
        candidates = [(self.table.table.snapshot(number), number) for number in snapshots]
        if any(snapshot is None for snapshot, _ in candidates):  # it has expired
            raise _Stale
        return min(candidates, key=lambda pair: _age(pair[0]))[1]

    def run(self) -> int:
        """Commit. Raises _Stale if another commit came first, and removes new delete files then."""
        try:
            with deferred():
                self._commit()
        except (KeyboardInterrupt, SystemExit):
            raise self._unknown_outcome("it was interrupted") from None
        except java_errors() as error:
            raised = class_names(error)
            if raised & _CHANGED:
                self._clean()
                raise _Stale from None
            snapshot_id = self._committed_snapshot()
            if snapshot_id is not None:
                return self._checked(snapshot_id)
            if raised & NO_SUCH_FILE and self.table.table.snapshot(self.start) is None:  # it has expired meanwhile
                self._clean()
                raise _Stale from None
            if _may_still_commit(error, raised):
                raise self._unknown_outcome(message(error)) from None
            self._clean()
            raise WriteError(f"the commit failed: {message(error)}", path=self.table.name) from None
        except BloomError:
            self._clean()
            raise
        snapshot_id = self._committed_snapshot()
        if snapshot_id is None:
            raise self._unknown_outcome("the table's history doesn't show it")
        return self._checked(snapshot_id)

    def _checked(self, snapshot_id: int) -> int:
        """Return the id of the last snapshot of a commit, or take the commit back if it is wrong."""
        try:
            wrong = self._difference(self.table.table, snapshot_id)
        except java_errors() as error:
            self.table.refresh()
            if self.table.table.snapshot(snapshot_id) is None:  # it has expired, and was checked before the commit
                return snapshot_id
            raise WrongCommit(
                f"snapshot {snapshot_id} was committed, and can't be checked: {message(error)}", path=self.table.name
            ) from None
        if wrong is None:
            return snapshot_id
        raise self._taken_back(snapshot_id, wrong)

    def _taken_back(self, snapshot_id: int, wrong: str) -> WrongCommit:
        """Set the branch to the snapshot before a commit, unless others have committed since.

        Iceberg's ``ManageSnapshots`` would repeat a failed commit on top of a newer snapshot, and so undo that.
        """
        table, branch = self.table.table, self.table.branch or "main"
        text = f"in snapshot {snapshot_id}, other deletes apply to {wrong} than before"
        before = table.snapshot(snapshot_id)
        for _ in self.groups:
            before = table.snapshot(before.parentId())
        hint = f"ALTER TABLE {self.table.full_name} REPLACE BRANCH `{branch}` AS OF VERSION {before.snapshotId()}"
        try:
            operations = table.operations()
            base = operations.refresh()
            if base.ref(branch).snapshotId() != snapshot_id:
                text += "; others have committed since, so it wasn't taken back"
                return WrongCommit(text, path=self.table.name, hint=f"this SQL undoes their commits, too: {hint}")
            builder = self.table.java.iceberg("TableMetadata").buildFrom(base)
            operations.commit(base, builder.setBranchSnapshot(before.snapshotId(), branch).build())
        except java_errors() as error:
            text += f"; it couldn't be taken back: {message(error)}"
            return WrongCommit(text, path=self.table.name, hint=f"this SQL takes it back: {hint}")
        text += f"; it was taken back: the table is at snapshot {before.snapshotId()} again"
        return WrongCommit(text, path=self.table.name)

    def _unknown_outcome(self, why: str) -> UnknownOutcome:
        stays = f"; its new delete files stay: {', '.join(self.new_paths)}" if self.new_paths else ""
        return UnknownOutcome(
            f"it isn't known whether the commit has taken place: {why}{stays}",
            path=self.table.name,
            hint=f"look for bloom.run-id {self.info.run} in the summaries of the table's snapshots",
        )

    def _clean(self) -> None:
        """Remove the delete files of a commit that didn't take place."""
        self.table.remove_files(self.new_paths)
        self.new_paths.clear()

    def _commit(self) -> None:
        table = self.table.table
        transaction = table.newTransaction()
        for position, (number, files) in enumerate(self.groups):
            rewrite = self._rewrite(transaction, number, files)
            if position == 0:
                appends = not self._takes_row_ids()
                rewrite.validateWith(unchanged_since(self.table.java, table, self.start, but_appends=appends))
                self._keep_deletes(rewrite, files)
            rewrite.commit()
        staged = self.table.java.iceberg("BaseTable")(transaction.table().operations(), self.table.name)
        if (wrong := self._difference(staged, staged.snapshot(self.table.branch or "main").snapshotId())) is not None:
            raise WriteError(
                f"the commit was refused: other deletes would apply to {wrong} than before", path=self.table.name
            )
        transaction.commitTransaction()

    def _takes_row_ids(self) -> bool:
        """Whether Iceberg gives new files row ids that it would give again if it repeated the transaction.

        Each rewrite keeps the manifests that it has seen (``ManifestFilterManager.filteredManifests``), by path. If
        Iceberg repeats several of them after an append, the later ones list the first one's manifest with the row ids
        of the first try. The append's rows have got these meanwhile.
        """
        unnumbered = any(r.old.lineage is None for r in self.by_old.values())
        return unnumbered and len(self.groups) > 1 and format_version(self.table.table) >= WITH_ROW_IDS

    def _difference(self, table: Any, snapshot_id: int) -> str | None:
        """The first new file that doesn't have the deletes of its old file in a snapshot; None if all have them."""
        if not self.old and not has_deletes(table, snapshot_id):
            return None
        new_files = tasks_in(self.table.java, table, snapshot_id, (r.path for r in self.by_old.values()))
        if missing := [r.path for r in self.by_old.values() if r.path not in new_files]:
            return missing[0]
        applied = Applied(self.table.java, (new_files[r.path] for r in self.by_old.values()))
        for replacement, old, new in zip(self.by_old.values(), self.old, applied, strict=True):
            equal = {self.copied.get(d.location, d.location) for d in old if d.is_equality}
            if equal != {d.location for d in new if d.is_equality}:
                return replacement.path
            own = self.own.get(replacement.path)
            if own is not None and (own[0], "" if own[1] is None else str(own[1])) not in {d[:2] for d in new}:
                return replacement.path
        return None

    def _keep_deletes(self, rewrite: Any, files: Sequence[DataFile]) -> None:
        """Replace the equality delete files that Iceberg would drop in a rewrite by copies of the same number."""
        endangered = self._endangered({file.path for file in files})
        if not endangered:
            return
        with Threads(_READERS, "bloom-iceberg") as threads:
            copies = threads.map(self._copied_delete, endangered)
            for file, copy in zip(endangered, copies, strict=True):
                rewrite.deleteFile(file)
                rewrite.addFile(copy, file.dataSequenceNumber())

    def _endangered(self, paths: Collection[str]) -> list[Any]:
        """The equality delete files that Iceberg would drop in the transaction's first rewrite.

        ``MergingSnapshotProducer.apply`` drops delete files with a smaller data sequence number than all data files
        that stay in the table. It disregards the numbers of the files that it adds
        (https://github.com/apache/iceberg/pull/10962). Later rewrites drop nothing that is needed, because the first
        one's new files have the smallest number, nor does an append that comes first, because its number is greater.
        """
        files = list(self.old.equality_files())
        if not files:
            return []
        scan = self.table.table.newScan().useSnapshot(self.start)
        tasks = Tasks.planned(self.table.java, scan)
        others = (n or 0 for path, n in zip(tasks.paths(), tasks.sequences(), strict=True) if path not in paths)
        smallest = min(others, default=None)
        return [file for delete, file in files if smallest is None or delete.sequence < smallest]

    def _copied_delete(self, file: Any) -> Any:
        """Copy an equality delete file. Its old path would be removed when snapshots that had it expire."""
        java, table = self.table.java, self.table.table
        location, spec = str(file.location()), table.specs().get(file.specId())
        if file.keyMetadata() is not None:
            raise UnsupportedError(
                "the delete file is encrypted: the table's metadata hold a key for it", path=location
            )
        builder = java.iceberg("io.OutputFileFactory").builderFor(table, 0, 0).format(file.format())
        outputs = builder.suffix("deletes").build()
        output = outputs.newOutputFile() if spec.isUnpartitioned() else outputs.newOutputFile(spec, file.partition())
        path = str(output.encryptingOutputFile().location())
        self.new_paths.append(path)
        self.copied[location] = path
        source = table.io().newInputFile(location).newStream()
        try:
            stream = table.io().newOutputFile(path).create()
            try:
                source.transferTo(stream)
            finally:
                stream.close()
        finally:
            source.close()
        ids = java.iceberg("util.ArrayUtil").toIntArray(file.equalityFieldIds())
        copy = java.iceberg("FileMetadata").deleteFileBuilder(spec).copy(file).ofEqualityDeletes(ids)
        return copy.withPath(path).build()

    def _rewrite(self, maker: Any, number: int, files: Sequence[Any]) -> Any:
        """Make the rewrite of data files that share a data sequence number."""
        replacements = [self.by_old[file.path] for file in files]
        changes = self._deletes(replacements)
        rewrite = maker.newRewrite().validateFromSnapshot(self.start)
        if self.table.branch is not None:
            rewrite = rewrite.toBranch(self.table.branch)
        if self.sequenced:
            rewrite = rewrite.dataSequenceNumber(number)
        for replacement, copy in zip(replacements, self._copies(replacements), strict=True):
            rewrite.deleteFile(replacement.old.record.file)
            rewrite.addFile(copy)
        for file in changes.remove:
            rewrite.deleteFile(file)
        for added in changes.add:
            rewrite.addFile(added.file, added.sequence_number)
            if (path := added.file.referencedDataFile()) is not None:
                self.own[str(path)] = _key(added.file)
        for name, value in self._summary().items():
            rewrite.set(name, value)
        return rewrite

    def _summary(self) -> dict[str, str]:
        return {
            _RUN: self.info.run,
            _BATCH: str(self.info.batch),
            "bloom.command": self.info.command,
            "bloom.columns": ",".join(self.info.columns),
            "bloom.version": __version__,
        }

    def _deletes(self, replacements: Sequence[Replacement]) -> DeleteChanges:
        """The delete changes of one rewrite. The deletes of the transaction's earlier rewrites are an input."""
        applied = position_deletes(self.table.java, (r.old.record.task for r in replacements))
        replaced = [self._replaced(r, deletes) for r, deletes in zip(replacements, applied, strict=True)]
        changes = plan_deletes(
            self.table.java, self.table.table, self.table.full_name, self.start, replaced, self.new_paths
        )
        self.removed |= {_key(file) for file in changes.remove}
        if len(self.groups) > 1:
            self.rewritten = [file for file in self.rewritten if _key(file) not in self.removed]
            self.rewritten += [_numbered(added) for added in changes.add if added.file.referencedDataFile() is None]
        return changes

    def _replaced(self, replacement: Replacement, deletes: Sequence[Any]) -> ReplacedFile:
        """A data file with the position deletes that apply to it at this point of the transaction."""
        left = [file for file in deletes if _key(file) not in self.removed]
        if len(left) < len(deletes):
            left += self.rewritten
        return ReplacedFile(
            replacement.old.record.file, replacement.old.record.partition_spec, left, replacement.path
        )

    def _copies(self, replacements: Sequence[Replacement]) -> list[Any]:
        """The new data files: the old files' metadata with another path, size and split offsets, and corrected."""
        moved = [r for r in replacements if r.old.format == "orc" and r.old.record.file.splitOffsets() is not None]
        with Threads(_READERS, "bloom-iceberg") as threads:
            offsets = dict(zip((r.path for r in moved), threads.map(_stripe_offsets, moved), strict=True))
        builders = self.table.java.iceberg("DataFiles")
        leaves = leaves_of(self.table.schema()) if any(r.right is not None for r in replacements) else {}
        copies = []
        for replacement in replacements:
            file = replacement.old.record.file
            if replacement.right is not None:
                file = corrected(
                    self.table.java, leaves, file, replacement.old.record.partition_spec, replacement.right
                )
            builder = builders.builder(replacement.old.record.partition_spec).copy(file)
            builder = builder.withPath(replacement.path).withFileSizeInBytes(replacement.size)
            if replacement.path in offsets:
                builder = builder.withSplitOffsets(self.table.java.longs(offsets[replacement.path]))
            if (metadata := file.keyMetadata()) is not None:  # the copy has the pages, and so their key
                utility = self.table.java.iceberg("encryption.EncryptionUtil")
                builder = builder.withEncryptionKeyMetadata(utility.setFileLength(metadata, replacement.size))
            copies.append(builder.build())
        return copies

    def _committed_snapshot(self) -> int | None:
        """The id of the newest snapshot of this commit in the branch's history; None if the history has none.

        Raises:
            UnknownOutcome: the table's metadata can't be read.
        """
        try:
            self.table.refresh()
            snapshot = self.table.table.snapshot(self.table.version) if self.table.version is not None else None
            while snapshot is not None:
                if _run_of(snapshot) == self.info.run and snapshot.summary().get(_BATCH) == str(self.info.batch):
                    return int(snapshot.snapshotId())
                parent = snapshot.parentId()
                snapshot = None if parent is None else self.table.table.snapshot(parent)
        except BloomError as error:
            raise self._unknown_outcome(error.reason) from None
        except java_errors() as error:
            raise self._unknown_outcome(message(error)) from None
        return None


def _age(snapshot: Any) -> tuple[int, int]:
    """A key that orders an Iceberg Snapshot by age; the numbers of format version 1 are all 0."""
    return int(snapshot.sequenceNumber()), int(snapshot.timestampMillis())


def _run_of(snapshot: Any) -> str | None:
    """The UUID of the run of bloom that made an Iceberg Snapshot; None if another writer made it."""
    run: str | None = (snapshot.summary() or {}).get(_RUN)
    return run


def _may_still_commit(error: Exception, raised: Collection[str]) -> bool:
    """Whether a commit that isn't in the table's history may still take place, because its request was sent."""
    if not raised or "CommitStateUnknownException" in raised:
        return True
    if raised_in(error, "TableMetadataParser", ("write", "overwrite"), unknown=False):
        return False  # the metadata's file is written before the table's pointer to it changes
    return "CleanableFailure" not in raised and raised_in(error, "Operations", ("commit", "doCommit"))


def _key(delete: Any) -> tuple[str, int | None]:
    """The identity of a delete file or a deletion vector."""
    return str(delete.location()), delete.contentOffset()


def _numbered(added: AddedDeletes) -> Any:
    """A new delete file with its data sequence number set, like the delete files of a scan."""
    added.file.setDataSequenceNumber(added.sequence_number)
    return added.file


def _stripe_offsets(replacement: Replacement) -> list[int]:
    """The offsets of the stripes of a new file."""
    with open_source(replacement.path) as source:
        return list(open_file(source).starts)
