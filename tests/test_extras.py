"""Hints for packages that only some commands need: they name packages that can be installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from bloomcli.errors import UnsupportedError, install, needed

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
        assert "bloomcli[" not in text or path.name == "errors.py", path
    assert named == extras.keys() - {"test"}
    for extra in named & set(metadata.metadata("bloomcli").get_all("Provides-Extra") or ()):
        assert re.fullmatch(r"pip install( '[a-z]+[^']*')+", install(extra)), "by the installed metadata"


def test_the_extra_for_spark_brings_a_pyspark_that_has_libraries_for_tables() -> None:
    from bloomcli.tables.java import _SPARK

    (requirement,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["spark"]
    major, minor = map(int, _SPARK.split("."))
    assert requirement.endswith(f",<{major}.{minor + 1}")


def test_without_its_packages_each_command_names_what_to_install(tmp_path: Path) -> None:
    """The packages of all extras at once are missing, and what they bring along."""
    (tmp_path / "q.sql").write_text("select 1;")
    file = str(ROOT / "fixtures" / "parquet" / "orders.parquet")
    encrypted = str(ROOT / "fixtures" / "parquet" / "pyarrow_encrypted_footer.parquet")
    commands = {
        "sqlglot": ["advise", file, "--queries", str(tmp_path / "q.sql")],
        "jinja2": ["inspect", file, "--report", f"html={tmp_path / 'page'}"],
        "boto3": ["inspect", "s3://lake/orders.parquet"],
        "azure-storage-blob": ["inspect", "az://account/lake/orders.parquet"],
        "google-cloud-storage": ["inspect", "gs://lake/orders.parquet"],
        "urllib3": ["inspect", "https://example.org/orders.parquet"],
        "pyspark": ["inspect", file, "--engine", "spark"],
        "cryptography": ["inspect", encrypted, "--footer-key", "hex:" + "30" * 16],
    }
    missing = ["sqlglot", "jinja2", "boto3", "botocore", "azure", "google.auth", "google.cloud", "urllib3"]
    missing += ["requests", "pyspark", "cryptography", "PIL", "markdown_it"]
    program = (
        "import json, sys\n"
        "missing, commands = map(json.loads, sys.argv[1:])\n"
        "sys.modules.update(dict.fromkeys(missing))\n"
        "from bloomcli.cli import run\n"
        "for command in commands:\n"
        "    print(run(command), file=sys.stderr, flush=True)\n"
    )
    arguments = [json.dumps(missing), json.dumps([*commands.values()])]
    python = [sys.executable, "-c", program]
    done = subprocess.run([*python, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
    said = re.findall(r"bloom: .*\nhint: (pip install .*)\n(\d+)\n", done.stderr)
    assert [code for _, code in said] == ["4"] * len(commands), done.stderr
    assert all(package in hint for package, (hint, _) in zip(commands, said, strict=True)), done.stderr
