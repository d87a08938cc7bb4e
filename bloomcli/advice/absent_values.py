"""Makes absent values: values of a column's domain that the column probably doesn't have.

Numbers, dates and times are drawn between the lowest and the highest bound of the column, on the grid of the sampled
values (whole cents, full seconds). Texts and bytes are sampled values with some characters replaced by those of other
sampled values at the same position, so that most lie between the lowest and the highest bound.
"""

from __future__ import annotations

import math
import random
import string
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from bloomcli.model.file import Column
from bloomcli.values.literals import decode_bound, kind_of

_WIDTHS: Final = {"INT32": 4, "INT64": 8, "INT128": 16}
_FLOATS: Final = {"FLOAT": "<f", "DOUBLE": "<d"}
_TRIES: Final = 8
"""Attempts to make a text that isn't in the sample, before texts of other lengths are tried."""
_PLACES: Final = 256
"""Characters of a text, from its start, that can be replaced."""
_CLASSES: Final = ("0123456789", "abcdef", string.ascii_lowercase, "ABCDEF", string.ascii_uppercase)


def absent_values(
    samples: Sequence[Sequence[bytes]], typed: Column, bounds: tuple[Any, Any] | None, count: int, seed: int
) -> list[list[bytes]]:
    """Make `count` absent values for the sample of each unit.

    Args:
        samples: for each unit, its sampled values as PLAIN bytes.
        typed: the column.
        bounds: the lowest and the highest bound, decoded by `decode_bound`; None without statistics.
        count: the number of values for each unit.
        seed: the same seed results in the same values.
    """
    rng = random.Random(seed)  # noqa: S311  a sample, no secret
    form = _FLOATS.get(typed.physical)
    if form is not None or typed.physical in _WIDTHS or kind_of(typed) == "DECIMAL":
        keys = [key for sample in samples for value in sample if _is_finite(key := decode_bound(value, typed))]
        if not keys:
            return [[] for _ in samples]
        low, high = bounds if bounds is not None and all(map(_is_finite, bounds)) else (min(keys), max(keys))
        draw = (
            _numbers(keys, low, high, typed, rng)
            if form is None
            else lambda: struct.pack(form, low + (high - low) * rng.random())
        )
        return [[draw() for _ in range(count)] for _ in samples]
    if typed.physical == "INT96" or kind_of(typed) in {"INTERVAL", "FLOAT16"}:
        return [[rng.choice(sample) for _ in range(count)] if sample else [] for sample in samples]
    texts = Texts(samples, rng, fixed=typed.physical == "FIXED_LEN_BYTE_ARRAY")
    return [[texts.absent(rng.choice(sample)) for _ in range(count)] if sample else [] for sample in samples]


class Texts:
    """Makes texts, or bytes, that resemble the values of a sample and aren't in it.

    Args:
        samples: sampled values.
        rng: the source of random numbers.
        fixed: all values have the same length.
    """

    def __init__(self, samples: Sequence[Sequence[bytes]], rng: random.Random, *, fixed: bool) -> None:
        self._rng, self._fixed = rng, fixed
        self._sample = {value for sample in samples for value in sample}
        ordered = sorted(self._sample)
        self._low, self._high = (ordered[0], ordered[-1]) if ordered else (b"", b"")
        self._pools = _pools(ordered)
        try:
            self._texts: list[str] | None = [value.decode() for value in ordered]
        except UnicodeDecodeError:
            self._texts = None
        values: Sequence[str | bytes] = ordered if self._texts is None else self._texts
        self._at: list[list[Any]] = []
        """For each position, the characters of all values there, with their repetitions."""
        for value in values:
            self._at += [[] for _ in range(min(len(value), _PLACES) - len(self._at))]
            for place, character in enumerate(value[:_PLACES]):
                self._at[place].append(character)
        self._varies = [len(set(characters)) > 1 for characters in self._at]

    def absent(self, value: bytes, *, longer: bool = False) -> bytes:
        """Make a text that isn't in the sample from a text of the sample; a longer one if `longer` is true."""
        outside = None
        for attempt in range(_TRIES * longer, 2 * _TRIES):
            # the sample may have all texts of this length: then longer ones are tried
            text = self._crossed(value, 0 if self._fixed else max(attempt - _TRIES + 1, 0))
            if text not in self._sample:
                if self._low <= text <= self._high:
                    return text
                outside = outside or text
        return _changed(value, self._pools, self._rng) if outside is None else outside

    def _crossed(self, value: bytes, more: int) -> bytes:
        """Replace about half of the varying characters by those of other values.

        Args:
            value: a value of the sample.
            more: the number of characters that are inserted after varying ones.
        """
        rng = self._rng
        out: list[Any] = list(value) if self._texts is None else list(value.decode())
        places = [place for place in range(min(len(out), _PLACES)) if self._varies[place]]
        for place in rng.sample(places, -(-len(places) // 2)):
            out[place] = rng.choice(self._at[place])
        for place in sorted(rng.choices(places, k=more), reverse=True) if places else ():
            out.insert(place + 1, rng.choice(self._at[place]))
        return bytes(out) if self._texts is None else "".join(out).encode()


def _is_finite(key: Any) -> bool:
    return key is not None and not (isinstance(key, float) and not math.isfinite(key))


def _numbers(keys: Sequence[int], low: int, high: int, typed: Column, rng: random.Random) -> Callable[[], bytes]:
    step = math.gcd(*(key - keys[0] for key in keys)) or 1
    first, last = -((keys[0] - low) // step), (high - keys[0]) // step
    width = _WIDTHS.get(typed.physical, typed.type_length)
    order: Literal["big", "little"] = "big" if typed.physical not in _WIDTHS else "little"

    def draw() -> bytes:
        value = keys[0] + step * rng.randint(first, max(first, last))
        size = width or (value.bit_length() if value >= 0 else (-value - 1).bit_length()) // 8 + 1
        return (value & (1 << 8 * size) - 1).to_bytes(size, order)

    return draw


def _pools(values: Sequence[bytes]) -> dict[int, bytes]:
    """For each byte that occurs, the bytes that can replace it: the smallest class that has all occurring bytes of
    its kind. In binary values, every byte can be replaced by any byte that occurs."""
    alphabet = set(b"".join(values))
    pools: dict[int, bytes] = {}
    for text in _CLASSES:
        members = text.encode()
        wider = string.ascii_lowercase if text == "abcdef" else string.ascii_uppercase if text == "ABCDEF" else text
        if alphabet & set(wider.encode()) <= set(members):
            for byte in alphabet & set(members):
                pools.setdefault(byte, members)
    letters = all(byte in pools or chr(byte) in string.printable for byte in alphabet)
    if not letters:  # binary
        pools = dict.fromkeys(alphabet, bytes(sorted(alphabet)) if len(alphabet) > 1 else bytes(range(256)))
    return pools


def _changed(value: bytes, pools: dict[int, bytes], rng: random.Random) -> bytes:
    """Replace about half of the bytes that have a pool."""
    places = [at for at, byte in enumerate(value) if byte in pools]
    if not places:
        return value + bytes([rng.choice(b"0123456789")]) if value.isascii() else value
    out = bytearray(value)
    for at in rng.sample(places, max(1, -(-len(places) // 2))):
        out[at] = rng.choice(pools[out[at]])
    return bytes(out)
