"""The policy of the advice, as the policy's own reader reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomcli.policy.policy_file import load
from bloomcli.policy.starter import RequiredColumn, recommended_policy

NAMES = ["id", "user.email", 'a"b', "a[1]*", "line\nbreak", " blank "]


def test_it_requires_each_column_at_its_rate_and_names_the_readers(tmp_path: Path) -> None:
    path = tmp_path / "bloom.toml"
    path.write_text(
        recommended_policy(
            [RequiredColumn("id", 0.01, "saves much"), RequiredColumn("city", 0.1, "saves\nlittle")],
            files=1234,
            readers=["spark", "trino"],
        )
    )
    rules = load(path).for_file(str(tmp_path / "a.parquet"))
    assert set(rules.require) == {"id", "city"}
    assert (rules.limits("id").max_fpp, rules.limits("city").max_fpp) == (0.01, 0.1)
    assert tuple(rules.readers) == ("spark", "trino")
    assert "for 1,234 files" in path.read_text()
    assert "  # saves much\n" in path.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_that_of_its_column_only_however_odd_it_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bloom.toml"
    path.write_text(
        recommended_policy([RequiredColumn("x", 0.01, ""), RequiredColumn(name, 0.5, f"because {name}")], files=1)
    )
    rules = load(path).for_file(str(tmp_path / "a.parquet"))
    assert {other for other in (*NAMES, "a1", "x") if rules.limits(other).max_fpp == 0.5} == {name}


@pytest.mark.parametrize(
    ("measured", "limit"), [(0.01, 0.01), (0.00801, 0.0081), (0.123, 0.13), (0.05, 0.05), (0.999, 0.99)]
)
def test_a_limit_is_the_rate_rounded_up_to_two_digits(measured: float, limit: float, tmp_path: Path) -> None:
    path = tmp_path / "bloom.toml"
    path.write_text(recommended_policy([RequiredColumn("id", measured, "")], files=1))
    assert load(path).for_file("a.parquet").limits("id").max_fpp == limit


def test_tight_sizes_and_whole_reasons_are_written(tmp_path: Path) -> None:
    path = tmp_path / "bloom.toml"
    reason = (
        "of 24 row groups, a lookup reads 1 instead of 24 for a value that the column has and 0 instead of 24 for one"
    )
    path.write_text(recommended_policy([RequiredColumn("id", 0.01, reason)], files=1, readers=["spark"], tight=True))
    assert load(path).for_file("a.parquet").size == "tight"
    lines = [line.removeprefix("  # ") for line in path.read_text().splitlines() if line.startswith("  # ")]
    assert " ".join(lines) == reason
