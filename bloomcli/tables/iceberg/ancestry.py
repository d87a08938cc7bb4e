"""Lets a commit take place only on top of snapshots that it was planned for.

Iceberg repeats a commit by itself if another one comes first. Its own checks don't protect data files that keep their
data sequence number: it ignores new equality deletes, and drops those that apply to no file but the new ones. So only
appends may come between the plan and the commit; after any other commit, bloom plans again.
"""

from __future__ import annotations

from typing import Any, Final

from bloomcli.tables.iceberg.java import ICEBERG, Java
from bloomcli.tables.iceberg.methods import GUAVA, Methods

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
    known = java.type("java.util.HashSet")(ids)
    contains = methods.bound(known, "java.util.Set", "contains", "boolean", "java.lang.Object")
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
    return methods.as_interface(f"{ICEBERG}.SnapshotAncestryValidator", methods.with_last(every, 1, allowed))
