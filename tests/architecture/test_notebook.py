"""docs/notebook.ipynb shows what its cells return. ``python tests/architecture/test_notebook.py`` writes it again."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def run(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of a cell, as Jupyter stores them: what is printed, and the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/html": lines(value._repr_html_())} if hasattr(value, "_repr_html_") else {}
        data["text/plain"] = lines(repr(value))
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def lines(text: str) -> list[str]:
    """A text as notebooks store it."""
    return text.splitlines(keepends=True)


def current(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs that its cells have now. They run in an empty folder."""
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        cells = [
            {**cell, "outputs": run("".join(cell["source"]), names)} if cell["cell_type"] == "code" else cell
            for cell in notebook["cells"]
        ]
    return {**notebook, "cells": cells}


def without_times(notebook: dict[str, Any]) -> str:
    """The notebook as text, without times, versions of libraries, and the HTML that is pandas' own."""
    for cell in notebook["cells"]:
        for data in (output["data"] for output in cell.get("outputs", ()) if "data" in output):
            if 'class="dataframe"' in "".join(data.get("text/html", ())):
                del data["text/html"]
    text = json.dumps(notebook, indent=1)
    text = re.sub(r"seconds=[\d.e-]+|[\d.]+ m?s\b|\d+ min \d+ s", "TIME", text)
    return re.sub(r"parquet-cpp-arrow version [\d.]+", "VERSION", text)


def test_the_notebook_shows_what_its_cells_return() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert sum(cell["cell_type"] == "code" for cell in notebook["cells"]) >= 8
    assert without_times(current(notebook)) == without_times(notebook), f"run python {__file__}"


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "80")
    text = json.dumps(current(json.loads(NOTEBOOK.read_text(encoding="utf-8"))), indent=1, ensure_ascii=False)
    sys.exit(not NOTEBOOK.write_text(text + "\n", encoding="utf-8"))
