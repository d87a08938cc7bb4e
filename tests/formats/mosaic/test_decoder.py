"""The process that decodes Mosaic columns: its output is discarded, and an error reports how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import mosaic
import pyarrow as pa
import pytest
from support import processes
from support.golden import MOSAIC, ROOT
from support.mosaicfiles import DRAFT, Parts, write

import bloomcli
from bloomcli.cli import run
from bloomcli.errors import CorruptFile, SourceChanged, UnreadableError
from bloomcli.formats.mosaic import decoder, decoder_process
from bloomcli.formats.mosaic.decoder import Decoder


def open_decoder(path: Path, columns: list[str]) -> Decoder:
    """A decoder of a file of version 1."""
    data = path.read_bytes()
    return Decoder(str(path), lambda at, size: data[at : at + size], len(data), columns)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Three row groups of an uncompressed text column: its offsets and lengths lie open."""
    table = pa.table({"text": [f"value {i}" for i in range(300)], "n": range(300)})
    return write(tmp_path / "plain.mosaic", table, batch=100, compression=0)


@pytest.fixture
def panicking(plain: Path) -> Path:
    """Text that isn't UTF-8, which makes the package panic."""
    data = plain.read_bytes().replace(b"value 7", b"val\xff\xff 7", 1)
    path = plain.with_name("panicking.mosaic")
    path.write_bytes(data)
    return path


def test_the_package_panics_where_it_decodes_in_this_process(
    panicking: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = panicking.read_bytes()
    with pytest.raises(RuntimeError, match="panic"):
        mosaic.read_table(lambda at, size: data[at : at + size], len(data))
    assert "panicked at" in capfd.readouterr().err, "the package has changed: these tests need another damage"


def test_no_panic_reaches_the_user(panicking: Path, capfd: pytest.CaptureFixture[str]) -> None:
    decoder.POOL.close_idle()  # another process has this standard error
    out = panicking.with_name("out")
    assert run(["add", "-c", "*", "--mosaic-draft", "-o", str(out), str(panicking)]) == 3
    printed, errors = capfd.readouterr()
    first, second = errors.splitlines()
    assert printed == ""
    assert first.startswith(f"bloom: {panicking}: the row group can't be decoded (native panic: ")
    assert first.endswith("(at row_groups[0], byte 0)")
    assert second.startswith("hint: the data is damaged")
    assert not out.exists()


def test_a_panic_ends_no_process_and_the_next_file_uses_it(plain: Path, panicking: Path) -> None:
    decoder.POOL.close_idle()
    before = set(processes.children(os.getpid()))
    for _ in range(3):
        with pytest.raises(CorruptFile):
            bloomcli.add(panicking, ["text"], output=plain.with_name("out"), overwrite=True, threads=1, **DRAFT)
        bloomcli.add(plain, ["text"], output=plain.with_name("out"), overwrite=True, threads=1, **DRAFT)
    assert len(set(processes.children(os.getpid())) - before) == 1


def test_a_process_that_dies_is_an_error_and_the_next_file_gets_another(plain: Path) -> None:
    decoder.POOL.close_idle()
    before = set(processes.children(os.getpid()))
    opened = open_decoder(plain, ["text"])
    (pid,) = set(processes.children(os.getpid())) - before
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(UnreadableError, match=r"was ended by SIGKILL") as caught:
        opened.row_group(0)
    assert "memory" in (caught.value.hint or "")
    with pytest.raises(UnreadableError, match="was ended"):
        opened.row_group(0)
    opened.close()
    bloomcli.add(plain, ["text"], output=plain.with_name("out"), **DRAFT)


def test_memory_that_runs_out_is_an_error(tmp_path: Path) -> None:
    """The package ends its process if it can't allocate memory."""
    table = pa.table({"c": pa.array(["x"] * 10, pa.string()), "n": range(10)})
    parts = Parts.of(write(tmp_path / "f", table, num_buckets=1).read_bytes())
    (tmp_path / "f").write_bytes(parts.with_bucket(0, 0, unpacked=511 << 20).data())
    script = (
        "import resource, sys; from bloomcli.cli import run; limit = 400 << 20; "
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit)); sys.exit(run(sys.argv[1:]))"
    )
    args = ["add", str(tmp_path / "f"), "-c", "c", "--mosaic-draft", "-o", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, "-c", script, *args], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(f"bloom: {tmp_path}/f: ")
    assert "Traceback" not in done.stderr
    assert "panicked" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_error_of_the_source_is_reported_unchanged(plain: Path) -> None:
    def changed(offset: int, length: int) -> bytes:
        raise SourceChanged("the file changed", path="theirs")

    with pytest.raises(SourceChanged, match="theirs: the file changed"):
        Decoder("ours", changed, plain.stat().st_size, ["text"])


