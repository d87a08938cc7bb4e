"""Measures the columns of many files.

list files -> read metadata -> draw units -> sample values of some units -> look them up in other units -> figures
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from bloomcli.advice.absent_values import absent_values
from bloomcli.advice.column_figures import Cells, ColumnSamples, column_advice, unmeasured
from bloomcli.advice.column_metadata import ColumnMetadata, UnitKey, all_columns
from bloomcli.commands.advise import literals
from bloomcli.commands.advise_options import ExtentOptions, LookupValues, UnitOptions
from bloomcli.commands.columns import is_named
from bloomcli.commands.options import AdviseOptions, policy_of
from bloomcli.commands.sampling import chosen, share
from bloomcli.datasets.engine import Engine
from bloomcli.datasets.task import OnRow, Task
from bloomcli.errors import BloomError, LiteralError, UnknownColumn, UnreadableError, UnsupportedError, UsageError
from bloomcli.formats.format import Sizes
from bloomcli.formats.registry import format_named
from bloomcli.hints import quoted
from bloomcli.model.advice import (
    AdviseReport,
    ColumnAdvice,
    EngineFilterAdvice,
    FileExtents,
    QueryLog,
    SampledRow,
    UnitSample,
)
from bloomcli.model.dataset import FileRow, Status
from bloomcli.model.file import POWER_OF_TWO, TIGHT, Column, EngineFilterFacts
from bloomcli.model.paths import shown
from bloomcli.policy.policy import Policy
from bloomcli.rules.readers import any_size_refusal, reader
from bloomcli.storage.base import FileEntry
from bloomcli.storage.listing import no_files
from bloomcli.values.literals import parse
from bloomcli.words import plural

RATES: Final = (0.1, 0.05, 0.01, 0.001)
"""The rates for which every column has figures, in addition to the requested rate."""
_LEAST: Final = 2
"""The fewest absent values of a unit."""
_ABSENT_BYTES: Final = 1 << 20
"""The approximate bytes of a column's absent values: the longer they are, the fewer."""
FILES_MOST: Final = 20_000
"""The most files whose metadata are read. Of more files, that many are chosen at random."""
_UNITS: Final = 50
_UNITS_LEAST: Final = 8
_BYTES: Final = 256 << 20
"""The approximate compressed bytes of a sample of units, if the options don't set its size."""
_VALUES: Final = 1024
_VALUES_LEAST: Final = 16
_VALUES_MOST: Final = 4096
_LOOKUPS: Final = 50_000
"""The approximate number of lookups for one column: the fewer units, the more values of each."""
_COLUMNS_VALUES: Final = 200_000
"""The approximate number of values of all columns."""
_PARTS: Final = (2, 32)
_PARTS_IN_ALL: Final = 64
_SKETCHES_BYTES: Final = 64 << 20
_SKETCH_BITS: Final = (8, 12)


class Plan(NamedTuple):
    """Two samples of all units of all files, and the numbers of values: value units, whose values are sampled, and
    lookup units, in which the values are looked up. They are independent random samples without replacement."""

    value_units: Mapping[int, tuple[int, ...]]
    lookup_units: Mapping[int, tuple[int, ...]]
    """Units by the positions of their files."""
    values: int
    """The number of values that are sampled in each value unit."""
    sketch_bits: int
    parts: int
    """The number of random parts that a unit's values are divided into, to measure the variance within a unit."""

    @property
    def sampled(self) -> set[UnitKey]:
        """The units of both samples."""
        return {
            (file, unit)
            for units in (self.value_units, self.lookup_units)
            for file, numbers in units.items()
            for unit in numbers
        }


def _some_files(tasks: Sequence[Task], seed: int) -> list[int]:
    """The positions of the files whose metadata are read: all files, or `FILES_MOST` random ones."""
    if len(tasks) <= FILES_MOST:
        return list(range(len(tasks)))
    return sorted(chosen([task.path for task in tasks], share(str(FILES_MOST)), seed))


