"""For any bytes of a file, its task returns a row, and the file stays unchanged unless the row reports a change."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import datasets
from support.tasks import CHANGING, options_of

import bloomcli
from bloomcli.datasets import task
from bloomcli.datasets.task import Task
from bloomcli.model.dataset import Status

pytestmark = pytest.mark.slow

COMMANDS: dict[str, dict[str, Any]] = {
    "inspect": {},
    "probe": {"values": ["3"], "column": "id"},
    "validate": {"deep": True},
    "add": {"columns": ("id",), "replace": True},
    "remove": {},
    "fold": {},
}
ENDS = (b"", b"PAR1", b"PARE", b"ORC", b"ORC\x03", b"MOSA", b"\x10\0\0\0PAR1", b"\xff\xff\xff\x7fPAR1")


def check(data: bytes, command: str, suffix: str, walked: bool) -> Status:
    """Run the task in place on a file of these bytes; returns the row."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a" + suffix)
        path.write_bytes(data)
        target = {"in_place": True} if command in CHANGING else {}
        row = task.run(
            Task(
                options=options_of(command, COMMANDS[command], **target),
                path=str(path),
                size=len(data),
                walked=walked,
            )
        )
        assert row.path == str(path)
        assert row.exit_code != 70, row.error
        assert (row.status is Status.FAILED) == (row.error is not None)
        assert (row.exit_code in (2, 3, 4)) == (row.status is Status.FAILED)
        assert [p.name for p in Path(folder).iterdir()] == [path.name]
        if row.status is not Status.DONE or command not in CHANGING:
            assert path.read_bytes() == data
        return row.status


@given(
    head=st.sampled_from(ENDS),
    body=st.binary(max_size=300),
    tail=st.sampled_from(ENDS),
    command=st.sampled_from(sorted(COMMANDS)),
    suffix=st.sampled_from(["", ".parquet", ".orc", ".mosaic", ".txt"]),
    walked=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_noise_fails_or_is_skipped(
    head: bytes, body: bytes, tail: bytes, command: str, suffix: str, walked: bool
) -> None:
    status = check(head + body + tail, command, suffix, walked)
    if status is Status.SKIPPED:
        assert walked
        assert suffix in ("", ".txt")
    elif status is Status.DONE:  # a filter's header and bits alone may be noise too
        assert command in ("inspect", "validate", "probe")


@pytest.fixture(scope="module", params=["parquet", "orc"])
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[bytes, str]]:
    """A file with filters, and its suffix."""
    path = datasets.write(tmp_path_factory.mktemp("sound") / f"a.{request.param}", rows=60)
    bloomcli.add(path, ["id"], in_place=True)
    yield path.read_bytes(), path.suffix


@given(data=st.data(), command=st.sampled_from(sorted(COMMANDS)))
@settings(max_examples=200, deadline=None)
def test_a_damaged_file_is_a_row(sound: tuple[bytes, str], data: st.DataObject, command: str) -> None:
    damaged = bytearray(sound[0])
    spots = data.draw(st.lists(st.tuples(st.integers(0, len(damaged) - 1), st.integers(0, 255)), max_size=6))
    for at, byte in spots:
        damaged[at] = byte
    check(bytes(damaged[: data.draw(st.integers(len(damaged) // 2, len(damaged)))]), command, sound[1], True)
