"""Mutates ORC files: fields of messages, and decompressed streams."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from bloomcli.formats.orc import spec
from support.fuzzparquet import INTERESTING_64, flip, mutate_bytes
from support.orcfiles import BLOOM_FILTER, BLOOM_FILTER_UTF8, ROW_INDEX, File

_INDEXES: Final = {ROW_INDEX: "RowIndex", BLOOM_FILTER: "BloomFilterIndex", BLOOM_FILTER_UTF8: "BloomFilterIndex"}


def _fields(message: Any) -> list[tuple[Any, Any]]:
    """(message, field) of everything below a message."""
    found = []
    for field, value in message.ListFields():
        found.append((message, field))
        if field.cpp_type == field.CPPTYPE_MESSAGE:
            for child in value if field.is_repeated else [value]:
                found += _fields(child)
    return found


def _other(random: Random, field: Any, old: Any) -> Any:
    kind = field.cpp_type
    if kind in (field.CPPTYPE_INT32, field.CPPTYPE_INT64, field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
        bits = 32 if kind in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 64
        signed = kind in (field.CPPTYPE_INT32, field.CPPTYPE_INT64)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        near = (old - 1, old + 1, old * 2, old // 2, old ^ 1 << random.randrange(bits), (1 << 64) - 1)
        return min(max(random.choice((*near, *INTERESTING_64, random.randrange(40))), low), high)
    if kind == field.CPPTYPE_ENUM:
        return random.choice(field.enum_type.values).number
    if kind == field.CPPTYPE_BOOL:
        return not old
    if kind == field.CPPTYPE_DOUBLE:
        return random.choice((0.0, -1.0, 1e308, float("nan"), float("inf"), old + 1))
    changed = flip(random, old.encode("utf-8", "replace") if isinstance(old, str) else old)
    return changed.decode("utf-8", "replace") if isinstance(old, str) else changed


def mutate_message(random: Random, message: Any) -> None:
    """Change or remove one field, or its elements, at any depth."""
    found = _fields(message)
    if not found:
        return
    owner, field = random.choice(found)
    value = getattr(owner, field.name)
    if not field.is_repeated:
        if random.randrange(6) == 0:
            owner.ClearField(field.name)
        elif field.cpp_type != field.CPPTYPE_MESSAGE:
            setattr(owner, field.name, _other(random, field, value))
        return
    items = list(value)
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        items = [type(item).FromString(item.SerializePartialToString()) for item in items]
    how, at = random.randrange(5), random.randrange(len(items))
    if how == 0:
        items.pop(at)
    elif how == 1:
        items.insert(at, random.choice(items))
    elif how == 2:
        random.shuffle(items)
    elif field.cpp_type != field.CPPTYPE_MESSAGE:
        items[at] = _other(random, field, items[at])
    else:
        items[at] = random.choice(items)
    owner.ClearField(field.name)
    getattr(owner, field.name).extend(items)


def _packed(random: Random, file: File, data: bytes) -> bytes:
    """Encode a stream in the file's form; sometimes with a wrong chunk header."""
    packed = file.packed(data)
    if file.codec.name != "NONE" and random.randrange(16) == 0:
        return flip(random, packed[:3]) + packed[3:]
    return packed


def mutate(random: Random, data: bytes) -> bytes:
    """Apply one mutation. May raise any error if an earlier one has damaged the metadata."""
    how = random.randrange(12)
    if how == 0:
        return mutate_bytes(random, data)
    file = File.split(data)
    if how < 3 or not file.stripes:
        mutate_message(random, file.footer)
        return file.join(lengths=False)
    if how == 3:
        mutate_message(random, file.postscript)
        return file.join(lengths=False, tail=bool(random.randrange(2)))
    part = random.choice(file.stripes)
    if how == 4:
        mutate_message(random, part.footer)
        if len(part.footer.streams) == len(part.streams) and random.randrange(2):
            return file.join()
        part.rest = b"".join(part.streams) + part.rest
        part.streams = [b""] * len(part.footer.streams)
        return file.join(lengths=False)
    at = random.randrange(len(part.streams))
    kind = part.footer.streams[at].kind
    plain = file.plain(part.streams[at])
    if kind in _INDEXES and random.randrange(4):
        message = spec.message(_INDEXES[kind]).FromString(plain)
        mutate_message(random, message)
        part.streams[at] = _packed(random, file, message.SerializePartialToString())
    else:
        part.streams[at] = _packed(random, file, flip(random, plain))
    return file.join()