def _plan(paths: Mapping[int, str], files: Mapping[int, FileExtents], sample: str | None, seed: int) -> Plan:
    """Draw both samples. Units without rows aren't drawn."""
    units = [
        (position, number) for position, file in files.items() for number, count in enumerate(file.units) if count
    ]
    first, last = min(paths.values(), default=""), max(paths.values(), default="")
    start = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)  # where paths differ
    names = [f"{paths[position][start:]}:{number}" for position, number in units]
    text = str(_default(units, files)) if sample is None else sample
    drawn = [
        chosen([f"{side}:{name}" for name in names], share(text), seed) if units else set()
        for side in ("values", "filters")
    ]
    count = max(len(drawn[0]), 1)
    columns = max((len(file.columns) for file in files.values()), default=1)
    of_column = min(_VALUES_MOST, _LOOKUPS // count, _COLUMNS_VALUES // max(columns, 1))
    bits = (_SKETCHES_BYTES // (8 * 2 * count * max(columns, 1))).bit_length() - 1
    return Plan(
        value_units=_by_file(units, drawn[0]),
        lookup_units=_by_file(units, drawn[1]),
        values=max(max(of_column, _VALUES) // count, _VALUES_LEAST),
        sketch_bits=min(max(bits, _SKETCH_BITS[0]), _SKETCH_BITS[1]),
        parts=min(max(_PARTS_IN_ALL // count, _PARTS[0]), _PARTS[1]),
    )


def _default(units: Sequence[UnitKey], files: Mapping[int, FileExtents]) -> int:
    """The number of units in a sample: 50, or fewer if they are large."""
    total = sum(sum(file.row_group_bytes) for file in files.values())
    mean = total / max(len(units), 1)
    return min(_UNITS, max(_UNITS_LEAST, int(_BYTES / max(mean, 1.0))))


def _by_file(units: Sequence[UnitKey], drawn: set[int]) -> dict[int, tuple[int, ...]]:
    by_file: dict[int, list[int]] = {}
    for at in sorted(drawn):
        by_file.setdefault(units[at][0], []).append(units[at][1])
    return {file: tuple(numbers) for file, numbers in by_file.items()}


@dataclass(frozen=True, kw_only=True)
class _Run:
    """The objects that the steps of a run share."""

    engine: Engine
    options: AdviseOptions
    tasks: Sequence[Task]
    """The task of each file, by position."""
    on_row: OnRow | None
    failed: dict[str, FileRow]
    tight: bool = False
    """New filters have tight sizes."""

    @property
    def rates(self) -> tuple[float, ...]:
        """All rates, in descending order."""
        return tuple(sorted({*RATES, self.options.fpp}, reverse=True))

    def rows(self, options: Mapping[int, ExtentOptions | UnitOptions]) -> dict[int, SampledRow]:
        """Run tasks on files, and return their rows, both by the files' positions."""
        named: dict[tuple[int, int], ExtentOptions | UnitOptions] = {}
        tasks = []
        for at, own in options.items():
            task_options = self.tasks[at].options  # the names of a table's columns, and the keys of its files
            key = id(own), id(task_options)
            if key not in named:
                named[key] = replace(own, names=task_options.names, keys=task_options.keys)
            tasks.append(replace(self.tasks[at], options=named[key]))
        rows: dict[int, SampledRow] = {}
        if tasks:
            report = self.engine.run(tasks, on_row=self.on_row)
            for at, row in zip(options, report.rows, strict=True):
                if isinstance(row, SampledRow):
                    rows[at] = row
                elif row.status is Status.FAILED:
                    self.failed[row.path] = row
        return rows


def measure(
    engine: Engine,
    paths: Sequence[str],
    listed: Sequence[FileEntry],
    options: AdviseOptions,
    *,
    log: QueryLog | None = None,
    on_row: OnRow | None = None,
) -> AdviseReport:
    """Measure the columns of all files that `paths` name, without recommendations.

    Every column has figures at several rates (`AtRate`: 0.1, 0.05, 0.01, 0.001 and `options.fpp`); `filter_bytes`,
    `seconds_to_add`, `present`, `absent`, `queried` and `saved_bytes` are those at `options.fpp`. `recommended` is
    False, `reason` and `reason_id` are empty, columns are in schema order, `command` and the budget are None.

    Args:
        engine: runs the tasks on the files.
        paths: files, directories, globs, URIs; none for the engine of a table.
        listed: the files that they name.
        options: the options of the user.
        log: queries, whose literals are looked up, too.
        on_row: called on this machine with each file's row, as soon as the file is done.

    Raises:
        UsageError: there are no files, a figure is out of range, or a policy can't be read.
        UnknownColumn: no file has a column with a given name.
        UnreadableError, UnsupportedError: as for `Engine.run`; every file failed.
    """
    started = time.perf_counter()
    options = options.checked()
    policy = policy_of(options)
    about = ExtentOptions(
        columns=options.columns, exclude=options.exclude, policy=policy, names=options.names, keys=options.keys
    )
    tasks = engine.plan(listed, about)
    if paths and not tasks:
        raise no_files(paths)
    run = _Run(engine=engine, options=options, tasks=tasks, on_row=on_row, failed={})
    looked_at = _some_files(tasks, options.seed)
    rows = run.rows(dict.fromkeys(looked_at, about))
    files = {at: row.extents for at, row in rows.items() if row.extents is not None}
    if not files:
        raise _no_files_error(run)
    drawn = _plan({at: tasks[at].path for at in files}, files, options.sample, options.seed)
    metadata = all_columns(files.items())
    _check_names(options.columns, metadata, tasks[min(files)].path)
    run = replace(run, tight=_tight(policy, {file.format for file in files.values()}))
    columns = _columns(run, metadata, drawn, log)
    sampled = {tasks[at].path for at in (*drawn.value_units, *drawn.lookup_units)}
    if sampled and run.failed.keys() >= sampled:
        raise _no_files_error(run)
    total, bytes_ = sum(f.rows for f in files.values()), sum(f.bytes for f in files.values())
    scale = len(tasks) / len(looked_at)
    return AdviseReport(
        paths=tuple(map(shown, paths)),
        files=len(files) if scale == 1 else len(tasks),
        row_groups=round(scale * sum(sum(f.units) for f in files.values())),
        rows=round(scale * total),
        bytes=round(scale * bytes_),
        sampled_files=len({file for file, _ in drawn.sampled}),
        sampled_row_groups=sum(files[file].units[unit] for file, unit in drawn.sampled),
        seed=options.seed,
        fpp=options.fpp,
        present_share=options.present,
        formats=tuple(sorted({file.format for file in files.values()})),
        size=TIGHT if run.tight else POWER_OF_TWO,
        readers=tuple(policy.whole.readers or ()),
        policy=policy.path,
        columns=tuple(columns),
        engine_filters=_too_large_engine_filters(
            (filter_ for file in files.values() for filter_ in file.engine_filters), scale
        ),
        failed=tuple((path, row.error or "") for path, row in run.failed.items()),
        unverified=round(scale * sum(f.unverified for f in files.values())),
        seconds=time.perf_counter() - started,
    )


def _check_names(names: Sequence[str], columns: Mapping[str, ColumnMetadata], path: str) -> None:
    """Raise UnknownColumn for a name of no column; `path` is that of a file."""
    for name in names:
        if not any(is_named([name], replace(column.typed, path=leaf)) for leaf, column in columns.items()):
            raise UnknownColumn(
                f"no column {name!r} in any of the files",
                hint=f"`bloom inspect {quoted(path)}` lists a file's columns",
            )


def _no_files_error(run: _Run) -> BloomError:
    """The error if no file can be read: of the type of the files' errors, if all of them have the same type."""
    if not run.failed:
        return UsageError("none of the files is of a known format", hint="bloom reads Parquet, ORC and Mosaic files")
    path, first = next(iter(run.failed.items()))
    codes = {row.exit_code for row in run.failed.values()}
    kind = {UsageError.exit_code: UsageError, UnsupportedError.exit_code: UnsupportedError}.get(first.exit_code)
    error = (first.error or "").removeprefix(f"{path}: ")
    if len(run.failed) > 1:
        error = f"none of {plural(len(run.failed), 'file')} can be looked at; the first error: {error}"
    return (UnreadableError if kind is None or len(codes) > 1 else kind)(error, path=path, hint=first.hint)


def _columns(
    run: _Run, columns: Mapping[str, ColumnMetadata], drawn: Plan, log: QueryLog | None
) -> list[ColumnAdvice]:
    readable = {
        path: metadata for path, metadata in columns.items() if metadata.unfilterable is None or metadata.loses_rows
    }
    value_samples = {
        path: {key: _as_typed(unit, columns[path].typed) for key, unit in units.items()}
        for path, units in _units(run, drawn.value_units, drawn, dict.fromkeys(readable)).items()
    }
    cells = {
        path: _cells(run, metadata, value_samples.get(path, {}), drawn, log) for path, metadata in readable.items()
    }
    wanted = {
        path: cells[path].looked_up(metadata, list(value_samples[path].values()))
        for path, metadata in readable.items()
        if path in value_samples
    }
    lookup_samples = _units(run, drawn.lookup_units, drawn, wanted)
    asked = {column.column: column.lookups for column in log.columns} if log is not None else None
    advice = []
    for path, metadata in columns.items():
        lookups = None if asked is None else asked.get(path, 0)
        if path not in value_samples or path not in lookup_samples:
            advice.append(unmeasured(metadata, lookups, run.options.fpp))
            continue
        samples = ColumnSamples(
            metadata=metadata,
            rates=run.rates,
            cells=cells[path],
            value_samples=value_samples[path],
            lookup_samples=lookup_samples[path],
            tight=run.tight,
            settled=not metadata.filters and not (_by_dictionary(run) and metadata.dictionary),
        )
        advice.append(column_advice(samples, run.options.fpp, lookups, run.options.present))
    return advice


def _tight(policy: Policy, formats: Collection[str]) -> bool:
    """Whether readers are named and `bloom add --size tight` accepts all of them for all files."""
    readers = policy.whole.readers or ()
    own = any(part.readers or part.size for part in policy.files)
    if not readers or own or policy.whole.size == POWER_OF_TWO:
        return False
    return all(
        format_named(name).sizes is Sizes.ANY and not any(any_size_refusal(reader(who), name) for who in readers)
        for name in formats
    )


def _by_dictionary(run: _Run) -> bool:
    """Whether readers are named and all of them look values up in dictionaries."""
    readers = policy_of(run.options).whole.readers or ()
    return bool(readers) and all(reader(name).dictionary for name in readers)


def _units(
    run: _Run, units: Mapping[int, tuple[int, ...]], drawn: Plan, columns: Mapping[str, LookupValues | None]
) -> dict[str, dict[UnitKey, UnitSample]]:
    """Sample units, by position of the file. The result has the samples by column and unit."""
    options = run.options
    shared = UnitOptions(
        units={run.tasks[at].path: numbers for at, numbers in units.items()},
        columns=columns,
        rates=run.rates,
        fpp=options.fpp,
        values=drawn.values,
        parts=drawn.parts,
        sketch_bits=drawn.sketch_bits,
        seed=options.seed,
        tight=run.tight,
        dictionary=_by_dictionary(run),
        policy=policy_of(options),
    )
    samples: dict[str, dict[UnitKey, UnitSample]] = {}
    for at, row in sorted(run.rows(dict.fromkeys(units, shared)).items()):
        for unit in row.units:
            samples.setdefault(unit.column, {})[at, unit.unit] = unit
    return samples


def _as_typed(unit: UnitSample, typed: Column) -> UnitSample:
    """The sample with its values converted to the column's type in the first file. Values that the type can't hold
    are left out."""
    if unit.typed == typed:
        return unit
    converted = literals(unit.values, unit.typed, typed)
    return replace(unit, values=tuple(literal.encodings[0] for literal in converted if literal.encodings))


def _cells(
    run: _Run,
    metadata: ColumnMetadata,
    value_samples: Mapping[UnitKey, UnitSample],
    drawn: Plan,
    log: QueryLog | None,
) -> Cells:
    typed = metadata.typed
    samples = [unit.values for unit in value_samples.values()]
    longest = max((len(value) for values in samples for value in values), default=0)
    count = min(drawn.values // 2, _ABSENT_BYTES // max(longest * len(samples), 1))
    absent = absent_values(samples, typed, metadata.by_number.bounds, max(count, _LEAST), run.options.seed)
    return Cells(
        value_units=tuple(value_samples),
        absent=tuple(map(tuple, absent)),
        queried=tuple(_queried(metadata, log)),
        parts=drawn.parts,
    )


def _queried(metadata: ColumnMetadata, log: QueryLog | None) -> list[tuple[bytes, float]]:
    """The literals of the queries, with their shares. Literals that the column can't hold are left out."""
    asked = next((c for c in log.columns if c.column == metadata.column), None) if log is not None else None
    counts: list[tuple[bytes, int]] = []
    for text, count in asked.literals if asked is not None else ():
        try:
            literal = parse(text, metadata.typed)
        except LiteralError:
            continue
        counts += [(encoded, count) for encoded in literal.encodings[:1]]
    total = sum(count for _, count in counts)
    return [(value, count / total) for value, count in counts]


_LEAST_SHARE: Final = 0.8
"""Filters that would keep more than this share of their bytes aren't reported."""


def _too_large_engine_filters(facts: Iterable[EngineFilterFacts], scale: float) -> tuple[EngineFilterAdvice, ...]:
    """The filters that are larger than the rows of the largest file need, by kind and column.

    A filter's bytes are proportional to the values that it is sized for. `scale`: all files by those with facts.
    """
    groups: dict[tuple[str, str, str], list[tuple[int, int, int]]] = {}
    for filter_ in facts:
        if filter_.problem is None and filter_.sized_for and filter_.length and filter_.values and filter_.setting:
            key = filter_.kind, filter_.column, filter_.setting
            groups.setdefault(key, []).append((filter_.length, filter_.sized_for, filter_.values))
    advice = []
    for (kind, column, setting), sizes in groups.items():
        most = max(values for *_, values in sizes)
        now, right = sum(size for size, *_ in sizes), sum(round(size * most / sized) for size, sized, _ in sizes)
        if right <= _LEAST_SHARE * now:
            advice.append(
                EngineFilterAdvice(
                    kind=kind,
                    column=column,
                    files=round(scale * len(sizes)),
                    bytes=round(scale * now),
                    bytes_right=round(scale * right),
                    values=most,
                    setting=f"{setting}={most}",
                )
            )
    return tuple(advice)
