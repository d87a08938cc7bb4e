"""A folder of Databricks' filter indexes is reported where it is, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from support.golden import ENGINE_FILTERS

import bloomcli


def test_inspect_and_validate_report_the_folder_and_what_vacuum_does_to_it(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes((ENGINE_FILTERS / "hudi-simple.parquet").read_bytes())
    assert "_delta_index" not in dict(bloomcli.inspect(path).details)
    assert bloomcli.validate(path).findings == ()
    (tmp_path / "_delta_index").mkdir()
    assert "VACUUM of open-source Delta deletes" in dict(bloomcli.inspect(path).details)["_delta_index"]
    (found,), (of_folder,) = bloomcli.validate(path).findings, bloomcli.validate(tmp_path).findings
    assert (found.id, found.message) == ("filter-not-checked", of_folder.message)
    assert "VACUUM of open-source Delta deletes" in found.message
