"""Hints for packages that only some commands need: they name packages that can be installed."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from bloomcli.errors import UnsupportedError
from bloomcli.extras import install, needed

ROOT = Path(__file__).parents[1]


def test_the_hint_names_the_packages_of_the_extra_for_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = [
        "click>=8.1",
        'sqlglot[c]>=30; extra == "advice"',
        "chdb>=4.4; extra == 'trial'",
        'duckdb>=1.3 ; extra=="trial"',
        'duckdb>=1.3; extra == "test"',
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: requirements if name == "bloomcli" else None)
    with pytest.raises(UnsupportedError) as raised, needed("query logs need", "advice"):
        raise ImportError(name="sqlglot")
    assert raised.value.hint == "pip install 'sqlglot[c]>=30'"
    assert "hint: pip install" in str(raised.value)
    assert install("trial") == "pip install 'chdb>=4.4' 'duckdb>=1.3'"
    assert install("trial", "duckdb") == "pip install 'duckdb>=1.3'"


def test_without_metadata_the_hint_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert install("s3") == "pip install 'bloomcli[s3]'"


def test_every_extra_that_the_code_names_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = set()
    for path in (ROOT / "bloomcli").rglob("*.py"):
        text = path.read_text()
        named |= {
            *re.findall(r"""\binstall\(["'](\w+)["']\)""", text),
            *re.findall(r'needed\("[^"]*", "(\w+)"\)', text),
        }
        assert "bloomcli[" not in text or path.name == "extras.py", path
    assert named == extras.keys() - {"test"}
    for extra in named & set(metadata.metadata("bloomcli").get_all("Provides-Extra") or ()):
        assert re.fullmatch(r"pip install( '[a-z]+[^']*')+", install(extra)), "by the installed metadata"


def test_the_extra_for_spark_brings_a_pyspark_that_has_libraries_for_tables() -> None:
    from bloomcli.tables.libraries import _SPARK

    (requirement,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["spark"]
    major, minor = map(int, _SPARK.split("."))
    assert requirement.endswith(f",<{major}.{minor + 1}")
