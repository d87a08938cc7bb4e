"""A trial of limited time: which lookups come first, which readers run, and what it says before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.trials import orders

from bloomcli.commands.options import TrialOptions
from bloomcli.errors import BloomError
from bloomcli.trials import trial as trials
from bloomcli.trials.process import Job, Outcome, TrialColumn, TrialFile, messages
from bloomcli.trials.readers import named

pytestmark = pytest.mark.interop


def job(path: Path, seconds: float | None) -> Job:
    """Lookups of three present and three absent ids by PyArrow."""
    import pyarrow as pa

    from bloomcli.formats.registry import open_file
    from bloomcli.storage.registry import open_source
    from bloomcli.trials.values import LookupValue

    with open_source(path) as source:
        column = open_file(source).leaves[0]
    values = [LookupValue(str(number), pa.scalar(number), int(number < 3)) for number in range(6)]
    file = TrialFile(
        path=str(path),
        format="parquet",
        row_groups=10,
        with_filters=str(path),
        without_filters=str(path),
        comparison="added",
        columns=(TrialColumn(column=column, names=("id",), values=tuple(values)),),
    )
    return Job(reader="pyarrow", files=(file,), runs=0, seconds=seconds)


def test_present_and_absent_values_take_turns(tmp_path: Path) -> None:
    path = orders(tmp_path / "f.parquet", 1000)
    assert [one.value.text for one in job(path, None).order()] == list("031425")


def test_without_time_a_reader_looks_one_present_and_one_absent_value_up(tmp_path: Path) -> None:
    path = orders(tmp_path / "f.parquet", 1000)
    assert [m.trial for m in messages(job(path, 0.0)) if isinstance(m, Outcome)] == [0, 1]
    assert len([m for m in messages(job(path, None)) if isinstance(m, Outcome)]) == 6


def test_it_says_what_it_does_and_how_long_before_it_begins(tmp_path: Path) -> None:
    path = orders(tmp_path / "f.parquet", 1000)
    said: list[str] = []
    trials.run(
        [str(path)],
        TrialOptions(columns=["id"], readers=["pyarrow"], runs=0),
        on_plan=said.append,
        on_step=said.append,
    )
    assert said[0] == "PyArrow: lookups for about 50 s in all; --values N looks up N, however long it takes"
    assert said[1].startswith("chooses values of ")
    assert "PyArrow starts" in said


@pytest.mark.parametrize("files", [["f.parquet"], ["f.parquet", "g.parquet"], ["gone.parquet"]])
def test_it_says_nothing_before_it_knows_that_a_file_has_the_columns(tmp_path: Path, files: list[str]) -> None:
    for name in files:
        if name != "gone.parquet":
            orders(tmp_path / name, 10)
    said: list[str] = []
    with pytest.raises(BloomError, match=r"no column 'nope'|no such file"):
        trials.run(
            [str(tmp_path / name) for name in files],
            TrialOptions(columns=["nope"], readers=["pyarrow"]),
            on_plan=said.append,
            on_step=said.append,
        )
    assert not said


def test_readers_that_never_look_run_only_if_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = orders(tmp_path / "f.parquet", 1000)
    monkeypatch.setattr(trials, "named", lambda names: named(names) if names else named(["duckdb", "pyarrow"]))
    report = trials.run([str(path)], TrialOptions(columns=["id"], values=1, runs=0))
    assert {reader.reader: reader.status for reader in report.readers} == {"duckdb": "equal", "pyarrow": "not-run"}
    assert report.readers[1].reason == "never looks at filters; --readers names it"
