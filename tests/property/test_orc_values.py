"""For any values that a real writer encodes: the values read from the streams equal those that pyarrow reads."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import orcfiles
from support.orcvalues import row_groups
from support.reference import packed
from support.tables import leaves

from bloomcli import limits
from bloomcli.formats.orc.file import OrcFile
from bloomcli.storage.registry import open_source

pytestmark = pytest.mark.slow

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
Make = Callable[[random.Random, int], Any]


def growing(rng: random.Random, at: int, step: int) -> int:
    return at * step + rng.randrange(step)


def shaped(bits: int) -> list[Make]:
    """Integers as writers meet them, one for each of their kinds of runs and for each way into it."""
    top = (1 << bits - 1) - 1
    return [
        lambda rng, _: rng.randint(-top - 1, top),
        lambda _, at: at % top,
        lambda rng, at: growing(rng, at, 5) % top,
        lambda rng, at: -growing(rng, at, 3) % -top,
        lambda _, at: at // 7 % 100,
        lambda rng, _: top if rng.random() < 0.02 else rng.randrange(30) - 10,
        lambda rng, _: -top if rng.random() < 0.02 else rng.randrange(100),
        lambda _, __: -42,
    ]


def _text(rng: random.Random, at: int) -> str:
    return rng.choice(["", f"{at}", "é" * rng.randrange(9), "x" * rng.randrange(400)])


def _struct(rng: random.Random, at: int) -> Any:
    return rng.choice([None, {"x": None}, {"x": {"y": None}}, {"x": {"y": at}}])


TEXTS: Final[list[Make]] = [_text, lambda rng, _: f"key {rng.randrange(9)}", lambda _, at: f"{at:036d}"]
KINDS: Final[dict[str, tuple[pa.DataType, list[Make]]]] = {
    **{f"int{b}": (getattr(pa, f"int{b}")(), shaped(b)) for b in (8, 16, 32, 64)},
    "date": (pa.date32(), shaped(20)),
    # of an odd number of microseconds no zeros are cut off in the text
    "moment": (
        pa.timestamp("us"),
        [lambda rng, _: rng.randrange(-1 << 51, 1 << 52) | 1, lambda _, at: at * 7001**2 | 1],
    ),
    "float32": (pa.float32(), [lambda rng, _: rng.choice([0.0, -0.0, 1.5, rng.randrange(99) / 8])]),
    "float64": (pa.float64(), [lambda rng, _: rng.random(), lambda rng, _: rng.choice([float("inf"), 2.0])]),
    "string": (pa.string(), TEXTS),
    "binary": (pa.binary(), [lambda rng, at: _text(rng, at).encode() + b"\xff"]),
    "st": (pa.struct([("x", pa.struct([("y", pa.int64())]))]), [_struct]),
    "li": (pa.list_(pa.int32()), [lambda r, at: [r.choice([None, at]) for _ in range(r.randrange(4))]]),
    "mp": (
        pa.map_(pa.string(), pa.list_(pa.float64())),
        [lambda r, at: [(f"{at}{i}", r.choice([None, [], [0.5, None]])) for i in range(r.randrange(3))]],
    ),
}  # fmt: skip
HASHES: Final[dict[str, Callable[[Any], int]]] = {
    **dict.fromkeys(("BYTE", "SHORT", "INT", "LONG", "LIST", "MAP"), orcfiles.long_hash),
    **dict.fromkeys(("FLOAT", "DOUBLE"), orcfiles.double_hash),
    **dict.fromkeys(("STRING", "BINARY"), orcfiles.text_hash),
    "DATE": orcfiles.CASES["date"].hash,
    "TIMESTAMP": orcfiles.CASES["timestamp"].hash,
}


def expected(rows: list[Any], path: str, kind: str) -> list[Any]:
    """The values of a column in rows of its top-level one, nulls left out."""
    if path == "mp._key":
        return [key for row in rows if row is not None for key, _ in row]
    if path.startswith("mp._value"):
        lists = [value for row in rows if row is not None for _, value in row]
        return [len(v) for v in lists if v is not None] if kind == "LIST" else list(leaves(lists))
    if kind in {"LIST", "MAP"}:
        return [len(row) for row in rows if row is not None]
    return list(leaves(rows))


def shown(value: Any) -> str:
    """As reports have it, and `bloom probe` takes it: of a long text the beginning, and how long it is."""
    if not isinstance(value, str | bytes):
        return str(value).replace(" ", "T")  # of a date and a time
    size = len(value.encode() if isinstance(value, str) else value)
    text = value[:1024] if isinstance(value, str) else as_text(value[:1024])
    return f"{text}... ({size} bytes)" if size > 1024 else text


def as_text(value: bytes) -> str:
    """Bytes as text if they are some, else in hexadecimal digits."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    return text if text.isprintable() else f"0x{value.hex()}"


