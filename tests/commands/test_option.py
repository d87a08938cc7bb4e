"""Options take values of their form only, in Python, on Spark and for tables: anything else is an error that names
them, before a file is opened."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import bloomcli
from bloomcli import spark
from bloomcli.commands import options
from bloomcli.commands.option import options_in
from bloomcli.commands.options import FindOptions, IndexOptions, IndexTarget, TableOptions
from bloomcli.errors import UsageError
from bloomcli.formats.keys import Keys
from bloomcli.functions.files import ProgressOption, RunOptions
from bloomcli.policy.policy import Policy

KINDS: Final = (
    options.AddOptions,
    options.AdviseOptions,
    FindOptions,
    options.FoldOptions,
    options.RepairOptions,
    IndexOptions,
    IndexTarget,
    options.InspectOptions,
    options.ProbeOptions,
    ProgressOption,
    options.RemoveOptions,
    RunOptions,
    TableOptions,
    options.TrialOptions,
    options.ValidateOptions,
)

VALUES: Final[dict[str, tuple[list[Any], list[Any]]]] = {
    "callback": ([print], ["print", 0]),
    "choice": (["tight"], ["", "Tight", 3]),
    "column": (["id", "a,b"], [3, b"id", ["id"]]),
    "columns": (["id", ["a", "b"], ("a",), []], [3, [3], b"id", ["a", None]]),
    "engines": (["spark"], [3, [None]]),
    "factor": ([1, 2.5, np.float32(3)], [0.9, float("nan"), float("inf"), "2", True]),
    "file": (["f", Path("f")], [3, b"f", ["f"]]),
    "flag": ([True, False], ["no", 1, 0]),
    "formats": ([{}, {"kind": "utf8"}], [3, "kind", [("kind", "utf8")]]),
    "integer": ([0, -5, np.int64(7), 2**63 - 1], [2**63, -(2**63) - 1, 1.0, "1", True]),
    "keys": ([Keys(keys={"k": b"k" * 16})], [3, "hex:00", {"key": b"k" * 16}]),
    "names": ([["orders"], "orders"], [3, [b"orders"]]),
    "number": ([1, np.int64(7), 10**6], [-1, 2**63, 1.5, "4", True, float("nan")]),
    "output": (["f"], [3, b"f"]),
    "part": ([0, 0.5, 1, np.float64(0.9)], [-0.1, 1.1, float("nan"), "50%", True]),
    "paths": ([["a", "b"], "a"], [3, [None], b"a"]),
    "policy": (["bloom.toml", Policy()], [3, {"max-fpp": 0.1}]),
    "rate": ([0.01, np.float64(0.5)], [0, 1, -0.1, 2, float("nan"), "0.01", "1%", False]),
    "seconds": ([1, 0.5], [0, -1, float("nan"), float("inf"), "300"]),
    "share": (["5%", "7", 7], [0.05, b"5%", True]),
    "size": ([32, 1 << 20], [31, 0, -32, "1MiB", 1024.0]),
    "text": (["spark"], [3, b"spark", ["spark"]]),
    "time": (["2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)], [3, 1.5]),
    "trial-readers": (["duckdb", ["duckdb"]], [3]),
}
"""For each form of options: values that they take, and values that they don't take."""

OPTIONS: Final = [(kind, name, one, default) for kind in KINDS for name, one, default in options_in(kind)]
OF_OPTIONS: Final = pytest.mark.parametrize(
    ("kind", "name", "one", "default"), OPTIONS, ids=[f"{kind.__name__}.{name}" for kind, name, _, _ in OPTIONS]
)


def test_every_form_has_values() -> None:
    assert {one.form for _, _, one, _ in OPTIONS} == VALUES.keys()


@OF_OPTIONS
def test_an_option_takes_values_of_its_form_and_keeps_them(kind: Any, name: str, one: Any, default: Any) -> None:
    for value in VALUES[one.form][0]:
        kept = getattr(kind(**{name: value}), name)
        if one.form == "time":
            assert kept == datetime(2026, 11, 1, tzinfo=UTC)
        else:
            assert kept == value or kept == (value,) or kept == tuple(value)
    assert getattr(kind(**{name: default}), name) == default


