"""Mutates Mosaic files: numbers of footer and index, and decompressed buckets."""

from __future__ import annotations

from dataclasses import fields, replace
from random import Random
from typing import Any, Final

import pyarrow as pa

from support.fuzzparquet import flip, mutate_bytes
from support.mosaicfiles import Blob, Bucket, Group, Parts

_NUMBERS: Final = (0, 1, 2, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
_ZSTD: Final = 1
_NAMES: Final[dict[type, list[str]]] = {
    Bucket: [f.name for f in fields(Bucket)],
    Blob: [f.name for f in fields(Blob)],
    Group: ["rows", "bucket_count", "blob_count"],
    Parts: ["buckets", "group_count", "schema_at", "index_at", "compression", "version"],
}


def _lied(random: Random, whole: Parts) -> Parts:
    """Change one number of the index or the footer."""
    if not whole.groups:
        return replace(whole, buckets=random.choice(_NUMBERS))
    ordinal = random.randrange(len(whole.groups))
    group = whole.groups[ordinal]
    what: Any = random.choice((group, whole, *group.buckets, *group.blobs))
    name = random.choice(_NAMES[type(what)])
    old = getattr(what, name) or 0
    value = random.choice((max(old - 1, 0), old + 1, old * 2, old // 2, *_NUMBERS, *range(20)))
    value = min(value, 255 if name in {"compression", "version"} else (1 << 32) - 1)
    if isinstance(what, Parts):
        return replace(whole, **{name: value})
    if isinstance(what, Group):
        return whole.with_group(ordinal, **{name: value})
    if isinstance(what, Bucket):
        return whole.with_bucket(ordinal, group.buckets.index(what), **{name: value})
    return whole.with_blob(ordinal, group.blobs.index(what), **{name: value})


def _moved(whole: Parts, at: int, size: int, new: bytes) -> Parts:
    """Replace bytes in the body; later bytes and their offsets move."""
    grown = len(new) - size
    groups = []
    for group in whole.groups:
        buckets = tuple(replace(b, offset=b.offset + grown * (b.offset > at)) for b in group.buckets)
        blobs = tuple(replace(b, offset=b.offset + grown * (b.offset > at)) for b in group.blobs)
        groups.append(replace(group, buckets=buckets, blobs=blobs))
    return replace(whole, body=whole.body[:at] + new + whole.body[at + size :], groups=tuple(groups))


def _bucket(random: Random, whole: Parts) -> Parts:
    """Mutate a bucket's decompressed bytes."""
    places = [(o, p) for o, group in enumerate(whole.groups) for p, b in enumerate(group.buckets) if b.size]
    ordinal, position = random.choice(places)
    bucket = whole.groups[ordinal].buckets[position]
    raw = whole.body[bucket.offset : bucket.offset + bucket.size]
    if whole.compression == _ZSTD and bucket.unpacked:
        codec = pa.Codec("zstd")
        plain = flip(random, codec.decompress(raw, bucket.unpacked, asbytes=True))
        raw, unpacked = codec.compress(plain, asbytes=True), len(plain)
    else:
        raw = flip(random, raw)
        unpacked = len(raw) if bucket.unpacked else 0
    moved = _moved(whole, bucket.offset, bucket.size, raw)
    return moved.with_bucket(ordinal, position, size=len(raw), unpacked=unpacked)


def mutate(random: Random, data: bytes) -> bytes:
    """Apply one mutation. May raise any error if an earlier one has damaged the metadata."""
    how = random.randrange(8)
    if how == 0:
        return mutate_bytes(random, data)
    schema_at, index_at = int.from_bytes(data[-24:-16], "big"), int.from_bytes(data[-32:-24], "big")
    if how == 1 and 0 <= schema_at < index_at < len(data):  # bytes of the schema, of the same size
        schema = bytearray(data[schema_at:index_at])
        schema[random.randrange(len(schema))] = random.randrange(256)
        return data[:schema_at] + schema + data[index_at:]
    try:
        whole = Parts.of(data)
    except AssertionError:  # it has statistics, which `Parts` doesn't support
        at = random.randrange(len(data))
        return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
    if how < 5 and any(b.size for group in whole.groups for b in group.buckets):
        return _bucket(random, whole).data()
    return _lied(random, whole).data()
