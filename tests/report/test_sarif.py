"""SARIF: valid by the published schema and another program's object model, and read as readers do."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator
from support.examples import examples
from support.gates import FOUND, LAKE, MISSING, ODD_SIZE, OFF, PARTIAL, SOUND, TEXT, gate, reports

import bloomcli
from bloomcli.model.gate import GateReport
from bloomcli.report import sarif
from bloomcli.rules import RULES, page

SCHEMA = Path(__file__).parents[1] / "schemas" / "sarif-2.1.0-rtm.5.json"
SCHEMA_SHA256 = "2d99159ae54a3eea97f81781cff48780548657c35949f4b7f25e99a2ba4de4f8"


@pytest.fixture(scope="session")
def schema() -> Any:
    """The published schema, untouched."""
    text = SCHEMA.read_bytes()
    assert hashlib.sha256(text).hexdigest() == SCHEMA_SHA256
    return json.loads(text)


def written(report: GateReport, **options: Any) -> str:
    """The log's text."""
    stream = io.StringIO()
    sarif.write(report, stream, **options)
    return stream.getvalue()


def run(report: GateReport, **options: Any) -> Any:
    """The log's one run."""
    log = json.loads(written(report, **options))
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    return only


def result(report: GateReport) -> Any:
    """The one result of a run."""
    (only,) = run(report)["results"]
    return only


def faults(log: Any, schema: Any) -> list[str]:
    """The errors that the schema reports."""
    return [f"{e.json_path}: {e.message}" for e in Draft4Validator(schema).iter_errors(log)]


@pytest.mark.parametrize("report", [LAKE, PARTIAL, gate(), gate(rows=()), gate(deep=False)])
def test_logs_are_valid_by_the_published_schema(report: GateReport, schema: Any) -> None:
    assert faults(json.loads(written(report)), schema) == []


@given(report=reports())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(40), deadline=None)
def test_any_text_gives_a_valid_log(report: GateReport, schema: Any) -> None:
    assert faults(json.loads(written(report)), schema) == []


def test_the_schema_refuses_a_log_that_is_wrong(schema: Any) -> None:
    log = json.loads(written(LAKE))
    log["runs"][0]["results"][0]["level"] = "fatal"
    log["runs"][0]["result"] = []
    assert len(faults(log, schema)) == 2


# --- the tool and its rules


def test_every_rule_is_described_with_its_page_and_its_usual_level() -> None:
    driver = run(gate())["tool"]["driver"]
    assert driver["version"] == bloomcli.__version__
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    for rule in driver["rules"]:
        known = RULES[rule["id"]]
        assert rule["defaultConfiguration"]["level"] == known.severity.value
        assert rule["shortDescription"]["text"].lower() == f"{known.title}.".lower()
        assert 20 < len(rule["fullDescription"]["text"]) <= sarif.DESCRIPTION_MAX
        assert rule["help"]["markdown"].replace("{{", "{").replace("}}", "}") == page(rule["id"])
        assert rule["properties"]["tags"] == [known.group.value]


def test_the_full_description_is_the_pages_first_paragraph() -> None:
    assert sarif._first_paragraph("# value-missing\n\nA value is\nnot there.\n\nMore.") == "A value is not there."
    assert sarif._first_paragraph("# nothing but a title") == ""


def test_rules_that_were_not_checked_are_disabled_in_the_invocation() -> None:
    (invocation,) = run(gate(deep=False))["invocations"]
    overrides = invocation["ruleConfigurationOverrides"]
    deep = {"value-missing", "filter-stray-bits", "filter-not-checked", "page-checksum"}
    deep |= {"statistics-encodings", "statistics-not-checked", "sorting-columns", "size-statistics"}
    deep |= {"engine-filter-misses", "engine-filter-copy", "engine-filter-bounds"}
    assert {o["descriptor"]["id"] for o in overrides} == deep
    assert all(list(RULES)[o["descriptor"]["index"]] == o["descriptor"]["id"] for o in overrides)
    assert all(o["configuration"] == {"enabled": False} for o in overrides)
    assert "ruleConfigurationOverrides" not in run(gate())["invocations"][0]


def test_files_that_the_policy_excludes_are_a_notification() -> None:
    (invocation,) = run(gate(excluded=2))["invocations"]
    excluded = [n for n in invocation["toolExecutionNotifications"] if n["descriptor"]["id"] == "files-excluded"]
    assert [(n["level"], n["message"]["text"]) for n in excluded] == [("note", "2 files excluded by the policy")]
    assert run(gate(excluded=2))["properties"]["excluded"] == 2
    assert run(gate())["invocations"][0]["toolExecutionNotifications"] == []


# --- results


def test_an_orc_finding_names_its_stripe_and_a_finding_of_the_file_nothing() -> None:
    logical = result(gate(ODD_SIZE))["locations"][0]["logicalLocations"]
    assert [(place["kind"], place["name"]) for place in logical] == [
        ("stripe", "2"),
        ("row group", "0"),
        ("column", "id"),
    ]
    assert logical[-1]["fullyQualifiedName"] == "stripes[2].row_groups[0].columns[id]"
    whole = replace(MISSING, row_group=None, column=None, offset=None)
    location = result(gate(whole))["locations"][0]
    assert "logicalLocations" not in location
    assert "region" not in location["physicalLocation"]


def test_an_offset_before_the_file_is_no_region() -> None:
    got = result(gate(replace(MISSING, offset=-7)))
    assert "region" not in got["locations"][0]["physicalLocation"]
    assert "byte -7" in got["message"]["text"]


