"""Baselines: their findings are known even if files moved, other findings are new, and outdated entries are
dropped."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bloomcli.errors import BloomError, UnreadableError, UsageError
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding
from bloomcli.validation import baseline
from bloomcli.validation.baseline import Baseline, Entry


def finding(path: str, id_: str = "filter-fpp", **rest: object) -> Finding:
    kept = {"severity": Severity.ERROR, "message": "m", "column": "id", "row_group": 1, "offset": 9} | rest
    return Finding(id=id_, path=path, **kept)  # type: ignore[arg-type]


def saved(folder: Path, *findings: Finding) -> Baseline:
    """A baseline of findings, written and read again."""
    made = Baseline(path=str(folder / "known.json")).updated(findings, ())
    Path(made.path).write_text(baseline.text(made))
    again = baseline.load(made.path)
    assert again == made
    return again


def test_a_finding_is_known_wherever_the_run_starts_and_regardless_of_its_bytes_and_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = saved(tmp_path, finding(str(tmp_path / "a" / "b.parquet")))
    moved = finding(str(tmp_path / "a" / "b.parquet"), offset=77, message="other words")
    monkeypatch.chdir(tmp_path / "..")
    relative = replace(moved, path=os.path.relpath(tmp_path / "a" / "b.parquet"))
    uri = replace(moved, path=(tmp_path / "a" / "b.parquet").as_uri())
    assert [f.known for f in known.marked([moved, relative, uri])] == [True, True, True]
    assert json.loads(baseline.text(known))["findings"] == [
        {"id": "filter-fpp", "path": "a/b.parquet", "column": "id", "row_group": 1}
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"id_": "filter-boolean"},
        {"column": "name"},
        {"column": None},
        {"row_group": 2},
        {"row_group": None},
        {"stripe": 0},
    ],
)
def test_a_finding_of_another_rule_or_place_is_new(tmp_path: Path, other: dict[str, object]) -> None:
    known = saved(tmp_path, finding(str(tmp_path / "a.parquet")))
    assert not known.marked([finding(str(tmp_path / "a.parquet"), **other)])[0].known  # type: ignore[arg-type]
    assert not known.marked([finding(str(tmp_path / "b.parquet"))])[0].known


def test_notes_and_rules_switched_off_need_no_baseline(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    known = saved(tmp_path, finding(path, severity=Severity.NOTE), finding(path, off="a reason"))
    assert known.entries == frozenset()


def test_uris_are_kept_unchanged(tmp_path: Path) -> None:
    known = saved(tmp_path, finding("s3://lake/a.parquet"))
    assert known.marked([finding("s3://lake/a.parquet")])[0].known


@pytest.mark.parametrize("folder", ["s3://lake", "s3a://lake", "s3://other"])
def test_all_schemes_of_a_store_lead_to_the_same_entry(folder: str) -> None:
    known = Baseline(path=f"{folder}/known.json").updated([finding("s3a://lake/a/b.parquet")], ())
    again = [finding(f"{scheme}://lake/a/b.parquet") for scheme in ("s3", "s3a", "s3n")]
    assert all(f.known for f in known.marked(again))
    assert all(len(known.updated([f], ()).entries) == 1 for f in again)
    assert not known.marked([finding("gs://lake/a/b.parquet")])[0].known


def test_what_was_checked_and_not_found_again_is_gone_and_the_rest_is_kept(tmp_path: Path) -> None:
    a, b = (str(tmp_path / name) for name in ("a.parquet", "b.parquet"))
    deep = finding(a, "value-missing")
    known = saved(tmp_path, finding(a), deep, finding(b))
    gone = known.gone([], [a], lambda path, entry: (path, entry.id) == (a, "filter-fpp"))
    assert {(e.id, e.path) for e in gone} == {("filter-fpp", "a.parquet")}, "values weren't looked up, b wasn't read"
    assert {e.id for e in known.gone([], [a], everything)} == {"filter-fpp", "value-missing"}
    assert known.gone([finding(a, offset=1), deep], [a, b], everything) == {known.entry(finding(b))}
    updated = known.updated([finding(a, row_group=5)], gone)
    assert {(e.id, e.path, e.row_group) for e in updated.entries} == {
        ("filter-fpp", "a.parquet", 5),
        ("value-missing", "a.parquet", 1),
        ("filter-fpp", "b.parquet", 1),
    }


def everything(path: str, entry: Entry) -> bool:
    """Whether a rule was checked, for rules that are always checked."""
    del path, entry
    return True


def lacking(path: str, places: str | None) -> Finding:
    """A finding about a whole column."""
    return finding(path, "filter-required", row_group=None, places=places)


@pytest.mark.parametrize(
    ("accepted", "today", "known"),
    [
        ("0,2", "2", True),
        ("0,2", "0,2", True),
        ("0", "0-2", False),
        ("0", "2", False),
        ("0-9", "3-12", False),
        ("0-9,12", "1-2,5,12", True),
        ("0:0-3 2:1", "2:1", True),
        ("0:0-3 2:1", "1:1", False),
        ("0-3", "0:0", False),
        (None, "0", False),
        ("0", None, False),
        (None, None, True),
    ],
)
def test_a_finding_about_a_column_is_known_where_it_has_no_other_row_groups(
    tmp_path: Path, accepted: str | None, today: str | None, known: bool
) -> None:
    path = str(tmp_path / "a.parquet")
    one = saved(tmp_path, lacking(path, accepted))
    assert one.marked([lacking(path, today)])[0].known is known
    if (accepted is None) is (today is None):
        assert one.gone([lacking(path, today)], [path], everything) == set()


def test_an_update_keeps_todays_row_groups_and_those_that_were_not_read(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    known = saved(tmp_path, lacking(path, "0,2,7"))
    (narrowed,) = known.updated([lacking(path, "2-3")], ()).entries
    (widened,) = known.updated([lacking(path, "2-3")], (), in_part=True).entries
    assert (narrowed.places, widened.places) == ("2-3", "0,2-3,7")


def test_links_to_folders_lead_to_the_same_file_and_one_entry(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, link = (str(tmp_path / name / "a.parquet") for name in ("real", "link"))
    known = saved(tmp_path / "real", finding(real))
    assert known.marked([finding(link)])[0].known
    assert {e.path for e in known.updated([finding(link)], ()).entries} == {"a.parquet"}
    by_link = saved(tmp_path / "link", finding(real))
    assert {e.path for e in by_link.entries} == {"a.parquet"}
    above = saved(tmp_path, finding(link))
    assert {e.path for e in above.entries} == {"link/a.parquet"}, "as it was named: it may lead elsewhere tomorrow"
    assert above.marked([finding(real)])[0].known
    assert above.gone([], [real], everything) == above.entries
    assert len(above.updated([finding(real)], ()).entries) == 1


def test_the_text_is_an_entry_per_line_in_order(tmp_path: Path) -> None:
    found = [finding(str(tmp_path / f"{n}.parquet"), row_group=r) for n in "ba" for r in (10, None, 2)]
    lines = baseline.text(saved(tmp_path, *found)).splitlines()
    entries = [json.loads(text.strip().rstrip(",")) for text in lines if '"id"' in text]
    assert [(e["path"], e.get("row_group")) for e in entries] == [
        (f"{n}.parquet", r) for n in "ab" for r in (None, 2, 10)
    ]
    assert json.loads(baseline.text(Baseline(path="x")))["findings"] == []


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "isn't JSON"),
        ("[" * 100_000, "isn't JSON"),
        ("[]", "isn't a baseline"),
        ('{"schema": "bloom/validate/1", "findings": []}', "isn't a baseline"),
        ('{"schema": "bloom/baseline/1", "findings": []}', "an older version of bloom"),
        ('{"schema": "bloom/baseline/2"}', "no list of findings"),
        ('{"schema": "bloom/baseline/2", "findings": [1]}', r"not an entry.*findings\[0\]"),
        ('{"schema": "bloom/baseline/2", "findings": [{"id": "nothing", "path": "a"}]}', "not an entry"),
        ('{"schema": "bloom/baseline/2", "findings": [{"id": [], "path": "a"}]}', "not an entry"),
        ('{"schema": "bloom/baseline/2", "findings": [{"id": "filter-fpp"}]}', "not an entry"),
        ('{"schema": "bloom/baseline/2", "findings": [{"id": "filter-fpp", "path": "a", "x": 1}]}', "not an entry"),
        ('{"schema": "bloom/baseline/2", "findings": [{"id": "filter-fpp", "path": "a", "row_group": -1}]}', "entry"),
        ('{"schema": "bloom/baseline/2", "findings": [{"id": "filter-fpp", "path": "a", "stripe": "1"}]}', "entry"),
        ('{"schema": "bloom/baseline/2", "findings": [{"id": "filter-fpp", "path": "a", "column": 1}]}', "entry"),
        *(
            (
                f'{{"schema": "bloom/baseline/2", "findings": [{{"id": "filter-required", "path": "a", {rest}}}]}}',
                "entry",
            )
            for rest in (
                '"places": ""',
                '"places": "2-1"',
                '"places": "0,"',
                '"places": "0: 1"',
                '"places": 3',
                '"places": "0", "row_group": 0',
                '"places": "0", "stripe": 0',
                f'"places": "{"9" * 5000}"',
            )
        ),
    ],
)
def test_what_is_no_baseline_is_said_to_be_none(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=match) as caught:
        baseline.load(path)
    assert caught.value.path == str(path)
    assert caught.value.hint


def test_a_baseline_that_cant_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such baseline") as caught:
        baseline.load(tmp_path / "none.json")
    assert "--update-baseline" in str(caught.value.hint)
    with pytest.raises(UnreadableError, match="can't be read"):
        baseline.load(tmp_path)
    (tmp_path / "raw").write_bytes(b"\xff\xfe")
    with pytest.raises(BloomError, match="UTF-8"):
        baseline.load(tmp_path / "raw")
