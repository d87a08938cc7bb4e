"""Measures the requests of bloom to an object store and their time, compared with the same work by hand.

    python benchmarks/stores.py FOLDER [--gib 1] [--objects 10000] [--output FILE]

The store is MinIO on this machine (`python tests/support/servers/install.py minio`), behind the tests' recording
proxy: each request takes 20 ms longer, and all connections together get 100 MB/s each way, as in a cloud. Requests
and bytes are those that the proxy counted, not those that bloom reports; the two are compared. "By hand" is boto3's
managed transfer, which uploads and downloads parts in several threads, and `bloom add` on the local file in between.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from memory import STARTER, make

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.servers import clients, running  # noqa: E402  the tests' folder is found only now
from support.servers.dialects import S3  # noqa: E402
from support.servers.proxy import Proxy  # noqa: E402

LATENCY: Final = 0.020
BANDWIDTH: Final = 100e6
BUCKET: Final = "benchmark"
PROBED: Final = 100
"""Files in which a value is looked up."""
_CONCURRENT: Final = 8
"""Threads of the bare requests for ranges."""
_MIB: Final = 1 << 20
_COPIED: Final = 64 * _MIB
"""Bytes of a part that the store copies."""
_ROUNDS: Final = 2
"""Rounds of each comparison, in turns."""


class Run(NamedTuple):
    """One command, as the proxy saw it."""

    seconds: float
    processor: float
    """Processor seconds of all its processes."""
    peak: int
    requests: int
    downloaded: int
    uploaded: int
    kinds: Mapping[str, int]
    report: Any
    """The command's output, from JSON."""


