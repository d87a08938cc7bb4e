"""The public API: names, types, docstrings, immutability; and the JSON documents' keys, which are a promise."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from pathlib import Path

import pytest

import bloomcli
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.report import json as json_report
from tools import json_schema

FUNCTIONS = ("add", "advise", "dump", "fold", "gate", "inspect", "probe", "remove", "repair", "trial", "validate")
INDEX = ("index_build", "index_inspect", "index_update")
KEYS = Path(__file__).with_name("json_keys.json")


def test_the_public_names_are_the_commands_and_the_error() -> None:
    own = {"BloomError", "Keys", "Table"}
    assert set(bloomcli.__all__) == {*FUNCTIONS, *own, "__version__", "find", "html", *INDEX}
    assert dir(bloomcli) == sorted(bloomcli.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bloomcli.nothing  # noqa: B018  the access is the test
    assert (Path(bloomcli.__file__).with_name("py.typed")).is_file()


def test_public_modules_name_only_what_is_public() -> None:
    from bloomcli import spark

    for module in (bloomcli, spark):
        assert dir(module) == sorted(module.__all__), module.__name__


def test_functions_take_their_arguments_in_one_order() -> None:
    """The session, then the files or the table, then the columns, the values or the index; all else by keyword."""
    from bloomcli import spark

    order = ("spark", "path", "paths", "table", "paths_or_table", "report", "columns", "values", "index")
    for module in (bloomcli, spark):
        for name in module.__all__:
            function = getattr(module, name)
            if not inspect.isfunction(function):
                continue
            parameters = inspect.signature(function).parameters.values()
            given = [one.name for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
            assert [order.index(one) for one in given] == sorted(order.index(one) for one in given), name
            assert 1 <= len(given) - (module is spark) <= 2, name


@pytest.mark.parametrize("name", [*FUNCTIONS, *INDEX])
def test_functions_are_typed_and_say_what_they_take_and_raise(name: str) -> None:
    function = getattr(bloomcli, name)
    text = inspect.getdoc(function) or ""
    assert "Args:" in text
    assert "Raises:" in text
    hints = typing.get_type_hints(function)
    assert dataclasses.is_dataclass(hints["return"])
    for parameter in inspect.signature(function).parameters:
        assert parameter in hints
        assert f"{parameter}" in text


def test_reports_are_frozen_and_slotted() -> None:
    kinds = list(json_schema.reachable(json_report.DOCUMENTS.values()))
    assert len(kinds) >= 10
    for kind in [*kinds, Column, ColumnChunk]:
        assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert not hasattr(kind, "__dict__") or "__slots__" in vars(kind)


def test_keys_of_json_documents_are_kept() -> None:
    """Keys may be added (add them to the file); taking one away needs a new schema version."""
    promised = json.loads(KEYS.read_text())
    for kind in json_schema.reachable(json_report.DOCUMENTS.values()):
        described = {key.name: key.type for key in json_schema.object_schema(kind).keys}
        assert described == promised[kind.__name__], kind.__name__
    assert promised["version"] == json_report.VERSION