def test_no_process_can_be_started(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder.POOL.close_idle()
    monkeypatch.setattr(sys, "executable", str(plain.with_name("none")))
    with pytest.raises(UnreadableError, match="can't be started: no such file or directory") as caught:
        bloomcli.add(plain, ["text"], output=plain.with_name("out"), **DRAFT)
    assert caught.value.path == str(plain)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(UnreadableError, match="was ended"):
        bloomcli.add(plain, ["text"], output=plain.with_name("out"), **DRAFT)


def test_a_process_that_was_forked_starts_its_own(plain: Path) -> None:
    opened = open_decoder(plain, ["text"])
    idle = open_decoder(plain, ["n"])
    idle.close()
    pid = os.fork()
    if pid == 0:
        try:
            rows = open_decoder(plain, ["n"]).row_group(1).num_rows
            decoder.POOL.close_idle()
            os._exit(0 if rows == 100 else 1)
        except BaseException:  # noqa: BLE001
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert opened.row_group(1)["text"].to_pylist() == [f"value {i}" for i in range(100, 200)]
    opened.close()
    again = open_decoder(plain, ["n"])
    assert again.row_group(2)["n"].to_pylist() == list(range(200, 300))
    again.close()


def test_a_pipe_that_is_closed_with_an_error_leaves_no_other_open_after_a_fork(plain: Path) -> None:
    opened = open_decoder(plain, ["text"])
    process = opened._process
    assert process is not None
    requests = process.requests
    process.requests = os.fdopen(os.dup(requests.fileno()), "wb", buffering=0)
    os.close(process.requests.fileno())  # closing it again is an error
    pid = os.fork()
    if pid == 0:
        os._exit(0 if process._replies.closed else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        process.requests.close()
    process.requests = requests
    opened.close()


def test_ctrl_c_ends_a_decoding_at_once_and_leaves_no_process(plain: Path) -> None:
    script = (
        "import sys, time; from bloomcli.formats.mosaic import values; from bloomcli.cli import run\n"
        "before = values.Decoder.__init__\n"
        "def slow(self, path, read_at, size, columns):\n"
        "    def later(offset, length):\n"
        "        print('reading', flush=True); time.sleep(6000); return read_at(offset, length)\n"
        "    before(self, path, later, size, columns)\n"
        "values.Decoder.__init__ = slow\n"
        "sys.exit(run(sys.argv[1:]))"
    )
    filtered = plain.with_name("filtered")
    bloomcli.add(plain, ["text"], output=filtered, **DRAFT)
    process = subprocess.Popen(
        [sys.executable, "-c", script, "validate", "--deep", str(filtered)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    below = processes.children(process.pid)
    assert below
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)  # a tenth of what it would wait
    assert (process.returncode, err) == (130, "\nbloom: stopped\n")
    assert processes.wait_until(lambda: not any(map(processes.alive, below)))


def test_the_server_answers_in_frames(plain: Path) -> None:
    """The protocol itself, in this process."""
    data = plain.read_bytes()
    ours, theirs = os.pipe(), os.pipe()
    with os.fdopen(ours[0], "rb") as requests, os.fdopen(theirs[1], "wb") as replies:
        server = threading.Thread(target=decoder_process.serve, args=(requests, replies))
        server.start()
        with os.fdopen(ours[1], "wb") as ask, os.fdopen(theirs[0], "rb") as answers:
            assert decoder_process.receive(answers) == (b"H", b"")
            decoder_process.send(ask, b"O", b'{"size": %d, "columns": ["n"]}' % len(data))
            while (frame := decoder_process.receive(answers))[0] == b"R":
                at, size = decoder_process.RANGE.unpack(frame[1])
                decoder_process.send(ask, b"D", data[at : at + size])
            assert frame == (b"K", b"")
            decoder_process.send(ask, b"G", decoder_process.NUMBER.pack(7))
            kind, text = decoder_process.receive(answers)
            assert kind == b"E"
            assert b"7" in text or b"row group" in text
        server.join(600)
    assert not server.is_alive()


def test_every_fixture_decodes_as_the_package_does() -> None:
    for path in sorted(MOSAIC.glob("released_*.mosaic")):
        data = path.read_bytes()
        expected = mosaic.read_table(lambda at, size, data=data: data[at : at + size], len(data))
        opened = open_decoder(path, expected.column_names)
        batches = [opened.row_group(group) for group in range(bloomcli.inspect(path).row_groups)]
        assert pa.Table.from_batches(batches, expected.schema).equals(expected)
        opened.close()


def test_a_pipe_that_gives_nothing_is_one_that_has_ended() -> None:
    """A pipe's read gives None where the system refuses to wait, as on EAGAIN."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    try:
        with os.fdopen(read, "rb") as answers, pytest.raises(EOFError):
            decoder_process.receive(answers)
    finally:
        os.close(write)