class Lake:
    """A bucket behind the proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy, self.server = proxy, running.minio()
        self.env = os.environ | clients.s3_environment(self.server, proxy.url)
        self.direct = clients.s3(self.server)
        self.direct.create_bucket(Bucket=BUCKET)

    def bloom(self, *arguments: object) -> Run:
        """Run a command; raises RuntimeError if it fails."""
        self.proxy.forget()
        command = [sys.executable, "-m", "bloomcli", *map(str, arguments), "--format", "json"]
        # The starter counts memory and time; the command's report goes to a file, as the starter discards output.
        report = Path(self.env.get("TMPDIR", "/tmp")) / f"bloom-benchmark-{os.getpid()}.json"
        started = time.perf_counter()
        shell = ["/bin/sh", "-c", f'exec "$@" > {report}', "sh", *command]
        done = subprocess.run(
            [sys.executable, "-S", "-E", "-c", STARTER, *shell],
            env=self.env,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        seconds = time.perf_counter() - started
        code, peak, processor = done.stdout.split()
        text = report.read_text()
        report.unlink()
        if code not in {"0", "1"}:
            raise RuntimeError(f"{' '.join(command)}: exit code {code}: {text}")
        seen = self.proxy.recorded
        bodies = {"GetObject", "UploadPart", "PutObject"}
        return Run(
            seconds,
            float(processor),
            int(peak),
            len(seen),
            sum(each.received for each in seen if each.kind in bodies and each.status < 300),
            sum(each.sent for each in seen if each.kind in bodies),
            self.proxy.kinds(),
            json.loads(text),
        )


class Figure(NamedTuple):
    """A number, and its upper or lower limit."""

    what: str
    value: float
    bound: float
    least: bool = False
    form: str = "{:,.0f}"

    @property
    def holds(self) -> bool:
        """Whether the number is within its bound."""
        return self.value >= self.bound if self.least else self.value <= self.bound


def large(lake: Lake, folder: Path, gib: float) -> Iterator[Figure]:
    """`add` and `inspect` of one large object."""
    groups = round(16 * gib)
    path = make(folder, groups, 8, _MIB)
    lake.direct.upload_file(str(path), BUCKET, path.name)
    uri = f"s3://{BUCKET}/{path.name}"
    metadata = pq.ParquetFile(path).metadata
    chunks = sum(metadata.row_group(g).column(0).total_compressed_size for g in range(groups))
    size, footer = path.stat().st_size, metadata.serialized_size

    run = lake.bloom("add", uri, "-c", "c0", "--in-place")
    filters = int(lake.direct.head_object(Bucket=BUCKET, Key=path.name)["ContentLength"]) - size
    parts = run.kinds.get("UploadPartCopy", 0) + run.kinds.get("UploadPart", 0)
    yield Figure("add: bytes downloaded", run.downloaded, 1.01 * (chunks + footer + 8))
    yield Figure("add: bytes uploaded", run.uploaded, filters + footer + 5 * _MIB + 64 * 1024)
    yield Figure("add: requests", run.requests, groups + parts + 10)
    yield Figure("add: peak memory (MB)", run.peak / 1e6, 300)
    yield Figure("add: requests that the report has too little", abs(run.requests - _reported(run)), 0)
    # in turns, and the best of each, so that other load affects all ways equally
    hand, copy, seconds, bare = by_hand(lake, folder, path), by_copy(lake, path), run.seconds, by_boto(lake, path)
    for _ in range(_ROUNDS - 1):
        lake.direct.upload_file(str(path), BUCKET, path.name)
        seconds = min(seconds, lake.bloom("add", uri, "-c", "c0", "--in-place").seconds)
        hand, copy = min(hand, by_hand(lake, folder, path)), min(copy, by_copy(lake, path))
        bare = min(bare, by_boto(lake, path))
    yield Figure("add: seconds", seconds, hand, form="{:.1f}")
    yield Figure("download, add, upload: seconds", hand, float("inf"), form="{:.1f}")
    yield Figure("the store's copy of the body, by boto3 alone: seconds", copy, float("inf"), form="{:.1f}")
    yield Figure(
        "the same copies, downloads and uploads at once, by boto3 alone: seconds", bare, float("inf"), form="{:.1f}"
    )
    yield Figure("add: time as a multiple of these", seconds / bare, float("inf"), form="{:.2f}")
    yield Figure("add: seconds of the processors", run.processor, float("inf"), form="{:.1f}")
    yield Figure("load average", os.getloadavg()[0], float("inf"), form="{:.0f}")
    yield Figure("add: times as fast as download, add, upload", hand / seconds, 5, least=True, form="{:.1f}")

    run = lake.bloom("inspect", uri)
    yield Figure("inspect: requests", run.requests, 2 + groups)
    yield Figure("inspect: bytes downloaded", run.downloaded, 1.05 * filters + footer + 512 * 1024)


def _reported(run: Run) -> int:
    """The number of requests that a command reports."""
    report = run.report if isinstance(run.report, dict) else run.report[0]
    traffic = report.get("traffic") or report
    return int(traffic["requests"])


def by_hand(lake: Lake, folder: Path, path: Path) -> float:
    """Download, add, upload: the seconds of all three."""
    local, changed = folder / "by-hand.parquet", folder / "by-hand-changed.parquet"
    client = clients.s3(lake.server, lake.proxy.url)
    lake.direct.upload_file(str(path), BUCKET, "by-hand.parquet")
    started = time.perf_counter()
    client.download_file(BUCKET, "by-hand.parquet", str(local))
    command = [sys.executable, "-m", "bloomcli", "add", str(local), "-c", "c0", "-o", str(changed)]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    client.upload_file(str(changed), BUCKET, "by-hand.parquet")
    seconds = time.perf_counter() - started
    for file in (local, changed):
        file.unlink()
    lake.direct.delete_object(Bucket=BUCKET, Key="by-hand.parquet")
    return seconds


def by_copy(lake: Lake, path: Path) -> float:
    """The seconds that the store takes to copy the body of an object within a bucket, in parts, several at once."""
    name = {"Bucket": BUCKET, "Key": "by-copy.parquet"}
    source, size = {"Bucket": BUCKET, "Key": path.name}, path.stat().st_size
    client = clients.s3(lake.server, lake.proxy.url)
    upload = client.create_multipart_upload(**name)["UploadId"]

    def copy(number: int) -> None:
        span = f"bytes={number * _COPIED}-{min((number + 1) * _COPIED, size) - 1}"
        client.upload_part_copy(
            **name, UploadId=upload, PartNumber=number + 1, CopySource=source, CopySourceRange=span
        )

    started = time.perf_counter()
    with ThreadPoolExecutor(_CONCURRENT) as pool:
        list(pool.map(copy, range(-(-size // _COPIED))))
    seconds = time.perf_counter() - started
    client.abort_multipart_upload(**name, UploadId=upload)
    return seconds


def by_boto(lake: Lake, path: Path) -> float:
    """The seconds of the requests that `add` needs at least, all at the same time: the store's copies of the body,
    downloads of the column, and uploads of as many bytes as its filters have. By boto3, in a separate process."""
    program = (
        "import json, sys, boto3, botocore.config\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "bucket, key, copies, reads, uploads = json.loads(sys.argv[1])\n"
        "client = boto3.client('s3', config=botocore.config.Config(max_pool_connections=64))\n"
        "name = {'Bucket': bucket, 'Key': 'by-boto.parquet'}\n"
        "name['UploadId'] = client.create_multipart_upload(**name)['UploadId']\n"
        "source = {'Bucket': bucket, 'Key': key}\n"
        "def copy(n, span): client.upload_part_copy(**name, PartNumber=n, CopySource=source, CopySourceRange=span)\n"
        "def read(span): client.get_object(**source, Range=span)['Body'].read()\n"
        "def upload(n, size): client.upload_part(**name, PartNumber=n, Body=bytes(size))\n"
        "with ThreadPoolExecutor(32) as a, ThreadPoolExecutor(8) as b, ThreadPoolExecutor(4) as c:\n"
        "    done = [a.submit(copy, n, span) for n, span in enumerate(copies, 1)]\n"
        "    done += [b.submit(read, span) for span in reads]\n"
        "    done += [c.submit(upload, 5000 + n, size) for n, size in enumerate(uploads)]\n"
        "    for one in done: one.result()\n"
        "client.abort_multipart_upload(**name)\n"
    )
    metadata, size = pq.ParquetFile(path).metadata, path.stat().st_size
    chunks = [metadata.row_group(g).column(0) for g in range(metadata.num_row_groups)]
    reads = [(c.data_page_offset, c.data_page_offset + c.total_compressed_size) for c in chunks]
    copies = [(at, min(at + _COPIED, size)) for at in range(0, size, _COPIED)]
    spans = [[f"bytes={start}-{end - 1}" for start, end in ranges] for ranges in (copies, reads)]
    uploads = [8 * _MIB] * -(-len(chunks) * 2 // 8)
    started = time.perf_counter()
    arguments = json.dumps([BUCKET, path.name, *spans, uploads])
    subprocess.run([sys.executable, "-c", program, arguments], env=lake.env, check=True)
    return time.perf_counter() - started


def many(lake: Lake, folder: Path, objects: int) -> Iterator[Figure]:
    """`probe` over files with ten row groups, and `inspect` of small objects."""
    rng = np.random.default_rng(1)
    path = folder / "ten-groups.parquet"
    table = pa.table({"id": rng.integers(0, 1 << 60, 100_000)})
    options = {"id": {"ndv": 10_000, "fpp": 0.01}}
    pq.write_table(table, path, row_group_size=10_000, compression="none", bloom_filter_options=options)
    put_all(lake, "probed", path.read_bytes(), PROBED)
    run = lake.bloom("probe", f"s3://{BUCKET}/probed/", "-c", "id", "-v", int(table["id"][7].as_py()))
    lists = run.kinds.get("ListObjectsV2", 0) + run.kinds.get("HeadObject", 0)
    yield Figure("probe, 100 files: requests for a file", (run.requests - lists) / PROBED, 3, form="{:.2f}")
    yield Figure("probe, 100 files: bytes downloaded for a file", run.downloaded / PROBED, path.stat().st_size)

    pq.write_table(table.slice(0, 1000), path, compression="none", bloom_filter_options=options)
    put_all(lake, "small", path.read_bytes(), objects)
    run = lake.bloom("inspect", f"s3://{BUCKET}/small/", "--jobs", _CONCURRENT)
    bare, seconds = bare_ranges(lake, objects, run.kinds["GetObject"] / objects), run.seconds
    raw = raw_ranges(lake, objects)
    for _ in range(_ROUNDS - 1):
        raw = min(raw, raw_ranges(lake, objects))
        seconds = min(seconds, lake.bloom("inspect", f"s3://{BUCKET}/small/", "--jobs", _CONCURRENT).seconds)
        bare = min(bare, bare_ranges(lake, objects, run.kinds["GetObject"] / objects))
    yield Figure(f"inspect, {objects:,} objects: requests for an object", run.requests / objects, 2, form="{:.2f}")
    yield Figure(f"inspect, {objects:,} objects: seconds", seconds, float("inf"), form="{:.1f}")
    latency = LATENCY * run.requests / _CONCURRENT
    yield Figure(f"{_CONCURRENT} requests at a time, by latency alone: seconds", latency, float("inf"), form="{:.1f}")
    yield Figure("the same ranges by boto3 alone: seconds", bare, float("inf"), form="{:.1f}")
    yield Figure("the same ranges by urllib3 alone, unsigned: seconds", raw, float("inf"), form="{:.1f}")
    each = 1000 * run.processor / objects
    yield Figure("inspect: milliseconds of the processors for an object", each, float("inf"), form="{:.2f}")
    yield Figure("load average", os.getloadavg()[0], float("inf"), form="{:.0f}")
    yield Figure("inspect: time as a multiple of the bare ranges", seconds / bare, 1.5, form="{:.2f}")


def put_all(lake: Lake, prefix: str, data: bytes, count: int) -> None:
    """Write an object many times, without the proxy."""

    def put(number: int) -> None:
        lake.direct.put_object(Bucket=BUCKET, Key=f"{prefix}/part-{number:05}.parquet", Body=data)

    with ThreadPoolExecutor(_CONCURRENT) as pool:
        list(pool.map(put, range(count)))


def bare_ranges(lake: Lake, objects: int, requests: float) -> float:
    """The seconds of as many requests for ranges, by boto3's client in as many threads, in a separate process."""
    program = (
        "import sys, boto3, botocore.config\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "bucket, threads, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])\n"
        "client = boto3.client('s3', config=botocore.config.Config(max_pool_connections=threads))\n"
        "def get(n):\n"
        "    key = f'small/part-{n % int(sys.argv[4]):05}.parquet'\n"
        "    client.get_object(Bucket=bucket, Key=key, Range='bytes=-65536')['Body'].read()\n"
        "with ThreadPoolExecutor(threads) as pool: list(pool.map(get, range(count)))\n"
    )
    arguments = [BUCKET, str(_CONCURRENT), str(round(objects * requests)), str(objects)]
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program, *arguments], env=lake.env, check=True)
    return time.perf_counter() - started


