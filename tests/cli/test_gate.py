"""bloom validate as a gate: policies, formats, samples, baselines, rules explained; what it says of misuse."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import datasets
from support.cli import Bloom

import bloomcli
from bloomcli.rules import RULES


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six sound files with filters on id, below the working folder."""
    monkeypatch.chdir(tmp_path)
    root = datasets.plain(tmp_path / "lake", 6)
    for path in root.rglob("*.parquet"):
        bloomcli.add(path, ["id"], in_place=True)
    return Path("lake")


# --- the policy


def test_init_writes_a_policy_that_the_dataset_passes_and_never_over_one(bloom: Bloom, lake: Path) -> None:
    made = bloom("validate", lake, "--init")
    assert (made.code, made.err) == (0, "")
    assert made.out == "wrote bloom.toml; now: bloom validate lake\n"
    assert 'require = [\n  "id"' in Path("bloom.toml").read_text()
    passed = bloom("validate", lake)
    assert passed.code == 0
    assert "bloom.toml" in passed.out
    again = bloom("validate", lake, "--init")
    assert again.code == 2
    assert "the policy exists already" in again.err
    assert bloom("validate", lake, "--init", "--policy", "other.toml").code == 0
    assert Path("other.toml").read_bytes() == Path("bloom.toml").read_bytes()


def test_init_tells_what_it_left_out_and_makes_nothing_of_nothing(bloom: Bloom, lake: Path) -> None:
    Path("lake/cut.parquet").write_bytes(b"PAR1 cut")
    made = bloom("validate", lake, "--init")
    assert made.code == 0
    assert "left out: lake/cut.parquet: " in made.err
    none = bloom("validate", "lake/cut.parquet", "--init", "--policy", "none.toml")
    assert none.code == 3
    assert not Path("none.toml").exists()


def test_the_nearest_policy_is_found_and_no_policy_and_another_win(bloom: Bloom, lake: Path) -> None:
    Path("bloom.toml").write_text('require = ["name"]\n')
    assert bloom("validate", lake).code == 1
    assert bloom("validate", lake, "--no-policy").code == 0
    Path("pyproject.toml").write_text('[tool.bloom]\nrequire = ["id"]\n')
    assert bloom("validate", lake, "--policy", "pyproject.toml").code == 0
    Path("bloom.toml").unlink()
    found = bloom("validate", lake)
    assert found.code == 0
    assert "pyproject.toml" in found.out


def test_a_faulty_policy_is_a_usage_error_with_its_line(bloom: Bloom, lake: Path) -> None:
    Path("bloom.toml").write_text('require = ["id"]\n\nmax-fbb = 0.01\n')
    faulty = bloom("validate", lake)
    assert faulty.code == 2
    assert "bloom.toml:3" in faulty.err
    assert "max-fpp" in faulty.err, "a near name is offered"
    missing = bloom("validate", lake, "--policy", "none.toml")
    assert missing.code in {2, 3}
    assert "none.toml" in missing.err


# --- formats


def test_every_format_says_what_was_found_and_exits_alike(bloom: Bloom, lake: Path) -> None:
    asked = ("validate", lake, "--no-policy", "--require", "name")
    text = bloom(*asked)
    assert text.out.startswith("error filter-required")
    assert bloom(*asked, "--max-per-rule", "2").out.count("lake/part=") == 2
    document = bloom(*asked, "--format", "json").json
    assert document["schema"] == "bloom/validate/1"
    assert [f["id"] for f in document["findings"]] == ["filter-required"] * 6
    assert {f["path"] for f in document["findings"]} == {str(p) for p in lake.rglob("*.parquet")}
    junit = ET.fromstring(bloom(*asked, "--format", "junit").out)
    assert junit.attrib["failures"] == "6"
    sarif = bloom(*asked, "--format", "sarif").json
    assert sarif["version"] == "2.1.0"
    assert len(sarif["runs"][0]["results"]) == 6
    github = bloom(*asked, "--format", "github").out
    assert github.count("::error ") >= 6
    for form in ("text", "json", "junit", "sarif", "github"):
        assert bloom(*asked, "--format", form).code == 1


def test_reports_go_to_files_beside_the_output(bloom: Bloom, lake: Path) -> None:
    done = bloom(
        "validate", lake, "--no-policy", "--require", "name", "--format", "github",
        "--report", "sarif=out.sarif", "--report", "junit=out.xml", "--report", "text=out.txt",
        "--report", "json=out.json", "--report", "github=out.github",
    )  # fmt: skip
    assert done.code == 1
    assert json.loads(Path("out.sarif").read_text())["version"] == "2.1.0"
    assert ET.parse("out.xml").getroot().tag == "testsuites"
    assert Path("out.txt").read_text().startswith("error filter-required")
    assert json.loads(Path("out.json").read_text())["errors"] == 6
    assert Path("out.github").read_text() == done.out


def test_a_file_that_cant_be_read_is_in_machine_reports_and_an_error_to_a_person(bloom: Bloom, lake: Path) -> None:
    cut = lake / "cut.parquet"
    cut.write_bytes(b"PAR1 cut")
    told = bloom("validate", "--no-policy", cut)
    assert (told.code, told.out) == (3, "")
    assert "cut.parquet" in told.err
    for form in ("junit", "sarif", "github"):
        said = bloom("validate", "--no-policy", cut, "--format", form)
        assert said.code == 3
        assert "cut.parquet" in said.out
    saved = bloom("validate", "--no-policy", cut, "--report", "junit=out.xml")
    assert saved.code == 3
    assert ET.parse("out.xml").getroot().attrib["errors"] == "1"


