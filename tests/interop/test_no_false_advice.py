"""With a policy that requires everything: each finding is true, by the data that Arrow and plain Python read.

Every reader is named, and advice is on. Limits aren't set: they are tested elsewhere.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.blooms import holds
from support.golden import FIXTURES, MOSAIC, ORC
from support.groundtruth import negative_zero, parquet_values
from support.tables import CASES, packed, write

import bloomcli
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding, ValidateReport
from bloomcli.policy.policy import Part, Policy
from bloomcli.rules.readers import READERS

pytestmark = pytest.mark.interop

DICTIONARY_READERS: Final = tuple(name for name, reader in READERS.items() if reader.dictionary)
ADVICE: Final = {"profit-constant", "profit-sorted", "profit-dictionary"}
READER: Final = {
    "reader-negative-zero",
    "reader-millis",
    "reader-decimal-width",
    "reader-single-block",
    "reader-float16",
    "reader-issue",
}


def asked(path: Path, readers: Sequence[str] = tuple(READERS), *, deep: bool) -> ValidateReport:
    """With all options that need no limit."""
    policy = Policy(path="bloom.toml", whole=Part(readers=tuple(readers)))
    return bloomcli.validate(path, policy=policy, deep=deep)


class Truth:
    """A Parquet file's values, filters and types, without bloomcli's opinion of them."""

    def __init__(self, path: Path) -> None:
        self.values = parquet_values(path)
        self.metadata = pq.read_metadata(path)
        schema = self.metadata.schema
        self.columns = {schema.column(i).path: schema.column(i) for i in range(len(schema))}
        self.filters = {
            (f.row_group, f.column): bytes(bloomcli.dump(path, column=f.column, row_group=f.row_group).bitset)
            for f in bloomcli.inspect(path).filters
        }

    def groups(self, column: str) -> list[int]:
        """Row groups in which a column has a filter."""
        return [group for group, name in self.filters if name == column]

    def plain_zeros(self, column: str) -> tuple[bytes, bytes] | None:
        """PLAIN of +0.0 and -0.0."""
        found = self.columns[column]
        half = str(found.logical_type) == "Float16"
        form = {"FLOAT": "<f", "DOUBLE": "<d"}.get(found.physical_type, "<e" if half else None)
        return None if form is None else (packed(form)(0.0), packed(form)(-0.0))

    def lone_zero(self, column: str, *, proven: bool) -> bool:
        """Some filter holds -0.0 and not +0.0; `proven`: and -0.0 is among the values."""
        zeros = self.plain_zeros(column)
        return zeros is not None and any(
            not holds(self.filters[g, column], zeros[0])
            and (negative_zero(self.values[g, column]) if proven else holds(self.filters[g, column], zeros[1]))
            for g in self.groups(column)
        )

    def is_so(self, finding: Finding) -> bool:
        """Whether a finding is true."""
        if finding.id == "reader-issue":  # of a file with filters, and no error
            return bool(self.filters) and finding.column is None and finding.severity is Severity.NOTE
        assert finding.column is not None
        column, name = self.columns[finding.column], finding.column
        logical = str(column.logical_type)
        ranges = [self.values[g, name] for g in self.groups(name)]
        if finding.id == "reader-negative-zero":
            return self.lone_zero(name, proven=finding.severity is Severity.ERROR)
        if finding.id == "reader-millis":
            return logical.startswith("Timestamp") and "milliseconds" in logical
        if finding.id == "reader-decimal-width":
            least = next(n for n in range(1, 40) if 2 ** (8 * n - 1) > 10**column.precision - 1)
            return column.physical_type == "BYTE_ARRAY" or column.length != least or least != 16
        if finding.id == "reader-single-block":
            return any(len(self.filters[g, name]) == 32 for g in self.groups(name))
        if finding.id == "reader-float16":
            return logical == "Float16"
        if finding.id == "profit-constant":
            # both zeros are one value to a query, and NaN is looked up in no filter
            return all(len({v for v in values if v == v}) == 1 for values in ranges)
        if finding.id == "profit-sorted":
            ordered = sorted((min(values), max(values)) for values in ranges)
            return len(ordered) >= 3 and all(a[1] < b[0] for a, b in pairwise(ordered))
        if finding.id == "profit-dictionary":
            return all(self.only_dictionary(group, name) for group in self.groups(name))
        return False

    def only_dictionary(self, group: int, column: str) -> bool:
        """No page of the chunk is encoded otherwise."""
        chunk = self.metadata.row_group(group).column(list(self.columns).index(column))
        return bool({"PLAIN_DICTIONARY", "RLE_DICTIONARY"} & set(chunk.encodings)) and chunk.has_dictionary_page


def agrees(path: Path, *, quiet: frozenset[str] = frozenset()) -> set[str]:
    """Every finding but those of ids in `quiet` is so, and so is every lone zero found. Returns the ids."""
    truth = Truth(path)
    ids = set()
    for readers in (tuple(READERS), DICTIONARY_READERS):
        for deep in (False, True):
            findings = [f for f in asked(path, readers, deep=deep).findings if f.id not in quiet]
            assert {f.id for f in findings} <= ADVICE | READER
            wrong = [f for f in findings if not truth.is_so(f)]
            assert wrong == []
            ids |= {f.id for f in findings}
            lone = {f.column for f in findings if f.id == "reader-negative-zero"}
            assert not deep or lone == {c for c in truth.columns if truth.lone_zero(c, proven=True)}
    return ids


def floats() -> pa.Table:
    """Zeros of both signs, of one, of none, in three row groups of ten."""

    def column(*groups: Sequence[float | None]) -> pa.Array:
        return pa.array([values[i % len(values)] for values in groups for i in range(10)], pa.float64())

    minus, plus, none, both = [-0.0, 1.5], [0.0, 1.5], [2.5, None, math.nan], [0.0, -0.0]
    columns = {
        "minus": column(minus, minus, minus),
        "plus": column(plus, plus, plus),
        "none": column(none, none, none),
        "both": column(both, both, both),
        "once": column(plus, none, minus),
        "apart": column(plus, minus, none),
        "nulls": column([None], [None], [None]),
    }
    single = {f"{name}32": array.cast(pa.float32()) for name, array in columns.items()}
    half = {f"{name}16": array.cast(pa.float16()) for name, array in columns.items()}
    return pa.table({**columns, **single, **half})


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("statistics", [True, False])
def test_a_negative_zero_is_found_where_it_is_without_its_twin_and_nowhere_else(
    dictionary: bool, statistics: bool, tmp_path: Path
) -> None:
    table = floats()
    blooms = {c: {"ndv": 10, "fpp": 0.001} for c in table.column_names}
    path = write(tmp_path / "f", table, rows=10, dictionary=dictionary, blooms=blooms, write_statistics=statistics)
    ids = agrees(path)
    assert {"reader-negative-zero", "reader-float16"} <= ids
    lone = {f.column for f in asked(path, deep=True).findings if f.id == "reader-negative-zero"}
    assert lone == {f"{name}{width}" for name in ("minus", "once", "apart") for width in ("", "32", "16")}
    bloomcli.add(path, ["*"], output=tmp_path / "mended", replace=True, readers="spark")
    assert "reader-negative-zero" not in agrees(tmp_path / "mended")


def test_a_small_filter_that_holds_the_negative_zero_by_chance_gives_a_note_and_no_finding_when_values_are_read(
    tmp_path: Path,
) -> None:
    """One block, so full that it answers "maybe" for many absent values."""
    for start in range(1, 200):
        table = {"c": pa.array(np.arange(start, start + 40) * 0.37 * np.resize([1, -1], 40))}
        path = write(tmp_path / "f", table, dictionary=False, blooms={"c": {"ndv": 1, "fpp": 0.5}})
        if Truth(path).lone_zero("c", proven=False):
            break
    else:
        pytest.fail("no such filter came up")
    (note,) = [f for f in asked(path, deep=False).findings if f.id == "reader-negative-zero"]
    assert note.severity is Severity.NOTE
    assert not note.counts
    assert "reader-negative-zero" not in {f.id for f in asked(path, deep=True).findings}


def advised() -> pa.Table:
    """Sorted, constant, alike and overlapping columns of several types, in four row groups of ten."""
    rows = range(40)
    return pa.table(
        {
            "sorted": pa.array(rows, pa.int64()),
            "down": pa.array([-i for i in rows], pa.int32()),
            "text": [f"text {i:03}" for i in rows],
            "cents": pa.array([Decimal(i - 20) / 4 for i in rows], pa.decimal128(20, 2)),
            "narrow": pa.array([Decimal(i) for i in rows], pa.decimal128(38, 2)),
            "day": [dt.date(1969, 12, 20) + dt.timedelta(days=i) for i in rows],
            "milli": pa.array([dt.datetime(2024, 1, 1) + dt.timedelta(i) for i in rows], pa.timestamp("ms")),
            "micro": pa.array([dt.datetime(2024, 1, 1) + dt.timedelta(i) for i in rows], pa.timestamp("us")),
            "constant": pa.array([7] * 40, pa.int32()),
            "constants": [f"c{i // 10 % 2}" for i in rows],
            "almost": pa.array([7] * 39 + [8], pa.int64()),
            "nulled": pa.array([None if i % 3 else 7 for i in rows], pa.int64()),
            "touching": pa.array([i // 10 * 9 + i % 10 for i in rows], pa.int64()),
            "mixed": pa.array([i * 7 % 40 for i in rows], pa.int64()),
            "unsigned": pa.array([(i - 20) % (1 << 32) for i in rows], pa.uint32()),
            "few": pa.array([i % 4 for i in rows], pa.int64()),
        }
    )


@pytest.mark.parametrize("dictionary", [True, False, ["few", "text"]])
@pytest.mark.parametrize("page_version", [1, 2])
def test_advice_is_what_the_values_bear_out(dictionary: bool | list[str], page_version: int, tmp_path: Path) -> None:
    table = advised()
    blooms = {c: {"ndv": 10, "fpp": 0.001} for c in table.column_names}
    path = write(tmp_path / "f", table, rows=10, dictionary=dictionary, page_version=page_version, blooms=blooms)
    ids = agrees(path)
    assert {"profit-constant", "profit-sorted", "reader-millis"} <= ids
    assert ("profit-dictionary" in ids) is (dictionary is not False)
    found = {(f.id, f.column) for f in asked(path, deep=True).findings}
    assert {c for i, c in found if i == "profit-constant"} == {"constant", "constants", "nulled"}
    wanted = {"sorted", "down", "text", "cents", "narrow", "day", "milli", "micro", "unsigned"}
    assert {c for i, c in found if i == "profit-sorted"} == wanted


def test_files_of_every_type_by_arrow_get_no_advice_that_is_wrong(tmp_path: Path) -> None:
    flat = {n: c.array(12) for n, c in CASES.items() if n not in {"null", "uuid"}}
    length = min(map(len, flat.values()))
    table = pa.table({name: array.slice(0, length) for name, array in flat.items()})
    with pa.BufferOutputStream() as out:
        pq.write_table(table.slice(0, 0), out)
        schema = pq.read_metadata(pa.BufferReader(out.getvalue())).schema
    blooms = {schema.column(i).path: {"ndv": 20, "fpp": 0.01} for i in range(len(schema))}
    path = write(tmp_path / "f", table, rows=13, blooms=blooms)
    assert agrees(path) >= {"reader-millis", "reader-float16", "reader-decimal-width"}


QUIET: Final = frozenset({"filter-boolean"})


@pytest.mark.parametrize(
    "name", ["spark_types", "spark_int96", "pyarrow_types", "duckdb_types", "arrow_rs_between", "orders"]
)
def test_parquet_fixtures_get_no_advice_that_is_wrong(name: str) -> None:
    agrees(FIXTURES / f"{name}.parquet", quiet=QUIET)


@pytest.mark.parametrize("path", [*sorted(ORC.glob("*.orc")), *sorted(MOSAIC.glob("*.mosaic"))], ids=lambda p: p.name)
def test_orc_and_mosaic_fixtures_get_advice_on_sorted_and_constant_columns_alone(path: Path) -> None:
    """None of them holds a zero among its floats. Millisecond, width and half-float troubles are Parquet's.

    A finding's command passes the readers on, so that hints aren't compared.
    """
    for deep in (False, True):
        plain = [replace(f, hint=None) for f in bloomcli.validate(path, deep=deep).findings]
        more = [f for f in asked(path, deep=deep).findings if replace(f, hint=None) not in plain]
        nulls = [f for f in more if f.id == "reader-null-structs"]
        assert {f.column for f in nulls} == ({"person.name"} if path.name == "java_types.orc" else set())
        assert {f.id for f in more if f.severity is not Severity.NOTE and f not in nulls} == set()
        assert {f.id for f in more if f not in nulls} <= ADVICE | {"reader-negative-zero"}
        assert not deep or "reader-negative-zero" not in {f.id for f in more}


def test_zeros_are_packed_as_parquet_does() -> None:
    """The assumptions of the ground truth."""
    assert packed("<d")(-0.0) == struct.pack("<d", -0.0) != packed("<d")(0.0)
    assert negative_zero([1.0, -0.0])
    assert not negative_zero([0.0, 1.0, "-0.0"])
