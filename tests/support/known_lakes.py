"""Generated lakes, and the actual costs of lookups in them.

Every value of every row group is looked up in every file, and in a copy with filters by `bloom add`. A sample of
absent values is looked up in min/max; their false positives are computed from the rate of each filter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

import bloomcli
from bloomcli.advice.absent_values import absent_values
from bloomcli.formats.answer import answer
from bloomcli.formats.registry import open_file
from bloomcli.model.file import Column, Presence
from bloomcli.storage.registry import open_source
from bloomcli.values.literals import decode_bound, parse

ABSENT: Final = 100
"""Absent values for each unit in the exhaustive run."""


def columns(rng: np.random.Generator, files: int, rows: int) -> list[pa.Table]:
    """Tables of one lake, with a column of each kind that advice distinguishes."""
    total = files * rows
    unique = rng.permutation(total * 3)[:total] * 7
    skewed = np.minimum(rng.zipf(1.4, total), 10**6)
    tables = []
    for at in range(files):
        here = slice(at * rows, (at + 1) * rows)
        middle = rng.integers(0, 3_000_000)
        spiked = np.sort(rng.integers(at * 1000, at * 1000 + 1500, rows))
        spiked[rng.integers(0, rows, max(rows // 100, 1))] = rng.integers(0, files * 1000)
        tables.append(
            pa.table(
                {
                    "unique": unique[here],
                    "ascending": np.arange(here.start, here.stop),
                    "clustered": rng.integers(middle, middle + 400_000, rows),
                    "spiked": spiked,
                    "few": rng.integers(0, 4, rows),
                    "skewed": skewed[here],
                    "shared": rng.integers(0, total // 4, rows) * 13,
                    "text": [f"{v:012x}" for v in rng.integers(0, 1 << 48, rows)],
                    "ratio": rng.normal(size=rows).round(3),
                    "gaps": pa.array([None if rng.random() < 0.6 else int(v) for v in rng.integers(0, 10**6, rows)]),
                    "list": pa.array([rng.integers(0, 2000, rng.integers(0, 3)).tolist() for _ in range(rows)]),
                }
            )
        )
    return tables


def write(folder: Path, seed: int, kind: str = "parquet") -> list[Path]:
    """Write a lake; sizes and contents are functions of the seed."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    paths = []
    for number, table in enumerate(columns(rng, int(rng.integers(5, 9)), int(rng.integers(300, 700)))):
        path = folder / f"{number:02}.{kind}"
        if kind == "parquet":
            options = [{}, {"use_dictionary": False}, {"compression": "zstd"}][seed % 3]
            pq.write_table(table, path, row_group_size=int(rng.integers(50, 110)), **options)  # type: ignore[arg-type]
        else:
            orc = pa.orc.ORCWriter(path, row_index_stride=100, stripe_size=64 << 10, compression="zlib")
            for start in range(0, table.num_rows, 150):
                orc.write(table.slice(start, 150))
            orc.close()
        paths.append(path)
    return paths


@dataclasses.dataclass
class Reads:
    """The mean cost of a lookup."""

    row_groups: float = 0.0
    bytes: float = 0.0


@dataclasses.dataclass
class Truth:
    """The exhaustive figures of a column."""

    present_today: Reads
    present_with: Reads
    absent_today: Reads
    absent_with: Reads
    saved_present: float
    saved_absent: float
    filter_bytes: int
    distinct: int
    distinct_per_unit: float


def units_of(path: Path, column: str) -> list[list[Any]]:
    """The values of each unit, by PyArrow."""
    if path.suffix == ".parquet":
        file = pq.ParquetFile(path)
        groups = [file.read_row_group(at, columns=[column])[column] for at in range(file.num_row_groups)]
    else:
        orc = pa.orc.ORCFile(path)
        groups = [orc.read_stripe(at, columns=[column])[column] for at in range(orc.nstripes)]
    return [sorted(set(_leaves(group.to_pylist()))) for group in groups]


def _leaves(values: Sequence[Any]) -> list[Any]:
    return [v for value in values for v in (value if isinstance(value, list) else [value]) if v is not None]


