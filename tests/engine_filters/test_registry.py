"""Filters that engines keep: no module outside of an engine's folder knows its name, and other files have none."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.modules import facts

import bloomcli
from bloomcli.engine_filters import registry

PACKAGE = Path(bloomcli.__file__).parent
FOLDERS = {path.parent.name for path in (PACKAGE / "engine_filters").glob("*/__init__.py")}
OF_TABLES = {"tables/opening.py", "tables/names.py", "storage/base.py", "rules/reader_table.py", "cli/versions.py"}
"""Modules that refuse the engines' tables, name a reader, or show the version of a file format's package."""


def test_every_folder_is_asked() -> None:
    assert set(registry.MODULES) == FOLDERS


@pytest.mark.slow
def test_no_other_module_has_an_engine_s_name_in_its_texts() -> None:
    naming = set()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        texts = {text for text in facts(path).literals if isinstance(text, str) and "\n" not in text}
        sentences = {text for text in texts if text.endswith((".", "``"))}  # docstrings
        # Databricks is a platform, too, which stores and readers name
        found = {
            engine for engine in FOLDERS - {"databricks"} for text in texts - sentences if engine in text.lower()
        }
        if found and not name.startswith(tuple(f"engine_filters/{engine}/" for engine in found)):
            naming.add(name)
    assert {name for name in naming if not name.startswith("formats/mosaic/")} - OF_TABLES == {
        "engine_filters/registry.py"
    }
