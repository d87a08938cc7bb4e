"""The report of `bloom inspect` on a fixture, in the form of its golden file."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Final

import bloomcli
from bloomcli.errors import BloomError
from bloomcli.report.json import document

ROOT: Final = Path(__file__).parent.parent.parent
FIXTURES: Final = ROOT / "fixtures" / "parquet"
ORC: Final = ROOT / "fixtures" / "orc"
MOSAIC: Final = ROOT / "fixtures" / "mosaic"
RULE_PAIRS: Final = ROOT / "fixtures" / "rules"
"""One folder per rule; their files have no golden files."""
WRITERS: Final = ROOT / "fixtures" / "writers"
"""Files with wrong metadata; they have no golden files."""
ENGINE_FILTERS: Final = ROOT / "fixtures" / "engine_filters"
"""Files with filters that engines keep themselves; they have no golden files."""
DATA: Final = ROOT / "tests" / "golden" / "data"


def files() -> list[Path]:
    """Every fixture that has a golden file."""
    return [*sorted(FIXTURES.glob("*.parquet")), *sorted(ORC.glob("*.orc")), *sorted(MOSAIC.glob("*.mosaic"))]


def golden(path: Path) -> Path:
    """The golden file of a fixture."""
    return DATA / f"{path.stem}.inspect.json"


def produce(path: Path) -> dict[str, Any]:
    """The report of a file, with `path` set to its name; or the error, for a file that can't be inspected."""
    try:
        report = bloomcli.inspect(path)
    except BloomError as error:
        return {"error": type(error).__name__, "message": error.reason, "offset": error.offset, "hint": error.hint}
    found: dict[str, Any] = _rounded(document("inspect", dataclasses.replace(report, path=path.name)))
    return found


def text(path: Path) -> str:
    """The golden file's text: one filter per line, for readable differences."""
    whole = produce(path)
    lines = []
    for key, value in whole.items():
        if isinstance(value, list) and value:
            rows = ",\n    ".join(json.dumps(row) for row in value)
            lines.append(f'  "{key}": [\n    {rows}\n  ]')
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _rounded(value: Any) -> Any:
    """Floats with twelve digits, because the last ones may differ between processors; without null and empty values.

    A new key of the reports then changes few golden files.
    """
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items() if item not in (None, [])}
    return value