class Answers:
    """Whether a lookup of a value reads a row group, as an array of values x row groups."""

    def __init__(self, paths: Sequence[Path], name: str, texts: Sequence[str]) -> None:
        read, sizes, units = [], [], []
        for number, path in enumerate(paths):
            with open_source(path) as source:
                file = open_file(source)
                column = next(c for c in file.columns if c.path == name)
                typed = file.literal_column(column)
                asked = [parse(text, typed) for text in texts]
                for facts in file.unit_facts(column, asked):  # without dictionaries: no reader is given
                    found = (
                        answer(facts, lookup, skip, explain=False)
                        for lookup, skip in zip(facts.lookups, facts.stats_skip, strict=True)
                    )
                    read.append(
                        [not (a.presence is Presence.ABSENT or (a.stats_skip is True and a.trusted)) for a in found]
                    )
                    sizes.append(facts.row_group_bytes)
                    units.append((number, facts.row_group if facts.stripe is None else facts.stripe))
        self.read = np.array(read, bool).T.reshape(len(texts), len(sizes))
        self.sizes = np.array(sizes, float)
        self.units = units


def leaf_of(path: Path, column: str) -> tuple[str, Column]:
    """The leaf's path in the file, and its type for literals."""
    with open_source(path) as source:
        file = open_file(source)
        leaf = next(c for c in file.leaves if c.path == column or c.path.startswith(column + "."))
        return leaf.path, dataclasses.replace(file.literal_column(leaf), path="", index=0)


def text_of(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def truth(paths: Sequence[Path], column: str, fpp: float, work: Path, seed: int = 0) -> Truth:
    """Look every value of a column up in every row group."""
    name, typed = leaf_of(paths[0], column)
    copies = []
    for path in paths:
        copy = work / path.name
        if not copy.exists():
            bloomcli.add(path, columns=[name], fpp=fpp, output=copy, readers=["duckdb"], replace=True)
        copies.append(copy)
    by_unit = {
        (number, at): values
        for number, path in enumerate(paths)
        for at, values in enumerate(units_of(path, column))
        if values
    }
    every = sorted({v for values in by_unit.values() for v in values})
    place = {v: at for at, v in enumerate(every)}
    texts = [text_of(v) for v in every]
    samples = [[parse(text_of(v), typed).encodings[0] for v in values] for values in by_unit.values()]
    bounds = (decode_bound(_of(every[0], typed), typed), decode_bound(_of(every[-1], typed), typed))
    drawn = [v for group in absent_values(samples, typed, bounds, ABSENT, seed) for v in group]
    from bloomcli.values.literals import render

    absent = [render(v, typed) for v in drawn]
    before, after = Answers(paths, name, [*texts, *absent]), Answers(copies, name, texts)
    filters = _filters(copies, name)
    sizes, fpps = np.array([f[0] for f in filters], float), np.array([f[1] for f in filters])
    count = len(every)
    today = before.read.astype(float)
    # for absent values, the expected value by the filters' rates
    later = np.concatenate([after.read.astype(float), today[count:] * fpps])
    weights = np.zeros(count)
    for values in by_unit.values():
        weights[[place[v] for v in values]] += 1 / len(values) / len(by_unit)
    spread = np.full(len(absent), 1 / max(len(absent), 1))
    saved = today @ before.sizes - later @ before.sizes - today @ sizes
    return Truth(
        present_today=_reads(weights, today[:count], before.sizes),
        present_with=_reads(weights, later[:count], before.sizes),
        absent_today=_reads(spread, today[count:], before.sizes),
        absent_with=_reads(spread, later[count:], before.sizes),
        saved_present=float(weights @ saved[:count]),
        saved_absent=float(spread @ saved[count:]),
        filter_bytes=int(sizes.sum()),
        distinct=len(every),
        distinct_per_unit=sum(map(len, by_unit.values())) / len(by_unit),
    )


def _of(value: Any, typed: Column) -> bytes:
    return parse(text_of(value), typed).encodings[0]


def _reads(weights: np.ndarray, read: np.ndarray, sizes: np.ndarray) -> Reads:
    return Reads(float(weights @ read.mean(axis=1)), float(weights @ (read @ sizes)))


def _filters(copies: Sequence[Path], name: str) -> list[tuple[int, float]]:
    """(bytes, rate) of each row group's filter."""
    found = []
    for copy in copies:
        report = bloomcli.inspect(copy, columns=[name])
        by_place = {(f.stripe, f.row_group): f for f in report.filters}
        with open_source(copy) as source:
            file = open_file(source)
            column = next(c for c in file.columns if c.path == name)
            for facts in file.unit_facts(column, ()):
                f = by_place[facts.stripe, facts.row_group]
                found.append((f.bitset_bytes or 0, f.fpp or 0.0))
    return found