def raw_ranges(lake: Lake, objects: int) -> float:
    """The seconds of a request for each object's end by urllib3, without signatures: no SDK is faster."""
    program = (
        "import os, sys, urllib3\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "bucket, threads, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])\n"
        "pool, base = urllib3.PoolManager(maxsize=threads), os.environ['AWS_ENDPOINT_URL']\n"
        "def get(n):\n"
        "    url = f'{base}/{bucket}/small/part-{n:05}.parquet'\n"
        "    assert pool.request('GET', url, headers={'Range': 'bytes=-65536'}).status == 206\n"
        "with ThreadPoolExecutor(threads) as threads: list(threads.map(get, range(count)))\n"
    )
    statement = {"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": ["s3:GetObject"]}
    statement["Resource"] = [f"arn:aws:s3:::{BUCKET}/*"]
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    lake.direct.put_bucket_policy(Bucket=BUCKET, Policy=policy)
    started = time.perf_counter()
    arguments = [BUCKET, str(_CONCURRENT), str(objects)]
    subprocess.run([sys.executable, "-c", program, *arguments], env=lake.env, check=True)
    return time.perf_counter() - started


@contextmanager
def lake() -> Iterator[Lake]:
    """MinIO with a cloud's latency and bandwidth."""
    with Proxy(running.minio().port, S3(), latency=LATENCY, bytes_per_second=BANDWIDTH) as proxy:
        yield Lake(proxy)


