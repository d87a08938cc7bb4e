"""Measures the memory of a command on millions of objects in a store: listing, plan, rows and report.

    python benchmarks/keys.py [--keys 10000000] [--objects 1000000] [--output FILE]

The store is a server on this machine that generates its answers: pages of ListObjectsV2 with 1,000 keys, and the
same Parquet file for each key. The commands run in separate processes:

- `add --in-place` of `--keys` objects below a Delta table. Each object is listed, planned, and gets a row in the
  report. A Delta table's files aren't changed in place, so that no object is opened.
- `inspect` of `--objects` objects: the same, and a request for each object.

Memory is the proportional set size (Pss) of all processes of a command, sampled twice a second.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

ROOT: Final = Path(__file__).resolve().parent.parent
_PAGE: Final = 1000
_SAMPLE_SECONDS: Final = 0.5
_TIME: Final = "2024-05-06T07:08:09.000Z"
_HTTP_TIME: Final = "Mon, 06 May 2024 07:08:09 GMT"
_TAG: Final = '"0123456789abcdef0123456789abcdef"'
_KEY: Final = "orders/date={:06}/part-{:08}-5f2c7a44-0a1b-4c2d-8e3f-c000.zstd.parquet"


class Run(NamedTuple):
    """One command, measured."""

    what: str
    keys: int
    code: int
    seconds: float
    peak: int
    temporary: int
    lines: int
    requests: int


def file_of(rows: int = 3) -> bytes:
    """A small Parquet file with a filter."""
    data = io.BytesIO()
    options = {"id": {"ndv": rows, "fpp": 0.01}}
    pq.write_table(pa.table({"id": list(range(rows))}), data, bloom_filter_options=options)
    return data.getvalue()


class Answers:
    """The server's answers. The bucket's name contains the number of keys: `plain-10`, or `delta-10` with a table
    above them."""

    def __init__(self) -> None:
        self.data = file_of()

    def answer(self, method: str, target: str, ranged: str) -> tuple[str, list[str], bytes]:
        """Status, headers and body of an answer."""
        url = urlsplit(target)
        bucket, _, key = unquote(url.path).strip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        if "list-type" in query:
            return "200 OK", ["Content-Type: application/xml"], self._page(bucket, query)
        if "uploads" in query:
            return "200 OK", ["Content-Type: application/xml"], b"<ListMultipartUploadsResult/>"
        if not key.endswith(".parquet"):
            return "404 Not Found", [], b"" if method == "HEAD" else b"<Error><Code>NoSuchKey</Code></Error>"
        return self._object(method, ranged)

    def _object(self, method: str, ranged: str) -> tuple[str, list[str], bytes]:
        headers = [f"ETag: {_TAG}", f"Last-Modified: {_HTTP_TIME}", "Accept-Ranges: bytes"]
        size = len(self.data)
        if method == "HEAD" or not ranged:
            return "200 OK", headers, self.data
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", ranged).groups()  # type: ignore[union-attr]
        start = int(first) if first else max(size - int(last), 0)
        end = min(int(last) + 1, size) if first and last else size
        headers.append(f"Content-Range: bytes {start}-{end - 1}/{size}")
        return "206 Partial Content", headers, self.data[start:end]

    def _page(self, bucket: str, query: dict[str, str]) -> bytes:
        kind, _, count = bucket.partition("-")
        keys, prefix = int(count), query.get("prefix", "")
        token, most = int(query.get("continuation-token", "0")), min(int(query.get("max-keys", _PAGE)), _PAGE)
        if prefix.startswith("orders/date="):  # one directory
            start = int(prefix.removeprefix("orders/date=")[:6]) * _PAGE
            return _document(_contents(start, min(start + most, keys)), 0)
        if "delimiter" not in query:
            end = min(token + most, keys)
            return _document(_contents(token, end), end if end < keys else 0)
        if not prefix:
            return _document("<CommonPrefixes><Prefix>orders/</Prefix></CommonPrefixes>", 0)
        directories = -(-keys // _PAGE)
        end = min(token + most, directories)
        names = ["_delta_log"] if kind == "delta" and token == 0 else []
        names += [f"date={i:06}" for i in range(token, end)]
        texts = (f"<CommonPrefixes><Prefix>orders/{name}/</Prefix></CommonPrefixes>" for name in names)
        return _document("".join(texts), end if end < directories else 0)


def _contents(start: int, end: int) -> str:
    rest = (
        f"</Key><LastModified>{_TIME}</LastModified><ETag>&quot;0123456789abcdef&quot;</ETag><Size>1234</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )
    return "".join(f"<Contents><Key>{_KEY.format(i // _PAGE, i)}{rest}" for i in range(start, end))


def _document(inside: str, following: int) -> bytes:
    more = f"<NextContinuationToken>{following}</NextContinuationToken>" if following else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<IsTruncated>{'true' if following else 'false'}</IsTruncated>{more}{inside}</ListBucketResult>"
    ).encode()


class Connection(asyncio.Protocol):
    """A client's connection, with requests without bodies."""

    def __init__(self, answers: Answers, served: Sequence[int]) -> None:
        self._answers, self._served, self._waiting = answers, served, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for answers."""
        self._out: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Answer the requests that are complete."""
        self._waiting += data
        while b"\r\n\r\n" in self._waiting:
            head, _, self._waiting = self._waiting.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            method, target, _ = lines[0].split(" ", 2)
            names = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            status, headers, body = self._answers.answer(method, target, names.get("range", ""))
            self._served[0] += 1  # type: ignore[index]
            text = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""])
            self._out.write(text.encode() + (b"" if method == "HEAD" else body))