@OF_OPTIONS
def test_an_option_refuses_other_values_by_its_name(kind: Any, name: str, one: Any, default: Any) -> None:
    for value in [*VALUES[one.form][1], *([] if default is None else [None])]:
        with pytest.raises(UsageError) as caught:
            kind(**{name: value})
        assert caught.value.reason.startswith(f"{name} takes ")
        with pytest.raises(UsageError):
            dataclasses.replace(kind(), **{name: value})


CALLS: Final[dict[str, Callable[[], Any]]] = {
    "columns": lambda: bloomcli.add("f", None),  # type: ignore[arg-type]
    "fpp": lambda: bloomcli.fold("f", fpp="0.1"),  # type: ignore[call-overload]
    "jobs": lambda: bloomcli.inspect(["f"], jobs=0),
    "fail_fast": lambda: bloomcli.remove(["f"], fail_fast="no"),  # type: ignore[call-overload]
    "on_row": lambda: bloomcli.validate(["f"], on_row=3),  # type: ignore[call-overload]
    "progress": lambda: bloomcli.add("f", "id", progress=3),  # type: ignore[call-overload]
    "path": lambda: bloomcli.probe(None, 1),  # type: ignore[call-overload]
    "paths": lambda: bloomcli.gate(None),  # type: ignore[arg-type]
    "sample": lambda: bloomcli.gate("f", sample=0.5),  # type: ignore[arg-type]
    "dialect": lambda: bloomcli.advise("f", dialect=3),  # type: ignore[arg-type]
    "runs": lambda: bloomcli.trial("f", runs=True),
    "limit": lambda: bloomcli.find("f", 1, column="id", limit=0),
    "index": lambda: bloomcli.find("f", 1, column="id", index=3),  # type: ignore[arg-type]
    "output": lambda: bloomcli.index_build("f", "id", output=3),  # type: ignore[arg-type]
    "force": lambda: bloomcli.index_update("f", "i", force="no"),  # type: ignore[arg-type]
}
"""One call for each way in which functions pass their options on, by the option that has a wrong value."""


@pytest.mark.parametrize("name", CALLS)
def test_functions_refuse_wrong_values_before_they_open_a_file(name: str) -> None:
    with pytest.raises(UsageError, match=rf"^{name} takes "):
        CALLS[name]()


@pytest.mark.parametrize(
    "call",
    [
        lambda: bloomcli.find("f", 1, column="id", jobs=0),
        lambda: bloomcli.index_build("f", "id", output="i", jobs=0),
        lambda: bloomcli.index_update("f", "i", jobs=0),
        lambda: bloomcli.gate("f", jobs=0),
        lambda: bloomcli.advise(["f"], jobs=0),
    ],
)
def test_no_function_takes_no_files_at_a_time(call: Callable[[], Any]) -> None:
    with pytest.raises(UsageError, match=r"^jobs takes a whole number of 1 or more, below 2\*\*63, not 0$"):
        call()


ARGUMENTS: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("find", "find_reachable", "find_table", "probe", "probe_table"), ("f", [1])),
    **dict.fromkeys(("index_build", "index_update"), ("f", "id")),
}


@pytest.mark.parametrize("name", sorted(set(spark.__all__) - {"BloomFilters"}))
@pytest.mark.parametrize("session", [None, "local", 3])
def test_functions_for_spark_say_that_they_need_a_session(name: str, session: Any) -> None:
    keywords = {"column": "id"} if name.startswith("find") else {}
    if name.startswith("add"):
        keywords = {"columns": "id"}
    with pytest.raises(UsageError, match="a SparkSession is needed to run on, not") as caught:
        getattr(spark, name)(session, *ARGUMENTS.get(name, ("f",)), **keywords)
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda: bloomcli.gate("f", session=3),
        lambda: bloomcli.find("f", 1, column="id", session=3),
        lambda: bloomcli.index_build("f", "id", output="i", session=3),
    ],
)
def test_what_is_no_session_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(UsageError, match="a SparkSession is needed to run on, not 3"):
        call()


def test_a_sample_of_row_groups_is_refused_where_no_values_are_read() -> None:
    with pytest.raises(UsageError, match="a sample of row groups is for --deep"):
        bloomcli.validate("f", sample_row_groups="5%")