def test_findings_that_are_off_or_known_dont_fail_and_are_told(bloom: Bloom, lake: Path) -> None:
    Path("bloom.toml").write_text('require = ["name"]\n\n[off]\nfilter-required = "written next week"\n')
    off = bloom("validate", lake)
    assert off.code == 0
    assert "written next week" in off.out
    first = bloom("validate", lake, "--no-policy", "-r", "name", "--baseline", "known.json", "--update-baseline")
    assert first.code == 0
    known = bloom("validate", lake, "--no-policy", "-r", "name", "--baseline", "known.json")
    assert known.code == 0
    assert "known.json" in known.out


def test_a_partial_look_never_reads_as_a_clean_bill(bloom: Bloom, lake: Path) -> None:
    whole = bloom("validate", lake, "--no-policy", "--deep")
    assert whole.code == 0
    last = whole.out.rstrip().splitlines()[-1]
    for part in (("--sample", "50%"), ("--sample", "1"), ("--deep", "--sample-row-groups", "1")):
        said = bloom("validate", lake, "--no-policy", *part, "--seed", "4")
        assert said.code == 0
        assert said.out.rstrip().splitlines()[-1] != last
        assert "not looked at" in said.out
        assert "seed 4" in said.out
        github = bloom("validate", lake, "--no-policy", *part, "--format", "github").out
        assert "not looked at" in github


# --- rules


def test_rules_are_listed_and_explained_without_files(bloom: Bloom) -> None:
    listed = bloom("validate", "--explain")
    assert listed.code == 0
    assert all(rule in listed.out for rule in RULES)
    page = bloom("validate", "--explain", "filter-stray-bits")
    assert page.code == 0
    assert page.out.startswith("# filter-stray-bits\n")
    assert "## How to mend it" in page.out
    unknown = bloom("validate", "--explain", "filter-stray")
    assert unknown.code == 2
    assert "filter-stray-bits" in unknown.err


# --- readers


def test_readers_and_the_tables_schema_find_what_would_be_probed_wrongly(bloom: Bloom, lake: Path) -> None:
    narrow = Path("narrow.parquet")
    pq.write_table(pa.table({"id": pa.array(range(100), pa.int32())}), narrow)
    bloomcli.add(narrow, ["id"], in_place=True)
    Path("table.sql").write_text("id BIGINT")
    asked = ("validate", "--no-policy", narrow, "--table-schema", "table.sql")
    found = bloom(*asked, "--readers", "trino")
    assert found.code == 1
    assert "reader-widened" in found.out
    assert bloom(*asked, "--readers", "spark").code == 0
    assert bloom("validate", "--no-policy", narrow, "--readers", "trino").code == 0
    wrong = bloom(*asked, "--readers", "trinoo")
    assert wrong.code == 2
    assert "trino" in wrong.err


def test_a_negative_zero_is_proven_by_deep_and_only_hinted_at_without(bloom: Bloom, tmp_path: Path) -> None:
    lone, both = tmp_path / "lone.parquet", tmp_path / "both.parquet"
    options = {"x": {"ndv": 100, "fpp": 0.01}}
    pq.write_table(pa.table({"x": [-0.0, 1.5, -2.5]}), lone, bloom_filter_options=options)
    pq.write_table(pa.table({"x": [-0.0, 0.0, -2.5]}), both, bloom_filter_options=options)
    for path, shallow, deep in ((lone, 0, 1), (both, 0, 0)):
        assert bloom("validate", "--no-policy", path, "--readers", "spark").code == shallow
        assert bloom("validate", "--no-policy", path, "--readers", "spark", "--deep").code == deep
    hinted = bloom("validate", "--no-policy", lone, "--readers", "spark").out
    assert hinted.startswith("note reader-negative-zero")
    mended = tmp_path / "mended.parquet"
    bloomcli.add(lone, ["x"], output=mended, replace=True)
    assert bloom("validate", "--no-policy", mended, "--readers", "spark", "--deep").code == 0


# --- misuse


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sample", "five"], "is no sample"),
        (["--sample-row-groups", "5%"], "--deep"),
        (["--update-baseline"], "--baseline FILE"),
        (["--baseline", "none.json"], "--update-baseline"),
        (["--report", "pdf=x"], "FORM=FILE"),
        (["--report", "sarif"], "FORM=FILE"),
        (["--report", "junit=no/folder/out.xml"], "make the folder first"),
        (["--max-oversize", "0.5"], "0.5"),
        (["--table-schema", "none.sql"], "none.sql"),
        (["--readers", "spork"], "spark"),
    ],
)
def test_misuse_is_told_with_what_to_do(bloom: Bloom, lake: Path, arguments: list[str], said: str) -> None:
    result = bloom("validate", lake, "--no-policy", *arguments)
    assert result.code in {2, 3}
    assert result.out == ""
    assert said in result.err
    assert "Traceback" not in result.err
