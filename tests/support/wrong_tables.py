"""Changes what a table's metadata say about its data files, as a faulty writer would: the files stay as they are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bloomcli.tables.iceberg.opening import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Edit = Callable[[dict[str, Any]], object]
"""Changes the JSON of an entry in place."""


def change_manifest(spark: SparkSession, name: str, edit: Edit) -> None:
    """Replace the entries of an Iceberg table's data files: `edit` gets the JSON of ContentFileParser."""
    opened = open_table(spark, name)
    assert opened is not None
    parser, mapper = opened.java.iceberg("ContentFileParser"), opened.java.iceberg("util.JsonUtil").mapper()
    change = opened.table.newOverwrite()
    for record in (file.record for file in opened.files()):
        entry = json.loads(parser.toJson(record.file, record.partition_spec))
        edit(entry)
        wrong = parser.fromJson(mapper.readTree(json.dumps(entry)), record.partition_spec)
        change.deleteFile(record.file).addFile(wrong)
    change.commit()


def set_value(entry: dict[str, Any], key: str, field: int, value: Any) -> None:
    """Set the value of a field id in one of the entry's maps, such as ``lower-bounds``."""
    found = entry[key]
    found["values"][found["keys"].index(field)] = value


def with_log(source: Path, folder: Path, edit: Edit) -> str:
    """Copy a Delta table, change the entries of its data files, and return the copy's name: `edit` gets an ``add``
    with parsed ``stats``."""
    shutil.copytree(source, folder)
    for path in sorted((folder / "_delta_log").glob("*.json")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if (entry := line.get("add")) is not None:
                entry["stats"] = json.loads(entry["stats"])
                edit(entry)
                entry["stats"] = json.dumps(entry["stats"])
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"delta.`{folder}`"
