"""What a run that nothing disturbs makes of a dataset."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import datasets

import bloomcli


@pytest.fixture(scope="module")
def undisturbed(origin: Path) -> dict[str, str]:
    """The results of an uninterrupted run."""
    lake = shutil.copytree(origin, origin.with_name("undisturbed"))
    assert bloomcli.add([lake], ["id"], in_place=True, jobs=1).exit_code == 3
    return datasets.digests(lake)