def serve(pipe: object, served: Sequence[int]) -> None:
    """Serve until the process is ended; sends its port."""

    async def forever() -> None:
        answers = Answers()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(answers, served), "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])  # type: ignore[attr-defined]
        await server.serve_forever()

    asyncio.run(forever())


def processes_below(root: int) -> list[int]:
    """A process and its descendants."""
    found = [root]
    for pid in found:
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found


def memory_of(root: int) -> tuple[int, int]:
    """Bytes of memory of a process and its descendants, and bytes of temporary files without a name."""
    memory, files = 0, {}
    for pid in processes_below(root):
        with suppress(OSError, ValueError):
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            memory += int(text.split("\nPss:")[1].split()[0]) * 1024
            for path in Path(f"/proc/{pid}/fd").iterdir():
                if str(path.readlink()).endswith("(deleted)"):
                    found = path.stat()
                    files[found.st_dev, found.st_ino] = found.st_size
    return memory, sum(files.values())


def measured(what: str, keys: int, url: str, served: Sequence[int], arguments: Sequence[str]) -> Run:
    """Run a command and measure it."""
    env = os.environ | {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "user",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before, started = served[0], time.perf_counter()
    count = [sys.executable, "-c", "import sys; print(sum(1 for _ in sys.stdin.buffer))"]
    command = [sys.executable, "-m", "bloomcli", *arguments]
    with subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        counted = subprocess.Popen(count, stdin=run.stdout, stdout=subprocess.PIPE, text=True)
        run.stdout.close()
        memory = temporary = 0
        while run.poll() is None:
            now = memory_of(run.pid)
            memory, temporary = max(memory, now[0]), max(temporary, now[1])
            time.sleep(_SAMPLE_SECONDS)
        lines = int(counted.communicate()[0])
    return Run(
        what, keys, run.returncode, time.perf_counter() - started, memory, temporary, lines, served[0] - before
    )


def main() -> int:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--objects", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--output", type=Path, help="write the table there too")
    options = parser.parse_args()
    served = multiprocessing.Array("q", [0], lock=False)
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there, served), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{here.recv()}"
    head = ["command", "keys", "exit code", "seconds", "peak memory", "temporary files", "lines", "requests"]
    lines = [f"| {' | '.join(head)} |", "|:--|" + "--:|" * (len(head) - 1)]
    print(*lines, sep="\n", flush=True)
    orders = [
        ("`add --in-place` below a table", "delta", n, ["add", "{}", "-c", "id", "--in-place"]) for n in options.keys
    ]
    orders += [("`inspect`", "plain", n, ["inspect", "{}"]) for n in options.objects]
    for what, kind, keys, arguments in orders:
        command = [argument.format(f"s3://{kind}-{keys}/orders/") for argument in arguments]
        run = measured(what, keys, url, served, [*command, "--format", "csv"])
        cells = [f"{keys:,}", run.code, f"{run.seconds:,.0f}", f"{run.peak / 1e6:,.0f} MB"]
        cells += [f"{run.temporary / 1e6:,.0f} MB", f"{run.lines:,}", f"{run.requests:,}"]
        lines.append(f"| {run.what} | {' | '.join(map(str, cells))} |")
        print(lines[-1], flush=True)
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n")
    server.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
