"""ClickHouse in a separate process, because chdb installs signal handlers and an allocator.

python tests/support/clickhouse.py     reads queries and writes rows and counters, one JSON line each
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

_PAGES: Final = "SELECT value FROM system.events WHERE event = 'ParquetReadPages'"
_EXACT: Final = {"output_format_json_quote_64bit_integers": 0, "output_format_json_quote_decimals": 1}


class Result(NamedTuple):
    """The rows of a query, and how much ClickHouse read for them, by its own counters."""

    rows: list[list[Any]]
    read_rows: int
    """Rows that its readers returned, before conditions that the readers don't evaluate."""
    read_pages: int
    """Pages of Parquet files."""


class ClickHouse:
    """A running ClickHouse."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, query: str) -> Result:
        """The answer to a query without a FORMAT. Raises RuntimeError with ClickHouse's message."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(query) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"ClickHouse ended with {self._process.wait()} at {query}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{answer['error']}\n{query}")
        return Result(**answer)


@contextmanager
def running() -> Iterator[ClickHouse]:
    """Run ClickHouse until the end of the block."""
    argv = [sys.executable, str(Path(__file__).resolve())]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:  # at the end, closes the pipes and waits
        yield ClickHouse(process)


def serve() -> None:
    """Answer queries until standard input ends."""
    from chdb import ChdbError, session

    database = session.Session()

    def ask(query: str) -> tuple[list[list[Any]], int]:
        """The rows of a query, and how many were read for them."""
        text = str(database.query(query, "JSONCompact"))
        at = text.rfind('{\n\t"meta"')  # before it are incomplete answers of failed queries
        if at < 0:
            return [], 0
        answer = json.loads(text[at:])
        return answer["data"], answer["statistics"]["rows_read"]

    def pages() -> int:
        return sum(value for (value,) in ask(_PAGES)[0])

    for name, value in _EXACT.items():
        database.query(f"SET {name} = {value}")
    before = pages()
    for line in sys.stdin:
        answer: dict[str, Any]
        try:
            rows, read = ask(json.loads(line))
        except ChdbError as error:
            answer = {"error": str(error)}
        else:
            after = pages()
            answer = {"rows": rows, "read_rows": read, "read_pages": after - before}
            before = after
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