def test_names_make_no_placeholders_and_no_links() -> None:
    text = result(gate(replace(MISSING, column="{0} [x](s3://y)")))["message"]["text"]
    assert "{{0}}" in text
    assert "](" not in text


def fingerprint(**changes: Any) -> str:
    """The fingerprint that GitHub takes, of a changed finding."""
    got = result(gate(replace(MISSING, **changes)))["partialFingerprints"]
    assert set(got) == {"bloom/v1", "primaryLocationLineHash"}
    return str(got["primaryLocationLineHash"])


def test_fingerprints_outlive_a_rewrite_and_distinguish_places() -> None:
    same = fingerprint()
    assert fingerprint(offset=9, message="3 are missing", missing=(), hint=None) == same
    assert fingerprint(path=str(Path.cwd() / "lake" / "a.parquet")) == same
    others = [{"row_group": 4}, {"column": "id"}, {"stripe": 0}, {"path": "lake/b"}, {"id": "filter-boolean"}]
    assert len({same, *(fingerprint(**change) for change in others)}) == 6
    twice = run(gate(MISSING, MISSING))["results"]
    assert len({r["partialFingerprints"]["bloom/v1"] for r in twice}) == 2


# --- what was looked at


@pytest.mark.parametrize(
    ("report", "id_", "text"),
    [
        (PARTIAL, "partial-look", "not checked: 19 of 20 files"),
        (gate(deep=False), "values-not-looked-up", "not checked: missing values (--deep)"),
        (gate(rows=(replace(SOUND, filters=0, values_checked=0),)), "no-filters", "no filters to check"),
    ],
)
def test_what_wasnt_checked_is_a_notification(report: GateReport, id_: str, text: str) -> None:
    (note,) = run(report)["invocations"][0]["toolExecutionNotifications"]
    assert (note["descriptor"]["id"], note["message"]["text"]) == (id_, text)


# --- URIs


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b.parquet", ("a/b.parquet", True)),
        ("./a/../b", ("b", True)),
        ("/work/x y", ("x%20y", True)),
        ("dt=2024-01-01/100%.parquet", ("dt=2024-01-01/100%25.parquet", True)),
        ("a:b#c?d", ("a%3Ab%23c%3Fd", True)),
        ("ä", ("%C3%A4", True)),
        ("\udcff", ("%FF", True)),
        ("\ud800", ("%ED%A0%80", True)),
        ("../x", ("file:///x", False)),
        ("/workshop/x", ("file:///workshop/x", False)),
        ("/else where/x", ("file:///else%20where/x", False)),
        ("file:///work/a b", ("a%20b", True)),
        ("file:///work/a%20b", ("a%2520b", True)),  # as Hadoop has it: what follows the scheme is the name
        ("file:///else/a b", ("file:///else/a%20b", False)),
        ("s3://bucket/a b/100%/c%20d#e", ("s3://bucket/a%20b/100%25/c%20d%23e", False)),
        ("hdfs://host:9000/x", ("hdfs://host:9000/x", False)),
    ],
)
def test_paths_as_uri_references(path: str, expected: tuple[str, bool]) -> None:
    assert sarif.uri_reference(path, "/work") == expected


def test_below_the_root_folder_every_path_is_relative() -> None:
    assert sarif.uri_reference("/a/b", "/") == ("a/b", True)


@given(st.text(min_size=1, max_size=20).filter(lambda name: "/" not in name and name not in {".", ".."}))
def test_any_local_name_comes_back_from_its_uri(name: str) -> None:
    for path, folder in ((name, "/work"), (f"/else/{name}", "/work")):
        uri, relative = sarif.uri_reference(path, folder)
        assert uri.isascii()
        assert relative == (path == name)
        parts = urlsplit(uri)
        assert (parts.query, parts.fragment, parts.netloc) == ("", "", "")
        assert parts.scheme == ("" if relative else "file")
        assert unquote_to_bytes(parts.path) == path.encode()


@given(TEXT)
def test_any_path_has_a_uri(path: str) -> None:
    assert sarif.uri_reference(path, "/work")[0].isascii()


# --- size


def test_beyond_what_github_takes_the_rest_is_left_out_and_counted() -> None:
    findings = [replace(OFF, row_group=n) for n in range(5)] + [replace(MISSING, row_group=n) for n in range(5)]
    short = run(gate(*findings), limit=6)
    assert [r["ruleId"] for r in short["results"]] == ["value-missing"] * 5 + ["filter-fpp"]
    (note,) = short["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"] == "4 of 10 findings are not in this file; --format json has all"
    assert len(run(gate(*findings), limit=0)["results"]) == 10
    assert len(run(gate(*findings), limit=10)["results"]) == 10
    assert run(gate(*findings))["invocations"][0]["toolExecutionNotifications"] == []


def test_results_are_written_as_they_come_not_held_together() -> None:
    pieces: list[str] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            pieces.append(text)
            return len(text)

    sarif.write(gate(*(replace(MISSING, row_group=n) for n in range(3_000)), rows=(FOUND,)), Stream())
    head, *results, _ = pieces
    assert len(results) == 3_000
    assert max(map(len, results)) < 1_000
    assert MISSING.message not in head
    assert len(json.loads("".join(pieces))["runs"][0]["results"]) == 3_000
    assert sarif.RESULTS_MAX == 25_000
