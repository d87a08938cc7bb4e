"""The options of a command are the same everywhere: in its class, in Python, on Spark, and on the command line."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import typing
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

import bloomcli
from bloomcli import spark
from bloomcli.advice import on_spark
from bloomcli.cli import command_of
from bloomcli.commands import options
from bloomcli.commands.option import Checked, options_in
from bloomcli.commands.options import Options, TableOptions
from bloomcli.formats.add_options import own_options
from bloomcli.model.schema import ColumnName, ColumnNames
from bloomcli.policy.policy import Part, Policy

ROOT: Final = Path(__file__).parents[2]

CLASSES: Final = {
    "add": options.AddOptions,
    "advise": options.AdviseOptions,
    "fold": options.FoldOptions,
    "gate": options.ValidateOptions,
    "inspect": options.InspectOptions,
    "probe": options.ProbeOptions,
    "remove": options.RemoveOptions,
    "repair": options.RepairOptions,
    "trial": options.TrialOptions,
    "validate": options.ValidateOptions,
}
"""The options of each function of the library."""

NO_OPTIONS: Final = {"path", "paths", "spark", "progress", "jobs", "fail_fast", "on_row", "session"}
"""Parameters that say which files, where they are worked on, and who is informed of progress."""

NOT_IN_PYTHON: Final = {("gate", "threads"), ("trial", "keys"), *(("validate", n) for n in options.OF_MANY_FILES)}
"""Many files share the cores by their sizes; readers get no keys; and `gate` is for many files."""

NOT_ON_SPARK: Final = {
    "add": {"threads"},
    "inspect": {"every", "pages", "indexes", "schema", "footer"},
    "probe": {"explain", "skip_blank"},
    "repair": {"threads"},
    "validate": {"threads", "sample_row_groups", "seed"} | options.OF_MANY_FILES,
}
"""Options that rows of a data frame don't show, that Spark decides, or that belong to `gate`."""

COMMAND_LINE: Final = {name: kind for name, kind in CLASSES.items() if name != "gate"}
ONLY_ON_COMMAND_LINE: Final = {
    "add": {"no_policy", "every"},
    "advise": {"new_policy", "overwrite", "reports"},
    "fold": {"every"},
    "inspect": {"reports"},
    "remove": {"every"},
    "repair": {"every"},
    "probe": {"source", "matches", "every"},
    "trial": {"reports", "table"},
    "validate": {"no_policy", "max_per_rule", "every", "reports", "init", "explain"},
}
"""Which policy, how the report is written, what is done instead; and where `probe` has its values from."""

OF_KEYS: Final = {"footer_key", "column_key", "key", "aad_prefix", "kms", "kms_config"}
"""The options that give `keys` on the command line."""

NOT_ON_COMMAND_LINE: Final = {
    "trial": {"keys"},
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
    "repair": "repair_table",
    "validate": "validate_table",
}
"""For each command, its function for tables."""

NOT_FOR_TABLES: Final = {"output", "in_place", "force", "overwrite", "mosaic_draft"}
"""The table's commit puts new files in place, and tables have no Mosaic files."""

OF_TABLES: Final = {
    "fold": {"table", "where", "commit_every", "new_row_ids"},
    "remove": {"table", "where", "commit_every", "new_row_ids"},
    "repair": {"table", "where", "commit_every", "new_row_ids"},
    "trial": set(),
    "inspect": {"table", "where", "snapshot", "as_of"},
    "probe": {"table", "where", "snapshot", "as_of"},
    "add": {"table", "where", "from_properties", "commit_every", "new_row_ids"},
    "advise": {"table", "where", "snapshot", "as_of"},
    "validate": {"table", "where", "from_properties", "snapshot", "as_of"},
}
"""The fields of `TableOptions` that a command has."""


FROM_THE_TABLE: Final = {"names", "partitions"}
"""Fields that nobody gives: what a run fills in from the table, or from the files' directories, for every process
that opens the files."""


OF_FORMATS: Final = {option.name for option in own_options()}
"""Keywords that fill in `format_options`."""


def fields(kind: type) -> dict[str, Any]:
    """Names of a class's fields, with their defaults, but for those from the table."""
    return {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(kind)
        if field.name not in FROM_THE_TABLE
    }


def arguments(function: Any) -> dict[str, inspect.Parameter]:
    """A function's parameters that are options."""
    return {n: p for n, p in inspect.signature(function).parameters.items() if n not in NO_OPTIONS}


def assert_same(function: Any, name: str, wanted: dict[str, Any]) -> None:
    """The function has these options, and their defaults where it has any."""
    if name == "add":
        wanted = wanted | {option.name: None if option.choices else False for option in own_options()}
    given = arguments(function)
    assert given.keys() - (OF_FORMATS - wanted.keys()) == wanted.keys()
    defaults = {n: p.default for n, p in given.items() if p.default is not inspect.Parameter.empty}
    assert defaults == {n: wanted[n] for n in defaults}
    assert given.keys() - defaults.keys() - {"table"} == {"probe": {"values"}}.get(name, set())


