"""hyparquet, the only released reader of ALP, reads ALP pages as `bloom` does."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from conftest import need
from support import alp
from support.servers import install
from support.whole_pages import pages_of

pytestmark = pytest.mark.interop

ROOT: Final = Path(__file__).parents[2]
_SCRIPT: Final = """
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
const [path, ...columns] = process.argv.slice(2)
const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path), columns })
const bits = value => {
  if (Array.isArray(value)) return value.map(bits)
  if (value === null || value === undefined) return null
  const found = new DataView(new ArrayBuffer(8))
  found.setFloat64(0, value)
  return found.getBigUint64(0).toString(16)
}
console.log(JSON.stringify(columns.map(name => rows.map(row => bits(row[name])))))
"""


def bits(value: float | None) -> str | None:
    """A value's bits as the script prints them."""
    return None if value is None else f"{int.from_bytes(struct.pack('>d', value), 'big'):x}"


def hyparquet(path: Path, columns: list[str], folder: Path) -> list[list[Any]]:
    """The bits of the values of columns, as DOUBLE."""
    package, node = install.program("hyparquet"), shutil.which("node")
    need(package is not None, "hyparquet: python tests/support/servers/install.py hyparquet")
    need(node is not None, "node")
    assert package is not None
    script = folder / "read.mjs"
    script.write_text(_SCRIPT)
    (folder / "node_modules").symlink_to(package.parents[1])
    done = subprocess.run([str(node), script, path, *columns], capture_output=True, check=True, text=True)
    found: list[list[Any]] = json.loads(done.stdout)
    return found


def test_hyparquet_reads_the_values_that_were_encoded(tmp_path: Path) -> None:
    """So the tests' encoder follows the specification, with which the other tests compare."""
    random = np.random.default_rng(7)
    doubles = [round(float(v), 2) for v in random.normal(100, 20, 3000)]
    for at, value in enumerate((-0.0, 0.1 + 0.2, float("inf"), 1e300, -5e-324, float("nan"))):
        doubles[at * 311] = value
    floats = [None if n % 7 == 3 else v for n, v in enumerate(doubles)]
    table = pa.table(
        {
            "d": pa.array(doubles, pa.float64()),
            "f": pa.array(floats, pa.float32()),
            "l": pa.array([None if v is None else [v, v] for v in floats], pa.list_(pa.float64())),
        }
    )
    path = tmp_path / "f.parquet"
    for log, version, codec in ((3, "1.0", "none"), (10, "2.0", "snappy")):
        options = {"data_page_version": version, "compression": codec, "data_page_size": 4000, "row_group_size": 1100}
        path.write_bytes(alp.written(table, ["d", "f", "l.list.element"], log=log, **options))
        wanted = [
            list(map(bits, table["d"].to_pylist())),
            list(map(bits, table["f"].to_pylist())),
            [None if v is None else list(map(bits, v)) for v in table["l"].to_pylist()],
        ]
        (folder := tmp_path / version).mkdir()
        assert hyparquet(path, ["d", "f", "l"], folder) == wanted
        stored = [value for page in pages_of(path) for value in page.values()]
        assert [bits(struct.unpack("<d", value)[0]) for value in stored] == wanted[0]
