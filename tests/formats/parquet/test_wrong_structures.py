"""`validate --deep` finds each kind of wrong structure by its rule, in files of five writers, and the table of what
engines do with them agrees with the rules' pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.skipped_rows import WRITERS
from support.skipping_engines import ENGINES
from support.wrong_structures import KINDS, LOSES, PAGE_OF_TABLE, WRONG, Kind, recorded, text

import bloomcli
from bloomcli.rules import page


@pytest.mark.parametrize("writer", WRITERS)
def test_a_sound_file_of_a_writer_has_no_finding(writer: str, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(WRITERS[writer]())
    assert bloomcli.validate(path, deep=True, columns=["*"]).findings == ()


@pytest.mark.parametrize("kind", KINDS, ids=[f"{kind.what} ({kind.writer})" for kind in KINDS])
def test_a_kind_is_found_by_its_rule_and_by_no_other(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(kind.file)
    findings = bloomcli.validate(path, deep=True, columns=["*"]).findings
    assert {(found.id, found.severity) for found in findings} == {(kind.rule, kind.severity)}
    assert {kind.question.column, kind.question.key, None} & {found.column for found in findings}


def test_the_table_lists_the_kinds() -> None:
    assert len({kind.what for kind in KINDS}) >= 60
    assert PAGE_OF_TABLE.read_text() == text(recorded()), "run python tests/interop/update_wrong_structures.py"


def test_the_rules_pages_name_each_engine_that_loses_rows() -> None:
    columns = recorded()
    for number, kind in enumerate(KINDS):
        for engine in ENGINES:
            if columns[engine][number].startswith((LOSES, WRONG)):
                assert engine in page(kind.rule), (kind.what, engine)
