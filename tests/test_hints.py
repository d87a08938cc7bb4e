"""The commands in hints work, for every format and any name of a column."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import datasets, footers
from support.shell import arguments

import bloomcli
from bloomcli.cli import run
from bloomcli.formats.registry import format_named
from bloomcli.hints import Hint, adding, completed, extended, folding, joined, on_table, removing, replacing
from bloomcli.model.validate import Finding


def follow(finding: Finding) -> int:
    """Run the hint's command line as a shell does."""
    named = re.search("`(bloom .+?)`", finding.hint or "")
    assert named is not None, finding.hint
    assert named[1].isprintable()  # reports escape other characters, which a shell wouldn't take back
    return run(arguments(named[1]))


SIMPLE = ["id", "a,b", "user's", "a b", "x[0]", "*", "$HOME", "ünï"]
SPACES = [" Price", "total ", " both\u00a0", " ", "  ,"]
CONTROLS = ["tab\t", "two\nlines", "red\x1b[31m'"]


@pytest.mark.parametrize("name", [*SIMPLE, *SPACES, *CONTROLS])
def test_the_hint_of_a_wanted_filter_adds_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"f{name.removesuffix('*')}.parquet"
    pq.write_table(pa.table({name: [1, 2, 3], "other": [1, 2, 3]}), path)
    (finding,) = bloomcli.validate(path, require=["*"], columns=["other"]).findings[:1]
    for wanted in bloomcli.validate(path, require=["*"]).findings:
        assert follow(wanted) == 0
    assert finding.id == "filter-required"
    assert bloomcli.validate(path, require=["*"]).findings == ()


def test_the_hint_where_other_row_groups_have_one_replaces_them(tmp_path: Path) -> None:
    """DuckDB writes none where all is null; add to a chunk that has one is an error without --replace."""
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"k": pa.array([None] * 3 + [*range(6)], pa.int64())}), path, row_group_size=3)
    (none,) = bloomcli.validate(path, require=["k"]).findings
    assert none.hint == f"`bloom add {path} --columns k --in-place`"
    assert follow(none) == 0
    fact = bloomcli.inspect(path).filters[-1]
    data = footers.edited(path.read_bytes(), footers.set_filter(fact.row_group, 0, None, None))
    path.write_bytes(data)
    (part,) = bloomcli.validate(path, require=["k"]).findings
    assert part.hint == f"`bloom add {path} --replace --columns k --in-place`"
    assert follow(part) == 0
    assert bloomcli.validate(path, require=["k"], deep=True).findings == ()


def test_the_hint_of_a_rate_above_the_limit_and_of_a_filter_too_large(tmp_path: Path) -> None:
    for suffix in ("parquet", "orc"):
        path = datasets.write(tmp_path / f"f.{suffix}", 2000)
        bloomcli.add(path, ["id"], in_place=True, fpp=0.2)
        for finding in bloomcli.validate(path, max_fpp=0.01).findings:
            assert finding.id == "filter-fpp"
        assert follow(finding) == 0
        assert bloomcli.validate(path, max_fpp=0.01).findings == ()
        bloomcli.add(path, ["id"], in_place=True, fpp=0.000001, replace=True)
        oversized = bloomcli.validate(path, max_oversize=1.5, max_fpp=0.1).findings[0]
        assert oversized.id == "filter-oversized"
        assert follow(oversized) == 0
        assert bloomcli.validate(path, max_oversize=1.5, max_fpp=0.1).findings == ()


def test_mosaic_files_take_filters_as_a_draft_only() -> None:
    draft = "`bloom add FILE --replace --mosaic-draft --columns id --in-place`"
    assert format_named("mosaic").adding("id", "--replace") == draft
    assert format_named("parquet").adding("a,b") == "`bloom add FILE --columns 'a\\,b' --in-place`"
    assert folding("id", 0.01) == "`bloom fold FILE --fpp 0.01 --columns id --in-place`"


def test_a_hint_names_the_file_the_column_and_the_readers_as_a_shell_takes_them() -> None:
    assert completed(replacing(), "-a b.parquet", "x,y", ["spark", "trino"]) == (
        "`bloom add './-a b.parquet' --readers spark,trino --replace --columns 'x\\,y' --in-place`"
        " writes a sound filter in its place"
    )
    assert completed(removing("NAME"), "f.orc") == "`bloom remove f.orc --columns NAME --in-place`"
    assert completed("no command", "f.orc") == "no command"
    assert completed(replacing(), None) == replacing()


def test_hints_that_differ_in_the_file_alone_are_one_command_for_all_files() -> None:
    hints = [completed(removing("x"), path) or "" for path in ("a.orc", "b c.orc", "a.orc")]
    assert joined(hints) == "`bloom remove a.orc 'b c.orc' --columns x --in-place`"
    assert joined([*hints, completed(removing("y"), "d") or ""]) is None, "x isn't wrong in d, and y in no other"
    assert joined(["the same", "the same"]) == "the same"


def test_hints_that_differ_in_the_column_are_one_command_if_each_file_has_the_same_columns() -> None:
    hints = [completed(adding(name), path) or "" for path in ("a", "b") for name in ("x", "y,z")]
    assert joined(hints) == "`bloom add a b --columns 'x,y\\,z' --in-place`"
    assert joined(hints[:3]) is None
    assert joined([completed(folding("x", fpp), "a") or "" for fpp in (0.01, 0.02)]) is None
    assert joined([completed(removing(*names), "a") or "" for names in (("x",), ())]) is None, "all, or one"


def test_a_hint_s_command_changes_a_table_instead_of_the_file() -> None:
    hint = completed(removing("x", after=" takes it out").preceded_by("first "), "a.orc")
    assert hint == "first `bloom remove a.orc --columns x --in-place` takes it out"
    on = on_table(hint, "delta.`/a b`")
    assert on == "first `bloom remove --table 'delta.`/a b`' --columns x` takes it out"
    assert on_table(on, "another") == on
    assert on_table("no command", "t") == "no command"
    assert on_table(None, "t") is None


def test_a_hint_keeps_its_command_in_other_processes_and_with_more_text() -> None:
    hint = removing("x", after=" takes it out")
    for other in (pickle.loads(pickle.dumps(hint)), copy.deepcopy(hint), extended(hint, [])):
        assert isinstance(other, Hint)
        assert (other, other.command) == (hint, hint.command)
    longer = completed(extended(hint, ["one", "two"]), "f")
    assert longer == "`bloom remove f --columns x --in-place` takes it out; one; two"
    assert extended("text", ["one"]) == "text; one"
    assert extended(None, ["one", "two"]) == "one; two"
    assert extended(None, []) is None
