"""Policies: which files and columns a part is about, which part wins, and what options change."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support import work

from bloomcli.errors import UsageError
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding
from bloomcli.policy import globs
from bloomcli.policy.policy import ColumnPart, FilePolicy, Limits, Part, Policy, with_options
from bloomcli.policy.table_schema import parse

BASE = "/team/policies"
ORDERS = parse(
    '{"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": true, "metadata": {}}]}', "o.json"
)


def about(*paths: str, base: str = BASE) -> Callable[[str], bool]:
    """Whether a part with these globs is about a file."""
    policy = Policy(base=base, files=(Part(paths=paths, max_fpp=0.5),))
    return lambda path: policy.for_file(path).max_fpp is not None


@pytest.mark.parametrize(
    ("paths", "inside", "outside"),
    [
        (["orders/**"], ["orders/a.parquet", "orders/x/y/a.parquet"], ["a.parquet", "x/orders/a.parquet", "orders"]),
        (["orders"], ["orders/a.parquet", "x/orders/a.parquet", "orders"], ["order/a", "orders2/a"]),
        (["/orders"], ["orders/a.parquet", "orders"], ["x/orders/a"]),
        (["./orders"], ["orders/a.parquet", "orders"], ["x/orders/a"]),
        (["orders/"], ["orders/a", "x/orders/a"], ["orders"]),
        (["*.tmp"], ["a.tmp", "x/a.tmp", "x.tmp/a"], ["a.tmp2"]),
        (["a/*/c.orc"], ["a/b/c.orc"], ["a/c.orc", "a/b/b/c.orc"]),
        (["a/**/c.orc"], ["a/c.orc", "a/b/c.orc", "a/b/b/c.orc"], ["b/a/c.orc"]),
        (["year=202[34]/**"], ["year=2023/a", "year=2024/a"], ["year=2025/a", "x/year=2023/a"]),
        (["lake/**", "!lake/tmp/**"], ["lake/a"], ["lake/tmp/a"]),
        (["lake/**", "!lake/tmp/**", "lake/tmp/keep/**"], ["lake/a", "lake/tmp/keep/a"], ["lake/tmp/a"]),
        ([r"\!odd/**", r"\#x/**", r"a\*b/**"], ["!odd/a", "#x/a", "a*b/a"], ["odd/a", "axb/a"]),
        (["one/**", "two/**"], ["one/a", "two/a"], ["three/a"]),
    ],
)
def test_globs_mean_what_they_mean_to_git(paths: list[str], inside: list[str], outside: list[str]) -> None:
    matches = about(*paths)
    assert [p for p in inside if not matches(f"{BASE}/{p}")] == []
    assert [p for p in outside if matches(f"{BASE}/{p}")] == []


def test_relative_paths_are_taken_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake").mkdir()
    matches = about("lake/orders/**", base=str(tmp_path))
    monkeypatch.chdir(tmp_path / "lake")
    assert matches("orders/a.parquet")
    assert matches("./orders/a.parquet")
    assert matches("../lake/orders/a.parquet")
    assert not matches("lake/orders/a.parquet")
    monkeypatch.chdir(tmp_path)
    assert matches("lake/orders/a.parquet")
    assert not matches("orders/a.parquet")


URI = "s3://bucket/lake/orders/a.parquet"


@pytest.mark.parametrize(
    ("path", "matching", "others"),
    [
        (URI, ["s3://bucket/lake/**", "s3://*/lake/**", "**/orders/**", "*.parquet"], ["orders/**"]),
        (URI, [], ["s3://other/**", "gs://bucket/lake/**", "lake/orders/**"]),
        ("/data/lake/a.orc", ["/data/lake/**", "**/lake/**", "*.orc", "lake"], ["data/lake/**"]),
        (f"{BASE}/orders/a", [f"{BASE}/orders/**", "/orders/**"], [f"{BASE}/a/**"]),
    ],
    ids=["a URI", "a URI elsewhere", "a file outside the policy's folder", "the folder spelled out, or a slash"],
)
def test_uris_and_files_outside_are_matched_whole(path: str, matching: list[str], others: list[str]) -> None:
    assert [glob for glob in matching if not about(glob)(path)] == []
    assert [glob for glob in others if about(glob)(path)] == []
    assert not about("**", f"!{matching[0]}")(path) if matching else True


@pytest.mark.parametrize("base", ["s3://bucket/lake", "s3a://bucket/lake", BASE])
@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_all_schemes_of_a_store_mean_the_same(scheme: str, base: str) -> None:
    path = f"{scheme}://bucket/lake/orders/a.parquet"
    for glob in ("s3://bucket/lake/orders/**", "s3a://bucket/lake/**", *(["orders/**"] if base != BASE else [])):
        assert about(glob, base=base)(path)
        assert Policy(base=base, exclude=("*.parquet", f"!{glob}")).excludes(path) is False
    assert not about("gs://bucket/lake/**", "s3://other/**", base=base)(path)


def test_the_policys_own_folder_and_links_to_it_are_known(tmp_path: Path) -> None:
    assert about("*.parquet", base=str(tmp_path))(str(tmp_path / "a.parquet"))
    assert about("/a.parquet", base="/")("/a.parquet")
    (tmp_path / "real" / "orders").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for base, path in (("link", "real"), ("real", "link")):
        assert about("orders/**", base=str(tmp_path / base))(str(tmp_path / path / "orders" / "a.orc"))


def test_excluded_files_and_exceptions_from_them() -> None:
    policy = Policy(base=BASE, exclude=("tmp/**", "*.bak", "!tmp/keep.orc"))
    assert policy.excludes(f"{BASE}/tmp/a.orc")
    assert policy.excludes(f"{BASE}/x/a.bak")
    assert not policy.excludes(f"{BASE}/tmp/keep.orc")
    assert not policy.excludes(f"{BASE}/x/tmp/a.orc")
    assert not Policy(base=BASE).excludes(f"{BASE}/tmp/a.orc")


@pytest.mark.parametrize(
    ("glob", "reason"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("!", "empty"),
        ("#x", "comment"),
        ("../x/**", "absolute paths"),
        ("a/./b", "absolute paths"),
        ("a//b", "between two slashes"),
        ("/", "between two slashes"),
        ("s3://bucket//a", "between two slashes"),
        ("a/[b", "brackets"),
        ("[z-a]", "compile"),
        ("a\\", "compile"),
    ],
)
def test_an_invalid_glob_says_why(glob: str, reason: str) -> None:
    assert reason in (globs.problem(glob) or "")


# --- merging

WHOLE = Part(
    require=("id",),
    max_fpp=0.01,
    severity={"filter-fpp": Severity.WARNING, "filter-no-length": Severity.ERROR},
    off={"filter-draft": "old"},
    columns=(ColumnPart(names=("user.*",), limits=Limits(max_fpp=0.05)),),
    readers=("spark",),
)
FIRST = Part(
    paths=("orders/**",),
    require=("user.email", "id"),
    max_fpp=0.02,
    max_oversize=4,
    readers=("trino", "duckdb"),
    table=ORDERS,
)
SECOND = Part(
    paths=("orders/new/**",),
    max_fpp=0.001,
    severity={"filter-fpp": Severity.NOTE},
    off={"filter-draft": "still", "filter-untrusted": "known"},
    columns=(ColumnPart(names=("user.name",), limits=Limits(require=True, max_fpp=0.1)),),
    readers=(),
)
POLICY = Policy(path="bloom.toml", base=BASE, whole=WHOLE, files=(FIRST, SECOND))


def test_what_is_asked_of_all_files_is_asked_of_each() -> None:
    merged = POLICY.for_file("/elsewhere/a.orc")
    assert merged == FilePolicy(
        require=("id",),
        max_fpp=0.01,
        severity=WHOLE.severity,
        off=WHOLE.off,
        columns=WHOLE.columns,
        readers=("spark",),
        readers_given=True,
        advice=True,
    )


def test_later_parts_win_and_required_columns_add_up() -> None:
    merged = POLICY.for_file(f"{BASE}/orders/new/a.orc")
    assert merged.require == ("id", "user.email")
    assert merged.required() == ("id", "user.email", "user.name")
    assert (merged.max_fpp, merged.max_oversize) == (0.001, 4)
    assert merged.severity == {"filter-fpp": Severity.NOTE, "filter-no-length": Severity.ERROR}
    assert merged.off == {"filter-draft": "still", "filter-untrusted": "known"}
    assert merged.readers == ()
    assert merged.table is ORDERS
    assert POLICY.for_file(f"{BASE}/orders/a.orc").readers == ("trino", "duckdb")


def test_a_columns_limit_goes_before_its_files_and_a_later_one_before_an_earlier() -> None:
    merged = POLICY.for_file(f"{BASE}/orders/new/a.orc")
    assert merged.limits("id") == Limits(max_fpp=0.001, max_oversize=4)
    assert merged.limits("user.email") == Limits(max_fpp=0.05, max_oversize=4)
    assert merged.limits("user.name") == Limits(require=True, max_fpp=0.1, max_oversize=4)


def test_a_column_may_be_named_as_it_is_though_it_looks_like_a_glob() -> None:
    merged = FilePolicy(columns=(ColumnPart(names=("a[0]",), limits=Limits(max_fpp=0.3)),))
    assert merged.limits("a[0]").max_fpp == 0.3
    assert merged.limits("a0").max_fpp == 0.3
    assert merged.limits("a1").max_fpp is None


def test_findings_get_the_policys_severity_and_the_reason_why_they_are_off() -> None:
    off = ColumnPart(names=("user.*",), limits=Limits(), off={"filter-fpp": "wide"})
    policy = replace(POLICY, whole=WHOLE._replace(columns=(off,))).for_file("/a.orc")
    found = Finding(id="filter-fpp", severity=Severity.ERROR, message="", column="id")
    assert policy.judge(found) == replace(found, severity=Severity.WARNING)
    assert policy.judge(replace(found, column="user.id")).off == "wide"
    assert policy.judge(replace(found, column=None)).off is None
    assert policy.judge(replace(found, id="filter-draft")).off == "old"
    assert policy.judge(replace(found, id="filter-type")) == replace(found, id="filter-type")


def test_no_policy_asks_nothing_and_gives_no_advice() -> None:
    assert Policy().for_file("a.orc") == FilePolicy()
    assert not Policy().excludes("a.orc")
    assert Policy(path="bloom.toml").for_file("a.orc") == FilePolicy(advice=True)


# --- pickling and speed


def test_policies_go_to_other_processes_without_what_they_found_out() -> None:
    policy = replace(POLICY, exclude=("*.tmp",))
    fresh = pickle.dumps(policy)
    before = policy.for_file(f"{BASE}/orders/a.orc")
    assert pickle.dumps(policy) == fresh
    other = pickle.loads(fresh)
    assert other == policy
    assert other.for_file(f"{BASE}/orders/a.orc") == before
    assert other.excludes("/x/a.tmp")
    assert repr(other) == repr(policy)


def test_files_of_the_same_parts_share_what_is_asked_of_them() -> None:
    assert POLICY.for_file(f"{BASE}/orders/a.orc") is POLICY.for_file(f"{BASE}/orders/b/c.orc")
    assert POLICY.for_file(f"{BASE}/orders/a.orc") is not POLICY.for_file("/b.orc")


def test_a_changed_policy_forgets_what_the_old_one_found() -> None:
    assert POLICY.for_file("/a.orc").max_fpp == 0.01
    assert replace(POLICY, whole=Part(max_fpp=0.3)).for_file("/a.orc").max_fpp == 0.3


def test_the_globs_of_a_policy_are_compiled_once_for_all_files() -> None:
    files = tuple(Part(paths=(f"table{i}/**", f"*.x{i}"), max_fpp=0.01) for i in range(5))
    policy = Policy(base=BASE, files=files, exclude=("**/tmp/**",))

    def ask(files: range) -> None:
        for i in files:
            path = f"{BASE}/table{i % 9}/year=2024/month={i % 12}/part-{i:05}.parquet"
            assert not policy.excludes(path)
            policy.for_file(path)

    ask(range(108))  # compiles the globs, and sees every directory
    assert work.calls(lambda: ask(range(10_000))) < 150 * 10_000, "55 for each file are usual"
    assert len(policy._cache.merged) == 6


# --- options


def test_a_limit_that_is_typed_goes_before_the_policys_everywhere() -> None:
    merged = with_options(POLICY, max_fpp=0.2, max_oversize=2).for_file(f"{BASE}/orders/new/a.orc")
    for column in ("id", "user.email", "user.name"):
        assert (merged.limits(column).max_fpp, merged.limits(column).max_oversize) == (0.2, 2)
    assert merged.limits("user.name").require
    assert with_options(POLICY, max_fpp=0.2).for_file(f"{BASE}/orders/a.orc").max_oversize == 4


def test_readers_and_a_table_that_are_typed_take_the_place_of_the_policys() -> None:
    other = parse('{"type": "struct", "fields": []}', "other.json")
    policy = with_options(POLICY, readers=["duckdb", "duckdb"], table=other)
    for path in ("/a.orc", f"{BASE}/orders/a.orc", f"{BASE}/orders/new/a.orc"):
        assert policy.for_file(path).readers == ("duckdb",)
        assert policy.for_file(path).table is other


def test_what_is_not_typed_stays() -> None:
    assert with_options(POLICY) == POLICY
    changed = with_options(POLICY, max_fpp=0.2, readers=["spark"])
    assert changed.path == POLICY.path
    for path in ("/a.orc", f"{BASE}/orders/new/a.orc"):
        assert changed.for_file(path).severity == POLICY.for_file(path).severity
        assert changed.for_file(path).off == POLICY.for_file(path).off
    assert changed.exclude == POLICY.exclude


@pytest.mark.parametrize(
    ("option", "said"),
    [
        *(({"max_fpp": rate}, "between 0 and 1") for rate in (0, 1, -0.1, float("nan"))),
        *(({"max_oversize": factor}, "at least once") for factor in (0.99, float("inf"), float("nan"))),
    ],
)
def test_a_limit_out_of_range_is_refused(option: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        with_options(Policy(), **option)  # type: ignore[arg-type]


def test_options_alone_make_a_policy() -> None:
    policy = with_options(Policy(), max_fpp=0.1)
    assert policy.for_file(os.devnull) == FilePolicy(max_fpp=0.1)
