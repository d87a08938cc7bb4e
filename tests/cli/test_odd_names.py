"""Names of columns that a terminal, a CI log or a parser of CSV would act on, in every form of every command."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import mosaicfiles, orcfiles
from support.cli import Bloom

NAMES: Final = (
    "a\n::error::x",
    "::error::y",
    "  ::stop-commands::z",
    "b\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "c\x9b2J\r\u2028d",
    "e##[error]f",
    r"a\n::error::x",
)
ACTED_ON: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]|##\\[")
FORMATS: Final = ("parquet", "orc", "mosaic")


@pytest.fixture(scope="module", params=FORMATS)
def odd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a filter on every column; one of them is damaged where a format shows that by name."""
    import bloomcli

    folder = tmp_path_factory.mktemp("odd")
    table = pa.table({name: pa.array([1, 2, None] * 10, pa.int64()) for name in NAMES})
    plain = folder / "plain"
    if request.param == "parquet":
        pq.write_table(table, plain)
    elif request.param == "orc":
        orcfiles.write(plain, table)
    else:
        mosaicfiles.write(plain, table)
    path = folder / f"odd.{request.param}"
    bloomcli.add(plain, ["*"], output=path, mosaic_draft=True)
    return path


def safe(text: str, commands: int = 0) -> None:
    """Nothing in the text is acted on, but for so many commands of our own, each a line."""
    assert not ACTED_ON.findall(text)
    started = [line for line in text.split("\n") if line.lstrip().startswith("::")]
    assert len(started) == commands
    assert all(re.match(r"::(error|warning|notice) (file=[^:]*,)?title=[^:]+::", line) for line in started)


@pytest.mark.parametrize("form", ["text", "csv"])
@pytest.mark.parametrize("args", [["inspect"], ["inspect", "--all"]], ids=" ".join)
def test_inspect_prints_no_name_raw(bloom: Bloom, odd: Path, form: str, args: list[str]) -> None:
    result = bloom(*args, odd, "--format", form)
    assert (result.code, result.err) == (0, "")
    safe(result.out)
    assert r"a\n::error::x" in result.out
    assert r"b\x1b[31mred" in result.out


def test_csv_has_a_line_per_filter_and_distinguishes_all_names(bloom: Bloom, odd: Path) -> None:
    out = bloom("inspect", odd, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(out.splitlines()) == len(rows) + 1 == len(NAMES) + 1
    assert len({row["column"] for row in rows}) == len(NAMES)
    exact = [f["column"] for f in bloom("inspect", odd, "--format", "json").json["filters"]]
    assert sorted(exact) == sorted(NAMES)
    assert {r"a\n::error::x", r"a\\n::error::x"} <= {row["column"] for row in rows}


def test_a_path_that_starts_a_command_is_quoted(
    bloom: Bloom, odd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("::error::p").write_bytes(odd.read_bytes())
    Path("::warning::q").write_bytes(b"neither")
    for args in (["::error::p"], ["::error::p", "::warning::q"]):
        out = bloom("inspect", *args, "--format", "csv").out
        safe(out)
        assert next(csv.DictReader(io.StringIO(out)))["path"] == "::error::p"
        safe(bloom("inspect", *args).out)


@pytest.mark.parametrize("form", ["text", "github", "junit"])
def test_validate_prints_no_name_raw(bloom: Bloom, odd: Path, tmp_path: Path, form: str) -> None:
    other = tmp_path / "other"
    pq.write_table(pa.table({name: [1, 2, 3] * 10 for name in NAMES}), other)  # no filter: a finding a name
    for path in (odd, other):
        result = bloom("validate", path, "--require", "*", "--deep", "--max-fpp", "1e-30", "--format", form)
        assert (result.code, result.err) == (1, "")
        ours = result.out.count("\n") if form == "github" else 0
        safe(result.out, ours)
        assert "::error::x" in result.out.replace("%3A", ":")
        if form == "junit":
            ET.fromstring(result.out)


def test_the_other_commands_print_no_name_raw(bloom: Bloom, odd: Path, tmp_path: Path) -> None:
    draft = ["--mosaic-draft"] if odd.suffix == ".mosaic" else []
    for name in NAMES:
        glob = re.sub(r"([*?\[\\])", r"[\1]", name).replace(",", r"\,")
        column = ["-c", glob.strip()] if name == name.strip() else ["-c", "  ::stop*"]
        calls = [
            ["probe", odd, "--column", name, "3", "--explain"],
            ["probe", odd, "--column", name, "x\n::error::v"],
            ["dump", odd, "--column", name, "--format", "hex"],
            ["add", odd, *column, "-o", tmp_path / "out", "--dry-run", *draft],
            ["add", odd, *column, "-o", tmp_path / "out", "--overwrite", "--replace", *draft],
            ["remove", odd, *column, "-o", tmp_path / "out", "--overwrite"],
            ["inspect", odd, "--columns", name + "?"],
        ]
        for args in calls:
            result = bloom(*args)
            assert result.code in {0, 1, 2}, (args, result)
            safe(result.out)
            safe(result.err)


def test_completion_offers_no_name_that_a_terminal_acts_on(
    odd: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from bloomcli.cli import run

    monkeypatch.setenv("_BLOOM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"bloom inspect {odd} --columns ")
    monkeypatch.setenv("COMP_CWORD", "4")
    with pytest.raises(SystemExit):
        run([])
    out = capfd.readouterr().out
    assert "e##[error]f" in out
    assert not re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", out)
    assert "\n::error::x" not in out
