"""The one family of errors: its tree, its texts, and the way across process borders."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from bloomcli import errors
from bloomcli.errors import BloomError
from bloomcli.formats.base import FilterProblem
from bloomcli.hints import removing
from bloomcli.tables.base import Conflict


def family(kind: type[BloomError] = BloomError) -> list[type[BloomError]]:
    """A class and everything below it, of those that the module defines."""
    children = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
    return [kind, *(found for child in children for found in family(child))]


@pytest.mark.parametrize(
    ("details", "text"),
    [
        ({}, "it broke"),
        ({"path": "a.parquet"}, "a.parquet: it broke"),
        ({"offset": 0}, "it broke (byte 0)"),
        ({"field": "row_groups[3].columns[1]"}, "it broke (at row_groups[3].columns[1])"),
        (
            {"path": "a.parquet", "offset": 1234, "field": "version", "hint": "mend it"},
            "a.parquet: it broke (at version, byte 1234)\nhint: mend it",
        ),
        (
            {"path": "a b.parquet", "hint": removing("id")},
            "a b.parquet: it broke\nhint: `bloom remove 'a b.parquet' --columns id --in-place`",
        ),
    ],
)
def test_the_text_says_where_and_what_to_do(details: dict[str, object], text: str) -> None:
    error = BloomError("it broke", **details)  # type: ignore[arg-type]
    assert str(error) == text
    assert error.message == text.partition("\n")[0]


@pytest.mark.parametrize("kind", family())
def test_every_error_survives_pickling_with_all_it_says(kind: type[BloomError]) -> None:
    error = kind("it broke", path="a.parquet", offset=7, field="version", hint="mend it")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        found = pickle.loads(pickle.dumps(error, protocol))
        assert type(found) is kind
        assert vars(found) == vars(error)
        assert str(found) == str(error)
        assert found.args == error.args
    assert str(copy.copy(error)) == str(error)


@pytest.mark.parametrize(
    "error",
    [
        errors.LiteralError("it broke", text="six"),
        FilterProblem("it broke", path="a.parquet", id="filter-hash"),
        Conflict("it broke", path="t", paths=["a", "b"]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_only_some_errors_say_survives_pickling_too(error: BloomError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), vars(found), str(found)) == (type(error), vars(error), str(error))


def fail() -> None:
    """Raise, in another process."""
    raise errors.CorruptFile("it broke", path="a.parquet", offset=7)


def test_an_error_of_another_process_arrives_whole() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(errors.CorruptFile) as caught:
        pool.submit(fail).result()
    assert (caught.value.path, caught.value.offset) == ("a.parquet", 7)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.UsageError, 2),
        (errors.UnknownColumn, 2),
        (errors.LiteralError, 2),
        (errors.FilterExists, 2),
        (errors.UnreadableError, 3),
        (errors.CorruptFile, 3),
        (errors.SourceChanged, 3),
        (errors.WriteError, 3),
        (errors.UnsupportedError, 4),
    ],
)
def test_each_error_has_its_exit_code(kind: type[BloomError], code: int) -> None:
    assert kind.exit_code == code
    assert issubclass(kind, BloomError)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = errors.__doc__ or ""
    assert {kind.__name__ for kind in family()} == {
        word for line in drawn.splitlines() for word in line.split() if isinstance(vars(errors).get(word), type)
    }
