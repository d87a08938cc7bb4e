"""The examples of docs/find.md for an index, and for engines that read the remaining files, run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PAGE = ROOT / "docs" / "find.md"
ORDERS = ROOT / "fixtures" / "parquet" / "orders.parquet"
_BLOCK = re.compile(r"^(<!-- not run[^\n]*\n)?```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


OTHER_ENGINES = (
    """
import polars
files = open("files.txt").read().splitlines()
print(polars.scan_parquet(files).filter(polars.col("id") == 42).collect())
""",
    """
import datafusion, pyarrow.dataset
files = open("files.txt").read().splitlines()
orders = pyarrow.dataset.dataset(files, format="parquet")
context = datafusion.SessionContext()
context.register_dataset("orders", orders)
print(context.sql("SELECT id, status FROM orders WHERE id = 42"))
""",
)
"""Engines that read the page's list of files, beside those that the page shows."""


@pytest.mark.slow
def test_the_commands_and_engines_of_the_page_run_one_after_the_other(tmp_path: Path) -> None:
    for name in ("data/orders/a.parquet", "data/orders/day=2/b.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ORDERS, tmp_path / name)
    done = 0
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    for reason, language, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if reason:
            continue
        text = text.replace("/data/", f"{tmp_path}/data/")
        script = [sys.executable, "-c", text]
        if language == "sh":
            script = ["bash", "-ec", f'bloom() {{ {sys.executable} -m bloomcli "$@"; }}\n{text}']
        found = subprocess.run(script, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert found.returncode == 0, f"{text}\n{found.stderr}"
        assert language == "sh" or "42" in found.stdout
        done += 1
    for text in OTHER_ENGINES:
        found = subprocess.run(
            [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stderr
        assert "42" in found.stdout
    assert done >= 3
    assert (tmp_path / "files.txt").read_text().splitlines() == [
        f"{tmp_path}/data/orders/a.parquet",
        f"{tmp_path}/data/orders/day=2/b.parquet",
    ]
