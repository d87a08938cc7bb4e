"""Files of unknown versions are refused by everything that reads values; hints name commands that work."""

from __future__ import annotations

import re
import shlex
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyorc
import pytest
from support import orcfiles

import bloomcli
from bloomcli.cli import run
from bloomcli.errors import UnsupportedError


@pytest.fixture
def flags(tmp_path: Path) -> Path:
    """A file of ORC C++ with filters on a number and on a boolean, which `bloom add` refuses."""
    path = tmp_path / "flags.orc"
    with path.open("wb") as file:
        writer = pyorc.Writer(file, "struct<id:int,ok:boolean,word:string>", bloom_filter_columns=[1, 2, 3])
        for row in range(200):
            writer.write((row, row % 2 == 0, f"word{row % 5}"))
        writer.close()
    assert {fact.column for fact in bloomcli.inspect(path).filters} == {"id", "ok", "word"}
    return path


def unreleased(path: Path) -> Path:
    """The file, with the version of an unreleased format."""

    def edit(file: orcfiles.File) -> None:
        del file.postscript.version[:]
        file.postscript.version.extend([1, 9999])

    orcfiles.edited(path, path, edit)
    return path


@pytest.mark.parametrize("column", ["id", "ok", "word"])
def test_find_refuses_a_file_of_an_unknown_version_as_add_does(flags: Path, column: str) -> None:
    path = unreleased(flags)
    with pytest.raises(UnsupportedError, match=r"file version 1\.9999") as added:
        bloomcli.add(path, ["id"], replace=True, in_place=True)
    search = bloomcli.find(path, ["1"] if column != "ok" else ["true"], column=column)
    assert list(search) == []
    (error,) = search.report.errors
    assert (error.exit_code, error.error, error.hint) == (4, added.value.message, added.value.hint)


def test_everything_else_that_reads_values_or_changes_a_file_refuses_an_unknown_version_too(
    flags: Path, tmp_path: Path
) -> None:
    path = unreleased(flags)
    before = path.read_bytes()
    with pytest.raises(UnsupportedError, match=r"file version 1\.9999"):
        bloomcli.remove(path, in_place=True)
    with pytest.raises(UnsupportedError, match=r"file version 1\.9999"):
        bloomcli.validate(path, deep=True)
    built = bloomcli.index_build([path], output=tmp_path / "lake.bloomindex", columns=["id"])
    assert [error.exit_code for error in built.errors] == [4]
    assert path.read_bytes() == before


def test_a_hint_about_a_file_that_cannot_be_changed_names_no_command(flags: Path) -> None:
    findings = bloomcli.validate(unreleased(bad_writer(flags))).findings
    assert findings
    assert {f.hint for f in findings} == {
        "file version 1.9999; 0.11 and 0.12 are known: rewrite the file with a released writer"
    }


def bad_writer(path: Path) -> Path:
    """The file, with a software version whose filters readers must not use."""
    orcfiles.edited(path, path, lambda file: setattr(file.footer, "software_version", "1.6.5"))
    return path


def test_the_hint_about_a_filter_on_a_column_that_can_have_no_other_takes_it_out(
    flags: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    findings = {f.column: f for f in bloomcli.validate(bad_writer(flags)).findings}
    hint = findings["ok"].hint or ""
    (line,) = re.findall(r"`(bloom [^`]*)`", hint)
    assert line == f"bloom remove {flags} --columns ok --in-place"
    assert "the column gets no other: boolean: it has two values" in hint
    assert run(shlex.split(line)[1:]) == 0, capfd.readouterr().err
    assert "ok" not in {f.column for f in bloomcli.validate(flags).findings}
    (line,) = re.findall(r"`(bloom [^`]*)`", findings["id"].hint or "")
    assert run(shlex.split(line)[1:]) == 0, capfd.readouterr().err
    assert bloomcli.validate(flags, deep=True).findings == ()


@pytest.mark.parametrize("value", ["1", "12345678.5"])
def test_find_refuses_a_decimal_whose_type_says_nothing_for_every_value(tmp_path: Path, value: str) -> None:
    """Hive 0.11 wrote decimals without a precision, which hold any value."""
    path = orcfiles.write(tmp_path / "d.orc", {"d": pa.array([Decimal("1.5"), Decimal(2)], pa.decimal128(9, 1))})

    def edit(file: orcfiles.File) -> None:
        file.footer.types[1].precision = file.footer.types[1].scale = 0

    orcfiles.edited(path, path, edit)
    search = bloomcli.find(path, [value], column="d")
    assert list(search) == []
    assert [(e.exit_code, "is no type that ORC has" in (e.error or "")) for e in search.report.errors] == [(4, True)]
