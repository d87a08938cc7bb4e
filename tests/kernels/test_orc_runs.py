"""The compiled decoder of ORC's runs: the specification's examples, any run in any pieces, invalid bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import orc_hashes, orcruns
from support.examples import examples
from support.reference import packed

from bloomcli import kernels

LEAST, MOST = -(1 << 63), (1 << 63) - 1
PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
PATCHED = [2030, 2000, 2020, 1000000, *range(2040, 2200, 10)]


def decoded(pieces: Sequence[bytes], count: int, *, version: int, signed: bool) -> list[int]:
    """Decode all runs of a stream in pieces; the rest of a piece precedes the next one."""
    out, have, rest = bytearray((count + 511) * 8), 0, b""
    for piece in pieces:
        data = rest + piece
        have, at = kernels.orc_runs(data, 0, version, signed, out, have, count)
        rest = data[at:]
    return list(memoryview(out)[: have * 8].cast("q"))


@pytest.mark.parametrize(
    ("data", "values", "version", "signed"),
    [
        ("61 00 07", [7] * 100, 1, False),
        ("61 ff 64", list(range(100, 0, -1)), 1, False),
        ("fb 02 03 06 07 0b", [2, 3, 6, 7, 11], 1, False),
        ("0a 27 10", [10000] * 5, 2, False),
        ("5e 03 5c a1 ab 1e de ad be ef", [23713, 43806, 57005, 48879], 2, False),
        (
            "8e 13 2b 21 07 d0 1e 00 14 70 28 32 3c 46 50 5a 64 6e 78 82 8c 96 a0 aa b4 be fc e8",
            PATCHED,
            2,
            False,
        ),
        ("c6 09 02 02 22 42 42 46", PRIMES, 2, False),
    ],
)
def test_the_specifications_examples_are_read(data: str, values: list[int], version: int, signed: bool) -> None:
    assert decoded([bytes.fromhex(data)], len(values), version=version, signed=signed) == values


def test_the_encoder_that_the_other_tests_use_writes_the_specifications_examples() -> None:
    assert orcruns.short_repeat(10000, 5, signed=False) == bytes.fromhex("0a2710")
    assert orcruns.direct([23713, 43806, 57005, 48879], signed=False) == bytes.fromhex("5e035ca1ab1edeadbeef")
    assert orcruns.delta(PRIMES, signed=False, width=4) == bytes.fromhex("c609020222424246")
    assert orcruns.run_v1(100, -1, 100, signed=False) == bytes.fromhex("61ff64")
    assert decoded([orcruns.patched(PATCHED, 8)], len(PATCHED), version=2, signed=True) == PATCHED


@st.composite
def runs(draw: st.DrawFn, version: int, *, signed: bool) -> tuple[bytes, list[int]]:
    """A run of any kind, and its values."""
    low, high = (LEAST, MOST) if signed else (0, MOST)
    any_value = st.integers(low, high) | st.integers(0, 300)
    value, step = draw(any_value), draw(st.integers(-128, 127))
    kind = draw(st.integers(0, 1 if version == 1 else 4))
    if kind == 0 and version == 1:
        count = draw(st.integers(3, 130))
        return orcruns.run_v1(value, step, count, signed=signed), stepped(value, step, count)
    if kind == 1 and version == 1:
        values = draw(st.lists(any_value, min_size=1, max_size=128))
        return orcruns.literals_v1(values, signed=signed), values
    if kind == 0:
        count = draw(st.integers(3, 10))
        return orcruns.short_repeat(value, count, signed=signed), [value] * count
    if kind == 1:
        bits = draw(st.sampled_from(orcruns.WIDTHS)) - 1
        span = st.integers(max(low, -(1 << bits) // 2), (1 << bits) // 2 - 1 if signed else min((1 << bits), MOST))
        values = draw(st.lists(span if bits else st.just(0), min_size=1, max_size=512))
        return orcruns.direct(values, signed=signed), values
    if kind == 2:
        step = draw(st.integers(LEAST, MOST))
        count = draw(st.integers(1, 512))
        return orcruns.fixed_delta(value, step, count, signed=signed), stepped(value, step, count)
    if kind == 3:
        steps = draw(st.lists(st.integers(0, 1 << draw(st.integers(0, 50))), min_size=1, max_size=511))
        down = -1 if signed and draw(st.booleans()) else 1
        values = [draw(st.integers(0, 1 << 40))]
        for size in steps:
            values.append(values[-1] + down * size)
        if values[1] == values[0]:
            down = 1  # a first step of nothing counts as one up
            values = sorted(values)
        return orcruns.delta(values, signed=signed), values
    return patched(draw)


def stepped(value: int, step: int, count: int) -> list[int]:
    """Values with a constant step, modulo 2^64."""
    return [orcruns.wrapped(value + i * step) for i in range(count)]


def patched(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    """A run with patches, some far apart."""
    width = draw(st.sampled_from([1, 3, 8, 17, 24, 26, 32]))
    base = draw(st.integers(-(1 << 55) + 1, 1 << 40))
    values = [base + v for v in draw(st.lists(st.integers(0, (1 << width) - 1), min_size=1, max_size=512))]
    for place in draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=14, unique=True)):
        values[place] += draw(st.integers(1, (1 << 20) - 1)) << width
    least = min(values)
    if all((v - least) >> width == 0 for v in values):
        values.append(least + (5 << width))
        values = values[-512:]
    if max(values) - min(values) >> width == 0:
        values = [min(values), min(values) + (1 << width)]
    return orcruns.patched(values, width), values


@settings(max_examples=examples(150), deadline=None)
@given(st.data(), st.sampled_from([1, 2]), st.booleans())
def test_any_runs_in_any_pieces_give_their_values(data: st.DataObject, version: int, signed: bool) -> None:
    several = data.draw(st.lists(runs(version, signed=signed), min_size=1, max_size=4))
    stream = b"".join(part for part, _ in several)
    values = [orcruns.wrapped(v) for _, part in several for v in part]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decoded(pieces, len(values), version=version, signed=signed) == values


@pytest.mark.parametrize("width", orcruns.WIDTHS)
def test_values_of_every_width_are_unpacked_up_to_the_last_byte(width: int) -> None:
    for count in (1, 2, 7, 8, 9, 63, 512):
        rng = random.Random(width * count)
        values = [rng.getrandbits(width) for _ in range(count - 1)] + [(1 << width) - 1]
        data = orcruns.direct(values, signed=False)
        assert [v % (1 << 64) for v in decoded([data], count, version=2, signed=False)] == values
        assert decoded([data[:-1]], count, version=2, signed=False) == [], "a run that is cut off gives nothing yet"


def test_whole_runs_are_decoded_and_no_more_of_them_than_needed() -> None:
    run = orcruns.short_repeat(7, 10, signed=False)
    out = bytearray((12 + 511) * 8)
    assert kernels.orc_runs(run * 5, 0, 2, False, out, 0, 12) == (20, 2 * len(run))
    assert kernels.orc_runs(run * 5, 4, 2, False, out, 12, 12) == (12, 4), "what is there already is enough"


BEHIND = ((3 << 12 | 1000) << 2).to_bytes(2, "big")
"""A patch of 12 bits, three values on."""


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bytes([0xC2, 0, 2, 2]), id="delta of one value with packed steps"),
        pytest.param(bytes([0x8E, 0x13, 0x2B, 0x20]) + bytes(60), id="patched base without patches"),
        pytest.param(bytes([0x80 | 31 << 1, 3, 0x2B, 0x21]) + bytes(60), id="patched base of 64 bits"),
        pytest.param(bytes([0x8E, 0x13, 0x1F, 0x21]) + bytes(60), id="patches of more than 64 bits"),
        pytest.param(bytes([0x8E, 1, 11, 0x21, 0, 5, 6]) + BEHIND, id="a patch behind the last value"),
        pytest.param(b"\xc0\x03" + b"\xff" * 11, id="a number without an end"),
    ],
)
def test_runs_that_cant_be_are_refused(data: bytes) -> None:
    with pytest.raises(kernels.RunError, match="an invalid run of integers"):
        kernels.orc_runs(data, 0, 2, False, bytearray(600 * 8), 0, 1)


@pytest.mark.parametrize("head", [b"\x00\x00", b"\xff"])
def test_a_number_without_an_end_is_refused_in_version_1(head: bytes) -> None:
    with pytest.raises(kernels.RunError, match="an invalid run of integers"):
        kernels.orc_runs(head + b"\xff" * 11, 0, 1, True, bytearray(600 * 8), 0, 1)


@settings(max_examples=examples(400), deadline=None)
@given(st.binary(max_size=200), st.sampled_from([1, 2]), st.booleans(), st.integers(0, 2000))
def test_any_bytes_are_runs_or_refused_and_nothing_is_written_behind_the_room(
    data: bytes, version: int, signed: bool, want: int
) -> None:
    room = (want + 511) * 8
    out = bytearray(room) + b"\xa5" * 64
    try:
        have, at = kernels.orc_runs(data, 0, version, signed, memoryview(out)[:room], 0, want)
    except kernels.RunError:
        pass
    else:
        assert 0 <= at <= len(data)
        assert have <= want + 511
    assert out[room:] == b"\xa5" * 64


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_any_byte_runs_in_any_pieces_give_their_bytes(data: st.DataObject) -> None:
    one = st.tuples(st.integers(0, 255), st.integers(3, 130)).map(
        lambda r: (orcruns.byte_run(*r), bytes([r[0]]) * r[1])
    )
    many = st.binary(min_size=1, max_size=128).map(lambda b: (orcruns.byte_literals(b), b))
    several = data.draw(st.lists(one | many, min_size=1, max_size=6))
    stream, values = (b"".join(parts) for parts in zip(*several, strict=True))
    cut = data.draw(st.integers(0, len(stream)))
    out = bytearray(len(values) + 129)
    have, at = kernels.orc_byte_runs(stream[:cut], 0, out, 0, len(values))
    have, at = kernels.orc_byte_runs(stream, at, out, have, len(values))
    assert (have, at) == (len(values), len(stream))
    assert out[:have] == values


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_integers_fit_their_width_or_not(width: int) -> None:
    top = 1 << (width * 8 - 1)
    for value in (0, -1, top - 1, -top):
        assert kernels.orc_fit(struct.pack("<qq", 0, value), 2, width)
    for value in (top, -top - 1, MOST, LEAST) if width < 8 else ():
        assert not kernels.orc_fit(struct.pack("<qq", 0, value), 2, width)
        assert kernels.orc_fit(struct.pack("<qq", 0, value), 1, width), "the second isn't looked at"


def test_lengths_add_up_and_those_that_cant_be_are_refused() -> None:
    assert kernels.orc_sum(struct.pack("<3q", 5, 0, (1 << 31) - 1), 3) == (1 << 31) + 4
    assert kernels.orc_sum(b"", 0) == 0
    for value in (-1, 1 << 31, LEAST):
        with pytest.raises(kernels.RunError, match="length"):
            kernels.orc_sum(struct.pack("<2q", 5, value), 2)


def test_values_back_to_back_are_hashed_by_their_lengths() -> None:
    values = [b"", b"a", b"seven b", b"eight by", b"nine byte", b"x" * 36, b"y" * 1000, b""]
    lengths = struct.pack(f"<{len(values)}q", *map(len, values))
    for count in range(len(values) + 1):
        out = bytearray(8 * count)
        kernels.orc_hash_lengths(b"".join(values), lengths, count, out)
        assert out == packed([orc_hashes.orc_bytes(v) for v in values[:count]])


def test_bytes_of_every_length_are_hashed_as_the_reference_does() -> None:
    for size in range(80):
        value = random.Random(size).randbytes(size)
        assert kernels.orc_hash_bytes(value) == orc_hashes.orc_bytes(value)
        within = memoryview(b"\xff" * 9 + value + b"\xff" * 9)[9 : 9 + size]
        assert kernels.orc_hash_bytes(within) == orc_hashes.orc_bytes(value)


def test_hashes_are_gathered_from_a_dictionary_and_places_beyond_it_are_refused() -> None:
    table = packed([10, 20, 30])
    out = bytearray(32)
    kernels.orc_gather(table, struct.pack("<4q", 2, 0, 0, 1), 4, out)
    assert out == packed([30, 10, 10, 20])
    for place in (3, -1, MOST):
        with pytest.raises(kernels.RunError, match=r"entry \d+ of a dictionary with 3 entries"):
            kernels.orc_gather(table, struct.pack("<2q", 0, place), 2, out)
    kernels.orc_gather(b"", b"", 0, bytearray())


OUT = 600 * 8


@pytest.mark.parametrize(
    "call",
    [
        lambda o: kernels.orc_runs(b"abc", 4, 2, False, o, 0, 1),
        lambda o: kernels.orc_runs(b"abc", -1, 2, False, o, 0, 1),
        lambda o: kernels.orc_runs(b"abc", 0, 3, False, o, 0, 1),
        lambda o: kernels.orc_runs(b"abc", 0, 2, False, o, -1, 1),
        lambda o: kernels.orc_runs(b"abc", 0, 2, False, o, 0, -1),
        lambda o: kernels.orc_runs(b"abc", 0, 2, False, o, 0, 90),
        lambda o: kernels.orc_runs(b"abc", 0, 2, False, o, 90, 1),
        lambda o: kernels.orc_runs(b"abc", 0, 2, False, o, 0, (1 << 63) - 1),
        lambda _: kernels.orc_runs(b"abc", 0, 2, False, bytearray(), 0, 0),
        lambda o: kernels.orc_byte_runs(b"abc", 4, o, 0, 1),
        lambda o: kernels.orc_byte_runs(b"abc", 0, o, 0, -1),
        lambda o: kernels.orc_byte_runs(b"abc", 0, o, -1, 0),
        lambda o: kernels.orc_byte_runs(b"abc", 0, o, 0, OUT - 128),
        lambda o: kernels.orc_byte_runs(b"abc", 0, o, 0, (1 << 63) - 1),
        lambda _: kernels.orc_fit(bytes(8), 2, 4),
        lambda _: kernels.orc_fit(bytes(8), -1, 4),
        lambda _: kernels.orc_fit(bytes(8), 1, 3),
        lambda _: kernels.orc_sum(bytes(8), 2),
        lambda _: kernels.orc_sum(bytes(8), -1),
        lambda o: kernels.orc_hash_lengths(b"abc", struct.pack("<2q", 1, -1), 2, o),
        lambda o: kernels.orc_hash_lengths(b"abc", struct.pack("<2q", 1, 3), 2, o),
        lambda o: kernels.orc_hash_lengths(b"abc", struct.pack("<2q", 1, MOST), 2, o),
        lambda o: kernels.orc_hash_lengths(b"abc", bytes(8), -1, o),
        lambda o: kernels.orc_hash_lengths(b"abc", bytes(8), 2, o),
        lambda _: kernels.orc_hash_lengths(b"abc", bytes(16), 2, bytearray(8)),
        lambda o: kernels.orc_gather(bytes(8), bytes(8), 2, o),
        lambda o: kernels.orc_gather(bytes(8), bytes(8), -1, o),
        lambda _: kernels.orc_gather(bytes(8), bytes(16), 2, bytearray(8)),
    ],
)
def test_ranges_and_figures_out_of_bounds_are_refused(call: Callable[[bytearray], Any]) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        call(bytearray(OUT))
    assert not isinstance(caught.value, kernels.RunError)
