"""The options of a command are the same everywhere: in its class, in Python, on Spark, and on the command line."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
import pytest

import bloomcli
from bloomcli import spark
from bloomcli.advice import on_spark
from bloomcli.cli import COMMANDS
from bloomcli.commands import options
from bloomcli.commands.options import Options
from bloomcli.commands.table_options import TableOptions
from bloomcli.formats.add_options import own_options
from bloomcli.model.names import ColumnName, ColumnNames
from bloomcli.policy.policy import Part, Policy

ROOT: Final = Path(__file__).parents[2]

CLASSES: Final = {
    "add": options.AddOptions,
    "advise": options.AdviseOptions,
    "fold": options.FoldOptions,
    "gate": options.GateOptions,
    "inspect": options.InspectOptions,
    "probe": options.ProbeOptions,
    "remove": options.RemoveOptions,
    "trial": options.TrialOptions,
    "validate": options.ValidateOptions,
}
"""The options of each function of the library."""

NO_OPTIONS: Final = {"path", "paths", "spark", "progress", "jobs", "fail_fast", "on_row", "session"}
"""Parameters that say which files, where they are worked on, and who is informed of progress."""

NOT_IN_PYTHON: Final = {("gate", "threads")}
"""Many files share the cores by their sizes."""

NOT_ON_SPARK: Final = {
    "add": {"threads"},
    "inspect": {"every", "pages", "indexes", "schema", "footer"},
    "probe": {"explain", "skip_blank"},
    "validate": {"threads", "sample_row_groups", "seed"},
}
"""Options that rows of a data frame don't show, that Spark decides, or that belong to `gate`."""

COMMAND_LINE: Final = {
    "add": options.AddOptions,
    "advise": options.AdviseOptions,
    "fold": options.FoldOptions,
    "inspect": options.InspectOptions,
    "probe": options.ProbeOptions,
    "remove": options.RemoveOptions,
    "trial": options.TrialOptions,
    "validate": options.GateOptions,
}
ONLY_ON_COMMAND_LINE: Final = {
    "add": {"no_policy", "every"},
    "advise": {"new_policy", "overwrite", "reports"},
    "fold": {"every"},
    "inspect": {"reports"},
    "remove": {"every"},
    "probe": {"source", "matches", "every"},
    "trial": {"reports", "table"},
    "validate": {"no_policy", "max_per_rule", "every", "reports", "init", "explain"},
}
"""Which policy, how the report is written, what is done instead; and where `probe` has its values from."""

NOT_ON_COMMAND_LINE: Final = {
    "add": {"format_options"},
    "advise": {"policy"},
    "probe": {"skip_blank"},
    "validate": {"threads"},
}
OF_DATASETS: Final = {"files", "files_from", "jobs", "fail_fast", "engine", "master", "conf", "form", "quiet"}

TABLE_FUNCTIONS: Final = {
    "add": "add_to_table",
    "advise": "advise_table",
    "fold": "fold_table",
    "inspect": "inspect_table",
    "probe": "probe_table",
    "remove": "remove_from_table",
    "validate": "validate_table",
}
"""For each command, its function for tables."""

NOT_FOR_TABLES: Final = {"output", "in_place", "force", "overwrite", "mosaic_draft"}
"""The table's commit puts new files in place, and tables have no Mosaic files."""

OF_TABLES: Final = {
    "fold": {"table", "where", "commit_every", "new_row_ids"},
    "remove": {"table", "where", "commit_every", "new_row_ids"},
    "trial": set(),
    "inspect": {"table", "where", "snapshot", "as_of"},
    "probe": {"table", "where", "snapshot", "as_of"},
    "add": {"table", "where", "from_properties", "commit_every", "new_row_ids"},
    "advise": {"table", "where", "snapshot", "as_of"},
    "validate": {"table", "where", "from_properties", "snapshot", "as_of"},
}
"""The fields of `TableOptions` that a command has."""


FROM_THE_TABLE: Final = {"names"}
"""Fields that nobody gives: what a run on a table fills in from the table, for every process that opens its files."""


def fields(kind: type[Options]) -> dict[str, Any]:
    """Names of a class's fields, with their defaults, but for those from the table."""
    return {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(kind)
        if field.name not in FROM_THE_TABLE
    }


def arguments(function: Any) -> dict[str, inspect.Parameter]:
    """A function's parameters that are options."""
    return {n: p for n, p in inspect.signature(function).parameters.items() if n not in NO_OPTIONS}


