"""Rewrites position deletes and deletion vectors of replaced data files for the paths of the new files.

Iceberg's position deletes name data files by path, so a commit that only replaces a data file would restore its
deleted rows. `plan_deletes` rewrites the deletes that name a replaced file, for the same commit:

    format version 2    a position delete file for each new data file that has deleted rows. A delete file that also
                        names other data files is replaced by one without the replaced files' rows.
    format version 3    a deletion vector for each new data file that has deleted rows. It includes the position
                        deletes of a table that was version 2 before; version 3 allows no new position delete files.

Equality deletes don't change: they apply by sequence number, which the new data files take over. All rows are read
and written within the driver's JVM, 100,000 rows in a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from bloomcli.concurrency.threads import Threads
from bloomcli.errors import UnsupportedError
from bloomcli.tables.iceberg.java import Java, Methods
from bloomcli.tables.iceberg.statistics import call

_FILES_AT_ONCE: Final = 4
"""Delete files that are read or written at a time."""


class ReplacedFile(NamedTuple):
    """A data file that a commit replaces."""

    file: Any
    """The old file's ``DataFile``."""
    spec: Any
    """Its ``PartitionSpec``."""
    deletes: Sequence[Any]
    """The position delete files, or the deletion vector, that apply to it."""
    path: str
    """The path of the new file."""

    @property
    def old_path(self) -> str:
        """The path of the old file."""
        return str(self.file.location())


class AddedDeletes(NamedTuple):
    """A new delete file or deletion vector."""

    file: Any
    """A ``DeleteFile``."""
    sequence_number: int
    """The data sequence number that it must get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteChanges:
    """Delete files to remove and to add in the commit that replaces their data files.

    If `add` isn't empty, `remove` isn't empty either: Iceberg's ``RewriteFiles`` requires it.
    """

    remove: tuple[Any, ...] = ()
    """``DeleteFile`` objects."""
    add: tuple[AddedDeletes, ...] = ()


def plan_deletes(
    java: Java, table: Any, name: str, snapshot_id: int, replaced: Sequence[ReplacedFile], new_paths: list[str]
) -> DeleteChanges:
    """Rewrite the position deletes and deletion vectors of replaced data files.

    The commit must be validated from the same snapshot (``RewriteFiles.validateFromSnapshot``): it then fails if
    another commit has added deletes for the replaced files, or removed one of the delete files to remove.

    Args:
        java: the Java of the session.
        table: an ``org.apache.iceberg.Table``.
        name: its name in SQL with the catalog.
        snapshot_id: the snapshot in which the delete files apply.
        replaced: the data files of one commit.
        new_paths: the path of each new delete file is appended before the file is written. The caller removes the
            files if this function or the commit fails.

    Raises:
        UnsupportedError: position delete files of a version 3 table name data files that aren't replaced, and no
            other delete file can be removed; or this version of Iceberg isn't supported.
    """
    if not any(data_file.deletes for data_file in replaced):
        return DeleteChanges()
    if java.iceberg("TableUtil").formatVersion(table) >= 3:
        return _VectorPlan(java, table, new_paths).plan(snapshot_id, replaced, name)
    return _PositionDeletePlan(java, table, new_paths).plan(replaced)


class _Positions(NamedTuple):
    """The deleted positions of a replaced data file, merged from all delete files."""

    index: Any
    """A ``PositionDeleteIndex``."""
    sequence_number: int
    """The greatest data sequence number of those delete files. Each applies to the data file, so this one does."""


class _DeletePlan:
    """Reads delete files and makes the paths of new ones, for both format versions."""

    def __init__(self, java: Java, table: Any, new_paths: list[str]) -> None:
        self.java = java
        self.table = table
        self.new_paths = new_paths
        self.methods = Methods(java)
        kinds = ("org.apache.iceberg.io.InputFile", "org.apache.iceberg.DeleteFile")
        handle = self.methods.bound(table.io(), "org.apache.iceberg.io.FileIO", "newInputFile", *kinds)
        self.opened = self.methods.as_interface("java.util.function.Function", handle)

    def read(self, files: Iterable[Any]) -> dict[str, Any]:
        """For each position delete file, the ``CharSequenceMap`` from data files to ``PositionDeleteIndex``."""
        distinct = {file.location(): file for file in files}
        kind = self.methods.class_of("org.apache.iceberg.data.Record")
        schema = self.java.iceberg("io.DeleteSchemaUtil").pathPosSchema()

        def read(file: Any) -> Any:
            source = self.opened.apply(file)
            reader = self.java.iceberg("formats.FormatModelRegistry").readBuilder(file.format(), kind, source)
            rows = reader.project(schema).reuseContainers().build()
            return self.java.iceberg("deletes.Deletes").toPositionIndexes(rows)

        with Threads(_FILES_AT_ONCE, "bloom-iceberg") as threads:
            return dict(zip(distinct, threads.map(read, distinct.values()), strict=True))

    def merged(self, data_file: ReplacedFile, indexes: Mapping[str, Any]) -> _Positions | None:
        """The deleted positions of a data file; None if no position delete file names it."""
        old = data_file.old_path
        naming = [
            (file, index) for file in data_file.deletes if (index := indexes[file.location()].get(old)) is not None
        ]
        if not naming:
            return None
        parts = self.java.list_of(index for _, index in naming)
        whole = self.java.iceberg("deletes.PositionDeleteIndexUtil").merge(parts)
        return _Positions(whole, max(file.dataSequenceNumber() for file, _ in naming))

    def outputs(self, format_name: str) -> Any:
        """An ``OutputFileFactory`` that puts new files where the table's own writers put them."""
        factory = self.java.iceberg("io.OutputFileFactory").builderFor(self.table, 0, 0)
        return factory.format(self._format(format_name)).suffix("deletes").build()

    def announce(self, output: Any) -> Any:
        """Append a new file's path to `new_paths`, and return the file."""
        self.new_paths.append(output.encryptingOutputFile().location())
        return output

    def _format(self, name: str) -> Any:
        return self.java.iceberg("FileFormat").fromString(name)


