"""Datasets of many files: their order, the tables above them, and workers in a child process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from support.memory_store import SCHEME
from support.stores import MemoryPlace

from bloomcli.commands.options import AddOptions, InspectOptions
from bloomcli.datasets import local
from bloomcli.datasets.engine import LocalEngine, plan_files
from bloomcli.datasets.task import Task
from bloomcli.model.dataset import FileRow, Status
from bloomcli.storage import registry


def test_a_thread_of_a_library_forbids_forking() -> None:
    """A forked process would wait for ever for what the thread has locked."""
    program = (
        "import threading; from bloomcli.datasets import workers\n"
        "print(workers.can_fork(), end=' ')\n"
        "import pyarrow.compute as pc; pc.sum([1, 2])\n"
        "print(threading.active_count(), workers.can_fork())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "1", "False"]


def test_tables_are_found_above_many_objects_in_many_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    place = MemoryPlace()
    monkeypatch.setitem(registry.known_stores(), SCHEME, place.memory)
    for i in range(40):
        place.put(f"{'table' if i % 5 == 2 else 'plain'}{i}/a/b={i}/part.parquet", b"no file")
        if i % 5 == 2:
            place.put(f"table{i}/_delta_log/0.json", b"{}")
    tasks = plan_files(LocalEngine(jobs=1), [place.path()], AddOptions(columns=["id"], in_place=True))
    refused = [task.path for task in tasks if task.row is not None and "Delta" in (task.row.error or "")]
    assert len(refused) == 8
    assert all("table" in path for path in refused)
    assert sum(task.no_table for task in tasks) == 32


def test_the_largest_files_start_first_and_each_file_without_a_row_once() -> None:
    known = FileRow(path="known", status=Status.FAILED)
    sizes = [i * 37 % 101 for i in range(60)]
    tasks = [Task(options=InspectOptions(), path=f"{i}", size=size) for i, size in enumerate([*sizes, 1000, -1])]
    tasks[60] = replace(tasks[60], row=known)
    assert [tasks[i].size for i in local.largest_first(tasks)] == sorted([*sizes, -1], reverse=True)