def assert_same(function: Any, name: str, without: set[str]) -> None:
    """The function has these options, and their defaults where it has any."""
    wanted = {n: default for n, default in fields(CLASSES[name]).items() if n not in without}
    given = arguments(function)
    assert given.keys() == wanted.keys()
    defaults = {n: p.default for n, p in given.items() if p.default is not inspect.Parameter.empty}
    assert defaults == {n: wanted[n] for n in defaults}
    assert given.keys() - defaults.keys() == {"probe": {"values"}}.get(name, set())


@pytest.mark.parametrize("name", CLASSES)
def test_functions_of_the_library_take_the_fields_of_the_class(name: str) -> None:
    assert_same(getattr(bloomcli, name), name, {n for command, n in NOT_IN_PYTHON if command == name})


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - {"gate", "trial"}))
def test_functions_for_spark_take_the_fields_of_the_class(name: str) -> None:
    assert_same(getattr(spark, name), name, NOT_ON_SPARK.get(name, set()))


@pytest.mark.parametrize("name", COMMAND_LINE)
def test_the_command_line_takes_the_fields_of_the_class(name: str) -> None:
    command: click.Command = import_module(f"bloomcli.cli.{name}").command
    context = command.make_context(name, ["a.parquet", *(["--columns", "id"] if name == "add" else [])])
    without = OF_DATASETS | OF_TABLES[name] | ONLY_ON_COMMAND_LINE.get(name, set())
    assert OF_TABLES[name] <= context.params.keys()
    taken = {parameter: value for parameter, value in context.params.items() if parameter not in without}
    defaults = fields(COMMAND_LINE[name])
    assert taken.keys() == defaults.keys() - NOT_ON_COMMAND_LINE.get(name, set())
    if name == "add":
        assert taken.pop("columns") == ("id",)
    assert taken == {parameter: defaults[parameter] for parameter in taken}


@pytest.mark.parametrize("name", CLASSES)
def test_functions_pass_every_argument_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument that got lost, or went to another field, would do so without a word."""
    home = import_module("bloomcli.validation.gate" if name == "gate" else f"bloomcli.functions.{name}")
    given = {argument: object() for argument in arguments(getattr(home, name))}
    passed: list[Options] = []

    class Passed(Exception):
        """The options have come."""

    def receive(*positional: Any, **named: Any) -> None:
        passed.extend(value for value in (*positional, *named.values()) if isinstance(value, Options))
        raise Passed

    monkeypatch.setattr(home, "request" if name == "gate" else "run", receive)
    with pytest.raises(Passed):
        getattr(home, name)("path", **given)
    (one,) = passed
    assert type(one) is CLASSES[name]
    assert {argument: getattr(one, argument) for argument in given} == given


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - {"gate", "trial"}))
def test_functions_for_spark_pass_every_argument_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {argument: object() for argument in arguments(getattr(spark, name))}
    passed: list[Options] = []
    monkeypatch.setattr(spark, "_run", lambda *arguments: passed.append(arguments[-1]))
    monkeypatch.setattr(on_spark, "_advise", lambda *arguments: passed.append(arguments[-1]))
    getattr(spark, name)(None, "path", **given)
    (one,) = passed
    assert type(one) is CLASSES[name]
    assert {argument: getattr(one, argument) for argument in given} == given


@pytest.mark.parametrize("name", TABLE_FUNCTIONS)
def test_functions_for_tables_take_the_fields_of_both_classes(name: str) -> None:
    given = arguments(getattr(spark, TABLE_FUNCTIONS[name]))
    wanted = {n: d for n, d in fields(CLASSES[name]).items() if n not in NOT_ON_SPARK.get(name, set())}
    wanted = {n: d for n, d in wanted.items() if n not in NOT_FOR_TABLES}
    of_table = {field.name: field.default for field in dataclasses.fields(TableOptions)}
    wanted |= {n: of_table[n] for n in OF_TABLES[name]}
    assert given.keys() == wanted.keys()
    defaults = {n: p.default for n, p in given.items() if p.default is not inspect.Parameter.empty}
    assert defaults == {n: wanted[n] for n in defaults}
    assert given.keys() - defaults.keys() == {"table", *({"values"} if name == "probe" else ())}


@pytest.mark.parametrize("name", TABLE_FUNCTIONS)
def test_functions_for_tables_pass_every_argument_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from bloomcli.tables import functions

    given = {argument: object() for argument in arguments(getattr(spark, TABLE_FUNCTIONS[name]))}
    passed: list[Any] = []
    for receiver in ("_change", "_read"):
        monkeypatch.setattr(functions, receiver, lambda _, which, chosen: passed.extend((which, chosen)))
    monkeypatch.setattr(on_spark, "_advise_table", lambda _, which, chosen: passed.extend((which, chosen)))
    getattr(spark, TABLE_FUNCTIONS[name])(None, **given)
    which, chosen = passed
    assert type(chosen) is CLASSES[name]
    assert {n: getattr(which if n in OF_TABLES[name] else chosen, n) for n in given} == given


SAMPLES: Final[dict[str, dict[str, Any]]] = {
    "add": {"columns": "id", "readers": "spark", "fpp": 0.02},
    "advise": {"budget": "2%", "queries": "q.sql", "table_name": ["orders"], "sample": " 5% ", "readers": ["trino"]},
    "fold": {"columns": ["a", "b"]},
    "gate": {"require": "id", "max_fpp": 0.1, "deep": True, "sample": " 5% ", "readers": ["trino"]},
    "inspect": {"exclude": "id"},
    "probe": {"values": [1, "x"]},
    "remove": {},
    "trial": {"columns": "id", "readers": "duckdb", "queries": "q.sql", "table_name": "orders", "sample": " 5% "},
    "validate": {"columns": ("id",), "max_oversize": 2.0, "policy": Policy(whole=Part(max_fpp=0.5))},
}


@pytest.mark.parametrize("name", CLASSES)
def test_no_user_gives_what_the_table_says(name: str) -> None:
    """Every command opens files by a table's names; they go to other processes with the options."""
    names = ColumnNames(columns=(ColumnName(path="id", field_id=1),))
    checked = CLASSES[name](**SAMPLES[name], names=names).checked()
    assert pickle.loads(pickle.dumps(checked)).names == checked.names == names
    assert CLASSES[name](**SAMPLES[name]).names is None
    assert not FROM_THE_TABLE & arguments(getattr(bloomcli, name)).keys()


