"""The gate's steps: each gives a new object, none fills an earlier one in, and only the last one writes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from support import datasets

from bloomcli.commands.options import ValidateOptions
from bloomcli.datasets.engine import choose_engine
from bloomcli.errors import UsageError
from bloomcli.validation import baseline, gate
from bloomcli.validation.gate import GateRequest, GateResults


def run(request: GateRequest, *paths: Path) -> GateResults:
    """The results of a request."""
    engine = choose_engine(jobs=1)
    named = [str(path) for path in paths]
    chosen = request.choose(engine.find(named, request.options), named)
    return gate.results(request, chosen, engine.run(engine.plan(chosen.files, request.options)))


def test_a_report_writes_no_baseline_and_is_the_same_each_time(tmp_path: Path) -> None:
    lake, known = datasets.plain(tmp_path / "lake", 3), tmp_path / "known.json"
    request = gate.request(ValidateOptions(require="id", baseline=known, update_baseline=True))
    results = run(request, lake)
    reports = [results.report() for _ in range(2)]
    assert reports[0] == reports[1]
    assert reports[0].errors == 3
    assert not known.exists()
    new = results.new_baseline()
    assert new is not None
    assert not known.exists(), "a new baseline isn't written until it is saved"
    report = results.report(new)
    assert (report.known, report.errors, report.gone, report.ok) == (3, 0, 0, True)
    baseline.save(new)
    assert baseline.load(known) == new
    again = run(gate.request(ValidateOptions(require="id", baseline=known)), lake)
    assert again.new_baseline() is None
    assert again.report().known == 3


def test_a_request_serves_several_runs_and_stays_as_it_is(tmp_path: Path) -> None:
    small, large = datasets.plain(tmp_path / "small", 2), datasets.plain(tmp_path / "large", 9)
    request = gate.request(ValidateOptions(sample="50%"))
    before = dataclasses.replace(request)
    found = [run(request, path).report() for path in (small, large, small)]
    assert [report.files_found for report in found] == [2, 9, 2]
    assert [len(report.rows) for report in found] == [1, 5, 1]
    assert request == before
    for field in dataclasses.fields(request):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(request, field.name, None)
        assert not isinstance(getattr(request, field.name), list | dict | set), "nothing in it can be filled in later"


def test_where_nothing_was_checked_there_are_no_results_to_make_a_baseline_of(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no file of any format\n" * 9)
    known = tmp_path / "known.json"
    request = gate.request(ValidateOptions(baseline=known, update_baseline=True))
    with pytest.raises(UsageError, match="nothing was checked"):
        run(request, tmp_path)
    assert not known.exists()
