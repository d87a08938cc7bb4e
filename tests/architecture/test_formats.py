"""Nothing outside a format's folder asks which format a file has: names, suffixes and magics are in records alone."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
from support.modules import facts

from bloomcli.formats import registry
from bloomcli.formats.format import Format

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "bloomcli"
FOLDERS = {path.parent for path in PACKAGE.glob("formats/*/format.py")}
OUTSIDE = sorted(path for path in PACKAGE.rglob("*.py") if not FOLDERS & set(path.parents))

EXEMPT = {
    "rules/reader_table.py": "which formats' filters readers look up: facts about engines, by the formats' names",
    "trials/readers/__init__.py": "which formats readers read, and by which option they look filters up in each",
    "trials/readers/chdb.py": "ClickHouse's name of each format, and which has metrics",
    "trials/readers/spark.py": "Spark's switch of each format's filters",
    "trials/columns.py": "Arrow's module of each format: the values for a trial come from another reader than bloom",
    "advice/sql/reading.py": "functions of SQL dialects that read files of a format",
    "finding/value_file.py": "the forms of files of values, which Arrow reads",
    "cli/find.py": "the form of the rows that find writes",
}


KEYWORDS = PACKAGE / "formats" / "keywords.py"
"""Joins the keywords of all formats' options. Type checkers need them by name, so no loop can find them."""

EXEMPT_FOLDER = PACKAGE / "tables"
"""Tables name the formats of their data files, in their metadata and in their properties."""


def words_of(record: Format) -> set[str | bytes]:
    """What only a record says: as string literals, these ask which format a file has."""
    # options' names aren't among them: they are keyword arguments of the public functions
    options = {word for option in record.options for word in (option.flag, *option.choices)}
    return {record.name, *record.suffixes, *(magic.data for magic in record.magics), *options}


WORDS = set().union(*map(words_of, registry.own_formats()))


def test_the_words_are_those_of_all_formats_and_some_module_is_looked_at() -> None:
    assert {"parquet", "orc", "mosaic", b"ORC", ".orc", "--mosaic-draft"} <= WORDS
    assert len(OUTSIDE) > 100
    assert len(FOLDERS) == len({record.opener.rpartition(".")[0] for record in registry.own_formats()})


def test_no_module_outside_the_folders_imports_a_format() -> None:
    folders = tuple(f"bloomcli.formats.{folder.name}." for folder in FOLDERS)
    looked_at = [path for path in OUTSIDE if path != KEYWORDS]
    imports = [(path, found.module) for path in looked_at for found in facts(path).imports]
    found = [(str(path), module) for path, module in imports if f"{module}.".startswith(folders)]
    assert found == []


def test_no_module_outside_the_folders_names_a_format() -> None:
    asked = [path for path in OUTSIDE if EXEMPT_FOLDER not in path.parents]
    words = {str(path.relative_to(PACKAGE)): facts(path).literals & WORDS for path in asked}
    assert {name: found for name, found in words.items() if found and name not in EXEMPT} == {}
    assert [name for name in EXEMPT if not words[name]] == [], "every exemption is needed"


@pytest.mark.parametrize("record", registry.own_formats(), ids=lambda r: r.name)
def test_a_record_describes_what_its_code_does(record: Format) -> None:
    module, _, name = record.opener.partition(":")
    opened = getattr(__import__(module, fromlist=[name]), name)
    assert opened.format == record.name
    for writer in record.writers:
        __import__(writer)


@pytest.mark.parametrize(
    "name",
    [
        "bloom_filter.Filters.columns bloom_filter.Filters.location bloom_filter.Filters.locations",
        "bloom_filter.Filters.ranges bloom_filter.Filters.load bloom_filter.Filters.deep_bytes",
        "describe.ordinal describe.facts describe.problem_facts describe.raw",
        "check.unusable check.sound check.overlaps check.contradictions check.deep",
        "index_input.row_groups index_input.sources",
        "plan.AddPlan plan.RemovePlan plan.FoldPlan",
        "sampling.extents sampling.unit_values",
        "splice.differs_only_in_filters",
    ],
    ids=lambda names: names.partition(".")[0],
)
def test_functions_that_all_formats_have_take_the_same_arguments(name: str) -> None:
    for module, _, function in (found.partition(".") for found in name.split()):
        modules = [import_module(f"bloomcli.formats.{folder.name}.{module}") for folder in FOLDERS]
        some = [each for each in modules if function != "FoldPlan" or hasattr(each, function)]
        found = map(attrgetter(function), some)
        asked = [
            [p.name for p in inspect.signature(each).parameters.values() if p.default is p.empty] for each in found
        ]
        assert len(asked) > 1 and len({len(names) for names in asked}) == 1, asked


def test_records_are_found_by_name_and_without_the_code_of_their_formats() -> None:
    program = (
        "import sys\n"
        "from bloomcli.formats import registry\n"
        "found = registry.own_formats()\n"
        "assert all(registry.format_named(r.name) is r for r in found)\n"
        "print(*(m for m in sys.modules if m.startswith('bloomcli.formats.')))\n"
        "print(*(m for m in sys.modules if m.startswith('importlib.metadata')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    ours, metadata = (set(line.split()) for line in done.stdout.split("\n")[:2])
    inside = {name for name in ours if name.split(".")[2] in {folder.name for folder in FOLDERS}}
    named_numbers = {f"bloomcli.formats.{f.name}.limits" for f in FOLDERS}
    assert inside - named_numbers == {f"bloomcli.formats.{f.name}" for f in FOLDERS} | {
        f"bloomcli.formats.{f.name}.format" for f in FOLDERS
    }
    assert not metadata


def test_to_open_a_file_imports_its_own_format_alone() -> None:
    program = (
        "import sys\n"
        "from bloomcli.cli import run\n"
        f"run(['inspect', {str(ROOT / 'fixtures' / 'parquet' / 'orders.parquet')!r}])\n"
        "print(*(m for m in sys.modules if m.startswith('bloomcli.formats.')), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {tuple(name.split(".")[2:]) for name in done.stderr.split()}
    assert ("parquet", "file") in loaded
    assert {name for name in loaded if name[0] in {"orc", "mosaic"} and name[1:] != ("limits",)} == {
        ("orc",),
        ("orc", "format"),
        ("mosaic",),
        ("mosaic", "format"),
    }