class _PositionDeletePlan(_DeletePlan):
    """Position delete files, for format version 2."""

    def __init__(self, java: Java, table: Any, new_paths: list[str]) -> None:
        super().__init__(java, table, new_paths)
        properties = table.properties()
        name = properties.get("write.delete.format.default") or properties.get("write.format.default") or "parquet"
        builder = java.iceberg("data.GenericFileWriterFactory$Builder")(table)
        self._writers = builder.deleteFileFormat(self._format(name)).build()
        self._outputs = self.outputs(name)

    def plan(self, replaced: Sequence[ReplacedFile]) -> DeleteChanges:
        """Read the delete files, write new ones, and list both."""
        sources = {file.location(): file for data_file in replaced for file in data_file.deletes}
        indexes = self.read(sources.values())
        with Threads(_FILES_AT_ONCE, "bloom-iceberg") as threads:
            rewritten = threads.map(lambda data_file: self._rewrite(data_file, indexes), replaced)
            add = [new for new in rewritten if new is not None]
        remove = []
        replaced_paths = {data_file.old_path for data_file in replaced}
        for location, file in sources.items():
            names = _texts(self.java, indexes[location].keySet())
            if replaced_paths.isdisjoint(names):
                continue
            remove.append(file)
            if others := sorted(set(names) - replaced_paths):
                spec = self.table.specs().get(file.specId())
                rest = self._write(spec, file.partition(), {name: indexes[location].get(name) for name in others})
                add.append(AddedDeletes(rest, file.dataSequenceNumber()))
        return DeleteChanges(remove=tuple(remove), add=tuple(add))

    def _rewrite(self, data_file: ReplacedFile, indexes: Mapping[str, Any]) -> AddedDeletes | None:
        """Write a data file's deletes for its new path."""
        positions = self.merged(data_file, indexes)
        if positions is None:
            return None
        file = self._write(data_file.spec, data_file.file.partition(), {data_file.path: positions.index})
        builder = self.java.iceberg("FileMetadata").deleteFileBuilder(data_file.spec).copy(file)
        return AddedDeletes(builder.withReferencedDataFile(data_file.path).build(), positions.sequence_number)

    def _write(self, spec: Any, partition: Any, indexes: Mapping[str, Any]) -> Any:
        """Write a position delete file, ordered by data file and position."""
        outputs = self._outputs
        output = outputs.newOutputFile() if spec.isUnpartitioned() else outputs.newOutputFile(spec, partition)
        writer = self._writers.newPositionDeleteWriter(self.announce(output), spec, partition)
        kind = "org.apache.iceberg.deletes.PositionDelete"
        row = self.java.iceberg("deletes.PositionDelete").create()
        fill = self.methods.bound(row, kind, "set", kind, "java.lang.CharSequence", "long")
        write = self.methods.bound(writer, "org.apache.iceberg.deletes.PositionDeleteWriter", "write", "void", kind)
        try:
            for path, index in indexes.items():
                each = self.methods.then(fill.bindTo(path), write)
                index.forEach(self.methods.as_interface("java.util.function.LongConsumer", each))
        finally:
            writer.close()
        return writer.toDeleteFile()