def table_of(figures: Sequence[Figure]) -> str:
    """The figures as Markdown."""

    def bound(figure: Figure) -> str:
        if figure.bound == float("inf"):
            return ""
        return ("at least " if figure.least else "at most ") + figure.form.format(figure.bound)

    def holds(figure: Figure) -> str:
        if figure.bound == float("inf"):
            return ""
        return "yes" if figure.holds else "**no**"

    rows = [f"| {f.what} | {f.form.format(f.value)} | {bound(f)} | {holds(f)} |" for f in figures]
    return "\n".join(["| figure | measured | bound | holds |", "|:--|--:|--:|:--|", *rows])


def main() -> int:
    """Measure, print the table; return 1 if a figure exceeds its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gib", type=float, default=1.0, help="size of the large object")
    parser.add_argument("--objects", type=int, default=10_000, help="how many small objects")
    parser.add_argument("--output", type=Path, help="write the table there too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    parts: Sequence[Callable[[Lake], Iterator[Figure]]] = (
        lambda made: large(made, options.folder, options.gib),
        lambda made: many(made, options.folder, options.objects),
    )
    with lake() as made:
        for part in parts:
            for figure in part(made):
                figures.append(figure)
                print(table_of([figure]).splitlines()[-1], flush=True)
    text = table_of(figures)
    if options.output is not None:
        options.output.write_text(text + "\n")
    return int(not all(figure.holds for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