def distinct(function: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Another object for each argument of a function, which the options take unchecked, and so unchanged."""
    for checked in (Checked, TableOptions):
        monkeypatch.setattr(checked, "__post_init__", lambda _: None)
    return {name: {} if name == "format_options" else object() for name in arguments(function)}


def wanted_of(name: str, without: set[str]) -> dict[str, Any]:
    """The fields of a command's class, without some of them."""
    return {n: default for n, default in fields(CLASSES[name]).items() if n not in without}


@pytest.mark.parametrize("name", CLASSES)
def test_functions_of_the_library_take_the_fields_of_the_class(name: str) -> None:
    without = {n for command, n in NOT_IN_PYTHON if command == name}
    assert_same(getattr(bloomcli, name), name, wanted_of(name, without))


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - {"gate", "trial"}))
def test_functions_for_spark_take_the_fields_of_the_class(name: str) -> None:
    assert_same(getattr(spark, name), name, wanted_of(name, NOT_ON_SPARK.get(name, set())))


FUNCTIONS: Final = (
    *(getattr(bloomcli, name) for name in CLASSES),
    *(getattr(spark, name) for name in sorted(CLASSES.keys() - {"gate", "trial"})),
    *(getattr(spark, name) for name in TABLE_FUNCTIONS.values()),
    *(getattr(module, name) for module in (bloomcli, spark) for name in ("index_build", "index_update")),
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_editors_and_type_checkers_see_the_same_keywords(function: Any) -> None:
    """The signature is made of the options' classes, and ``**options`` is a `TypedDict` with the same keys."""
    declared = inspect.unwrap(function)
    (unpacked,) = typing.get_type_hints(declared, localns={"DataFrame": Any, "SparkSession": Any})["options"].__args__
    shown = inspect.signature(function).parameters
    positional = declared.__code__.co_varnames[: declared.__code__.co_argcount + declared.__code__.co_kwonlyargcount]
    keywords = {n: p.annotation for n, p in shown.items() if n not in positional}
    typed = typing.get_type_hints(unpacked)
    assert typed.keys() == keywords.keys()
    assert {n: str(hint) for n, hint in typed.items()} == {n: str(hint) for n, hint in keywords.items()}
    with pytest.raises(TypeError, match=rf"{declared.__name__}\(\) got an unexpected keyword argument 'nothing'"):
        function("path", nothing=1)


@pytest.mark.parametrize("name", COMMAND_LINE)
def test_the_command_line_takes_the_fields_of_the_class(name: str) -> None:
    command = command_of(name)
    context = command.make_context(name, ["a.parquet", *(["--columns", "id"] if name == "add" else [])])
    without = OF_DATASETS | OF_TABLES[name] | ONLY_ON_COMMAND_LINE.get(name, set())
    assert OF_TABLES[name] <= context.params.keys()
    taken = {parameter: value for parameter, value in context.params.items() if parameter not in without | OF_KEYS}
    if name != "trial":
        assert context.params.keys() >= OF_KEYS
        taken["keys"] = None
    if name == "add":
        assert taken.keys() >= OF_FORMATS
        taken = {parameter: value for parameter, value in taken.items() if parameter not in OF_FORMATS}
    defaults = fields(COMMAND_LINE[name])
    assert taken.keys() == defaults.keys() - NOT_ON_COMMAND_LINE.get(name, set())
    if name == "add":
        assert taken.pop("columns") == ("id",)
    assert taken == {parameter: defaults[parameter] for parameter in taken}


@pytest.mark.parametrize("name", CLASSES)
def test_functions_pass_every_argument_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument that got lost, or went to another field, would do so without a word."""
    home = import_module(getattr(bloomcli, name).__module__)
    given = distinct(getattr(home, name), monkeypatch)
    passed: list[Options] = []

    class Passed(Exception):
        """The options have come."""

    def receive(*positional: Any, **named: Any) -> None:
        passed.extend(value for value in (*positional, *named.values()) if isinstance(value, Options))
        raise Passed

    for runs in ("run", "run_gate"):
        monkeypatch.setattr(home, runs, receive, raising=runs == "run")
    with pytest.raises(Passed):
        getattr(home, name)("path", **given)
    (one,) = passed
    assert_passed_on(one, name, given)


def assert_passed_on(one: Any, name: str, given: dict[str, Any]) -> None:
    """The options object has every argument of the function."""
    assert type(one) is CLASSES[name]
    of_formats = {argument: value for argument, value in given.items() if argument in OF_FORMATS}
    if of_formats:
        assert one.format_options == of_formats
    others = given.keys() - of_formats.keys() - {"format_options"}
    assert {argument: getattr(one, argument) for argument in others} == {
        argument: given[argument] for argument in others
    }


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - {"gate", "trial"}))
def test_functions_for_spark_pass_every_argument_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = distinct(getattr(spark, name), monkeypatch)
    passed: list[Options] = []
    monkeypatch.setattr(spark, "_run", lambda *arguments: passed.append(arguments[-1]))
    monkeypatch.setattr(on_spark, "_advise", lambda *arguments: passed.append(arguments[-1]))
    getattr(spark, name)(None, "path", **given)
    (one,) = passed
    assert_passed_on(one, name, given)


@pytest.mark.parametrize("name", TABLE_FUNCTIONS)
def test_functions_for_tables_take_the_fields_of_both_classes(name: str) -> None:
    wanted = wanted_of(name, NOT_ON_SPARK.get(name, set()) | NOT_FOR_TABLES)
    of_table = {field.name: field.default for field in dataclasses.fields(TableOptions)}
    wanted |= {n: of_table[n] for n in OF_TABLES[name]}
    function = getattr(spark, TABLE_FUNCTIONS[name])
    assert arguments(function)["table"].default is inspect.Parameter.empty
    if name == "add":
        assert "mosaic_draft" not in arguments(function)
        wanted |= {"kind": None, "variant": None}
    given = arguments(function)
    assert given.keys() == wanted.keys()
    defaults = {n: p.default for n, p in given.items() if p.default is not inspect.Parameter.empty}
    assert defaults == {n: wanted[n] for n in defaults}


@pytest.mark.parametrize("name", TABLE_FUNCTIONS)
def test_functions_for_tables_pass_every_argument_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from bloomcli.tables import functions

    given = distinct(getattr(spark, TABLE_FUNCTIONS[name]), monkeypatch)
    passed: list[Any] = []
    for receiver in ("_change", "_read"):
        monkeypatch.setattr(functions, receiver, lambda _, which, chosen: passed.extend((which, chosen)))
    monkeypatch.setattr(on_spark, "_advise_table", lambda _, which, chosen: passed.extend((which, chosen)))
    getattr(spark, TABLE_FUNCTIONS[name])(None, **given)
    which, chosen = passed
    of_table = {n: value for n, value in given.items() if n in OF_TABLES[name]}
    assert {n: getattr(which, n) for n in of_table} == of_table
    assert_passed_on(chosen, name, {n: value for n, value in given.items() if n not in of_table})


SAMPLES: Final[dict[str, dict[str, Any]]] = {
    "add": {"columns": "id", "readers": "spark", "fpp": 0.02},
    "advise": {"budget": "2%", "queries": "q.sql", "table_name": ["orders"], "sample": " 5% ", "readers": ["trino"]},
    "fold": {"columns": ["a", "b"]},
    "gate": {"require": "id", "max_fpp": 0.1, "deep": True, "sample": " 5% ", "readers": ["trino"]},
    "inspect": {"exclude": "id"},
    "probe": {"values": [1, "x"]},
    "remove": {},
    "repair": {"add": "page-index"},
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


@pytest.mark.parametrize("name", COMMAND_LINE)
def test_an_option_is_written_once(name: str) -> None:
    """What a field of the class declares, no module of the command line declares again."""
    declared = {flag for _, one, _ in options_in(COMMAND_LINE[name]) for flag in one.flags if flag.startswith("--")}
    declared |= {"--" + n.replace("_", "-") for n, one, _ in options_in(COMMAND_LINE[name]) if not one.flags}
    own = Path(inspect.getfile(inspect.unwrap(command_of(name).callback))).read_text()  # type: ignore[arg-type]
    again = {flag for flag in declared if f'"{flag}"' in own}
    assert again <= {"advise": {"--policy"}}.get(name, set()), "`bloom advise --policy` is the file that it writes"


FOUND: Final = {"column", "select", "keys"}
"""What all of `find` take; `limit`, `files_only` and `maybe` are for rows that are printed."""


def test_find_takes_its_options_everywhere() -> None:
    from bloomcli.commands.options import FindOptions

    names = {field.name for field in dataclasses.fields(FindOptions)} - FROM_THE_TABLE - {"keys"} | OF_KEYS
    command = command_of("find")
    on_command_line = {parameter.name for parameter in command.params}
    assert names | {"engine", "master", "conf", "table", "where", "snapshot", "as_of"} <= on_command_line
    assert arguments(bloomcli.find).keys() == {"values", "values_column", "limit", "index", "as_files"} | FOUND
    assert arguments(spark.find).keys() == {"paths_or_table", "values", "values_column", "index", "as_files"} | FOUND
    of_table = {"table", "where", "snapshot", "as_of", "values", "values_column", "index"}
    assert arguments(spark.find_table).keys() == of_table | FOUND