class _VectorPlan(_DeletePlan):
    """Deletion vectors, for format version 3."""

    def plan(self, snapshot_id: int, replaced: Sequence[ReplacedFile], name: str) -> DeleteChanges:
        """Read deletion vectors and older position delete files, write new vectors, and list all."""
        first = {data_file.path: data_file.deletes[0] for data_file in replaced if data_file.deletes}
        vectors = {path: file for path, file in first.items() if file.format().name() == "PUFFIN"}
        others = [data_file for data_file in replaced if data_file.path not in vectors]
        older = {file.location(): file for data_file in others for file in data_file.deletes}
        indexes = self.read(older.values())
        positions = self._load(vectors)
        positions |= {
            data_file.path: merged for data_file in others if (merged := self.merged(data_file, indexes)) is not None
        }
        add = self._write([file for file in replaced if file.path in positions], positions)
        replaced_paths = {data_file.old_path for data_file in replaced}
        unused = self._unused(
            snapshot_id, {name: _texts(self.java, index.keySet()) for name, index in indexes.items()}, replaced_paths
        )
        remove = (*vectors.values(), *(older[location] for location in unused))
        if add and not remove:
            raise UnsupportedError(
                "position delete files of this table name data files that are replaced and others that aren't; in"
                " format version 3 they can't be rewritten",
                path=next(iter(older)),
                hint="this SQL turns them into deletion vectors: "
                + call(name, "rewrite_position_delete_files", "options => map('rewrite-all', 'true')"),
            )
        return DeleteChanges(remove=remove, add=tuple(add))

    def _load(self, vectors: Mapping[str, Any]) -> dict[str, _Positions]:
        """The positions in deletion vectors, by the path of the new data file."""
        loader = self.java.iceberg("data.BaseDeleteLoader")(self.opened)

        def load(vector: Any) -> _Positions:
            singleton = self.java.type("java.util.Collections").singletonList(vector)
            index = loader.loadPositionDeletes(singleton, vector.referencedDataFile())
            return _Positions(index, vector.dataSequenceNumber())

        with Threads(_FILES_AT_ONCE, "bloom-iceberg") as threads:
            return dict(zip(vectors, threads.map(load, vectors.values()), strict=True))

    def _write(self, targets: Sequence[ReplacedFile], positions: Mapping[str, _Positions]) -> list[AddedDeletes]:
        """Write the deletion vectors of new data files into one Puffin file."""
        if not targets:
            return []
        output = self.announce(self.outputs("puffin").newOutputFile())
        nothing = self.java.type("java.util.HashMap")()
        get = self.methods.bound(nothing, "java.util.Map", "get", "java.lang.Object", "java.lang.Object")
        previous = self.methods.as_interface("java.util.function.Function", get)
        writer = self.java.iceberg("deletes.Deletes").writeDVs(output, previous)
        try:
            for target in targets:
                writer.delete(target.path, positions[target.path].index, target.spec, target.file.partition())
        finally:
            writer.close()
        files = writer.result().deleteFiles()
        return [AddedDeletes(file, positions[file.referencedDataFile()].sequence_number) for file in files]

    def _unused(
        self, snapshot_id: int, named: Mapping[str, Sequence[str]], replaced_paths: AbstractSet[str]
    ) -> list[str]:
        """The position delete files that name replaced data files and no other data file of the snapshot."""
        others = {
            location: set(names) - replaced_paths
            for location, names in named.items()
            if not replaced_paths.isdisjoint(names)
        }
        if any(others.values()):
            for manifest in self.table.snapshot(snapshot_id).dataManifests(self.table.io()):
                live = self._live(manifest)
                others = {location: names for location, names in others.items() if live.isdisjoint(names)}
        return list(others)

    def _live(self, manifest: Any) -> set[str]:
        """The paths of the data files that are live in a manifest."""
        paths = self.java.iceberg("ManifestFiles").readPaths(manifest, self.table.io(), self.table.specs())
        try:
            return set(_texts(self.java, paths))
        finally:
            paths.close()


def vector_body(java: Java, table: Any, vector: Any) -> bytes:
    """The bitmap of an encrypted deletion vector, with its magic bytes: Iceberg decrypts it."""
    index = _VectorPlan(java, table, [])._load({"": vector})[""].index
    blob = bytes(java.iceberg("util.ByteBuffers").toByteArray(index.serialize()))
    return blob[4:-4]  # without length and checksum


def _texts(java: Java, iterable: Any) -> list[str]:
    """The texts of an Iterable, with one call for all instead of one for each."""
    joined: str = java.type("java.lang.String").join("\0", iterable)
    return joined.split("\0") if joined else []
