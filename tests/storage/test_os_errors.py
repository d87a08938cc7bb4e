"""Errors of the system become subclasses of BloomError, with the path and the system's reason."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from support import datasets

import bloomcli
from bloomcli.errors import BloomError, UnreadableError, WriteError
from bloomcli.policy.policy_file import find
from bloomcli.storage import os_errors
from bloomcli.storage.listing import expand, is_dataset
from bloomcli.storage.managed_tables import table_above
from bloomcli.storage.registry import LOCAL

UNSURE = (errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EINTR, errno.EACCES, errno.EPERM)
"""Errors of stat that don't show whether a file exists."""


def failing(monkeypatch: pytest.MonkeyPatch, name: str, error: int) -> None:
    """Make `stat` and `lstat` of files with a name fail."""
    for function in ("stat", "lstat"):
        real = getattr(os, function)

        def fails(path: Any, *arguments: Any, real: Any = real, **options: Any) -> Any:
            if not isinstance(path, int) and Path(os.fspath(path)).name == name:
                raise OSError(error, os.strerror(error), os.fspath(path))
            return real(path, *arguments, **options)

        monkeypatch.setattr(os, function, fails)


@pytest.mark.parametrize("error", UNSURE)
def test_a_name_that_cannot_be_accessed_is_not_one_that_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    failing(monkeypatch, "x", error)
    for look in (
        os_errors.status,
        os_errors.path_exists,
        os_errors.is_directory,
        os_errors.is_file,
        os_errors.is_link,
    ):
        assert not look(tmp_path / "y")
        assert not look(f"{tmp_path}/\0")
        assert not look(tmp_path / ("long" * 100))
        with pytest.raises(UnreadableError, match=os.strerror(error).lower()) as caught:
            look(tmp_path / "x")
        assert caught.value.path == str(tmp_path / "x")


@pytest.mark.parametrize(
    ("name", "error"),
    [("_delta_log", errno.EIO), (".hoodie", errno.ESTALE), ("metadata", errno.EINTR), ("_metadata", errno.EACCES)],
)
def test_a_file_is_not_changed_if_it_is_unknown_whether_a_table_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: int
) -> None:
    path = datasets.write(tmp_path / "part.parquet", rows=10)
    before = path.read_bytes()
    failing(monkeypatch, name, error)
    with pytest.raises(UnreadableError) as caught:
        bloomcli.add(path, ["id"], in_place=True)
    assert os.strerror(error).lower() in str(caught.value)
    assert Path(caught.value.path or "").name == name
    assert path.read_bytes() == before


def test_tables_above_a_directory_that_may_not_be_searched_are_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = datasets.write(tmp_path / "part.parquet", rows=10)
    failing(monkeypatch, "_delta_log", errno.EACCES)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert table_above(LOCAL, str(path)) is None


def test_a_metadata_directory_that_cannot_be_listed_may_be_icebergs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "metadata").mkdir()
    path = datasets.write(tmp_path / "part.parquet", rows=10)

    def fails(directory: Any) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied", str(directory))

    monkeypatch.setattr(os, "listdir", fails)
    with pytest.raises(UnreadableError, match="Iceberg") as caught:
        table_above(LOCAL, str(path))
    assert caught.value.path == str(tmp_path / "metadata")


def test_a_path_that_cannot_be_accessed_is_an_error_or_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = errno.ESTALE
    for name in ("x", "y", "l"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.parquet").touch()
    failing(monkeypatch, "x", error)
    with pytest.raises(UnreadableError, match=os.strerror(error).lower()):
        is_dataset([str(tmp_path / "x")])
    rows = expand([str(tmp_path / "x"), str(tmp_path / "y")])
    assert [(row.relative, row.problem is None) for row in rows] == [("x", False), ("a.parquet", True)]
    rows = expand([f"{tmp_path}/[xy]"])  # what a pattern matches is looked at too
    assert any(row.problem is not None and os.strerror(error).lower() in str(row.problem) for row in rows)


@pytest.mark.parametrize(("name", "error"), [("bloom.toml", errno.EIO), ("pyproject.toml", errno.ESTALE)])
def test_a_policy_that_cannot_be_accessed_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: int
) -> None:
    failing(monkeypatch, name, error)
    with pytest.raises(UnreadableError, match=os.strerror(error).lower()):
        find(tmp_path)
    failing(monkeypatch, name, errno.EACCES)


@pytest.mark.parametrize("command", ["inspect", "probe", "dump", "validate", "add", "remove", "fold"])
def test_functions_raise_no_os_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    path = datasets.write(tmp_path / "part.parquet", rows=10)
    bloomcli.add(path, ["id"], in_place=True)
    for what, kind in (
        (OSError(errno.EIO, "Input/output error"), UnreadableError),
        (OSError(errno.ENOSPC, "No space left on device"), WriteError),
        (InterruptedError(errno.EINTR, "Interrupted system call"), UnreadableError),
        (MemoryError(), UnreadableError),
    ):

        def fails(*_: Any, what: BaseException = what, **__: Any) -> None:
            raise what

        with monkeypatch.context() as patch:
            patch.setattr(
                f"bloomcli.commands.{'change' if command in ('add', 'remove', 'fold') else command}.open_file", fails
            )
            options: dict[str, Any] = {"in_place": True} if command in {"add", "remove", "fold"} else {}
            arguments = {"add": (["id"],), "probe": (["1"],)}.get(command, ())
            with pytest.raises(kind) as caught:
                getattr(bloomcli, command)(path, *arguments, **options)
            assert caught.value.path == str(path)
            assert caught.value.__cause__ is what
            assert caught.value.exit_code == 3


def test_an_error_that_only_a_bug_causes_is_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match="Bad file descriptor"), os_errors.convert_os_errors("x"):
        os.fstat(1 << 20)


def test_a_closed_pipe_is_not_converted() -> None:
    with pytest.raises(BrokenPipeError), os_errors.convert_os_errors("x"):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def test_the_path_in_the_systems_error_takes_precedence() -> None:
    reported: list[str | None] = []
    for error in (OSError(errno.EIO, "x", b"named"), OSError(errno.EIO, "x"), OSError(errno.EIO, "x", 3)):
        with pytest.raises(BloomError) as caught, os_errors.convert_os_errors("worked on"):
            raise error
        reported.append(caught.value.path)
    assert reported == ["named", "worked on", "worked on"]