@pytest.mark.parametrize("name", CLASSES)
def test_options_are_immutable_go_to_other_processes_and_are_checked_once(name: str) -> None:
    raw = CLASSES[name](**SAMPLES[name])
    checked = raw.checked()
    assert checked.checked() == checked
    assert pickle.loads(pickle.dumps(checked)) == checked
    assert not hasattr(checked, "__dict__")
    for field in dataclasses.fields(checked):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(checked, field.name, None)


def test_a_policy_that_was_read_is_not_read_again() -> None:
    policy = Policy(whole=Part(readers=("spark",)))
    assert options.policy_of(options.AddOptions(columns="id", policy=policy).checked()) is policy
    with pytest.raises(TypeError, match="weren't checked"):
        options.policy_of(options.AddOptions(columns="id", policy="bloom.toml"))


SHARED: Final = ("options", "dataset", "reader_options", "gate_options", "query_options", "table_options")
"""The files of bloomcli/cli that declare options of several commands, as docs/architecture.md names them."""


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_is_declared_where_the_architecture_page_says(name: str) -> None:
    command: click.Command = import_module(f"bloomcli.cli.{name}").command
    own = (ROOT / "bloomcli" / "cli" / f"{name}.py").read_text()
    shared = [(ROOT / "bloomcli" / "cli" / f"{module}.py").read_text() for module in SHARED]
    of_formats = {option.flag for option in own_options()}
    for parameter in command.params:
        for flag in parameter.opts:
            if not flag.startswith("--") or flag in of_formats:
                continue
            places = [text for text in (own, *shared) if f'"{flag}"' in text]
            assert places, f"{flag} is declared somewhere else"
            if f'"{flag}"' not in own:
                assert len(places) == 1, f"{flag} is declared more than once"


FOUND: Final = {"column", "select"}
"""What all of `find` take; `limit`, `files_only` and `maybe` are for rows that are printed."""


def test_find_takes_its_options_everywhere() -> None:
    from bloomcli.commands.find_options import FindOptions

    names = {field.name for field in dataclasses.fields(FindOptions)} - FROM_THE_TABLE
    command: click.Command = import_module("bloomcli.cli.find").command
    on_command_line = {parameter.name for parameter in command.params}
    assert names | {"engine", "master", "conf", "table", "where", "snapshot", "as_of"} <= on_command_line
    assert arguments(bloomcli.find).keys() == {"values", "limit", "index", "as_files"} | FOUND
    assert arguments(spark.find).keys() == {"paths_or_table", "values", "values_column", "index", "as_files"} | FOUND
    of_table = {"table", "where", "snapshot", "as_of", "values", "values_column", "index"}
    assert arguments(spark.find_table).keys() == of_table | FOUND