def compared(path: Path, columns: dict[str, list[Any]]) -> int:
    """Compare every column of a file with its values; returns their number."""
    seen = 0
    with open_source(path) as source:
        file = OrcFile(source)
        footer = file.footer
        for orc in footer.types:
            if orc.kind == "STRUCT":
                continue
            row = 0
            for stripe in footer.stripes:
                groups = zip(footer.units(stripe), row_groups(footer, stripe, orc), strict=True)
                for group, (rows, hashed) in enumerate(groups):
                    values = expected(columns[orc.steps[0]][row : row + rows], orc.path, orc.kind)
                    row += rows
                    assert hashed.hashes == packed(map(HASHES[orc.kind], values)), (orc.path, stripe.ordinal, group)
                    assert hashed.count == len(values)
                    assert hashed.has_zero == (orc.kind in {"FLOAT", "DOUBLE"} and 0 in values)
                    for at in {0, len(values) // 2, len(values) - 1} if values else ():
                        assert hashed.value(at) == shown(values[at])
                    seen += len(values)
            assert row == file.rows
    return seen


@QUICK
@given(
    st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True),
    st.sampled_from([1, 30, 700, 3000]),
    st.sampled_from([0, 0.1, 0.9, 1]),
    st.sampled_from([13, 100, 1111, 10_000]),
    st.sampled_from([1, 1 << 26]),
    st.sampled_from(orcfiles.COMPRESSIONS),
    st.sampled_from(["0.11", "0.12"]),
    st.sampled_from([0.0, 1.0]),
    st.integers(0, 1 << 30),
)
def test_every_row_groups_hashes_are_those_of_its_values(
    names: list[str], rows: int, nulls: float, stride: int, stripe: int, compression: str, version: str,
    dictionary: float, seed: int,
) -> None:  # fmt: skip
    rng = random.Random(seed)
    columns: dict[str, list[Any]] = {}
    arrays = {}
    for name in names:
        kind, makes = KINDS[name]
        make = rng.choice(makes)
        array = pa.array(
            [None if rng.random() < nulls else make(rng, i) for i in range(rows)],
            {"date": pa.int32(), "moment": pa.int64()}.get(name, kind),
        )
        arrays[name] = array.cast(kind)
        columns[name] = arrays[name].to_pylist()
    with tempfile.TemporaryDirectory() as folder:
        path = orcfiles.write(
            Path(folder) / "f",
            pa.table(arrays),
            stride=stride,
            stripe_size=stripe,
            batch_size=200,
            compression=compression,
            file_version=version,
            dictionary_key_size_threshold=dictionary,
        )
        compared(path, columns)


def test_values_that_lie_across_many_chunks_and_windows_are_whole(tmp_path: Path) -> None:
    rng = random.Random(1)
    texts = [rng.randbytes(rng.choice([3, 70_000, 600_000])).hex() for _ in range(20)]
    numbers = [rng.getrandbits(63) for _ in range(70_000)]
    for compression in ("uncompressed", "zlib"):
        path = orcfiles.write(tmp_path / compression, {"t": texts}, compression=compression)
        assert compared(path, {"t": texts}) == 20
        path = orcfiles.write(tmp_path / compression, {"n": numbers}, compression=compression, stride=30_000)
        assert compared(path, {"n": numbers}) == 70_000


@pytest.mark.parametrize("batch", [1, 7, 999])
def test_row_groups_larger_than_a_batch_are_read_in_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(limits, "ROWS_PER_BATCH", batch)
    rng = random.Random(batch)
    columns = {
        name: [None if rng.random() < 0.3 else makes[0](rng, i) for i in range(500)]
        for name, (_, makes) in KINDS.items()
        if name not in {"date", "moment", "float32"}
    }
    table = pa.table({name: pa.array(values, KINDS[name][0]) for name, values in columns.items()})
    path = orcfiles.write(tmp_path / "f", table, stride=200, dictionary_key_size_threshold=1.0)
    assert compared(path, {name: table[name].to_pylist() for name in columns}) > 3000
