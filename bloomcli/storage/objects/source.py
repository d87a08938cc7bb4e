"""A source that reads an object of a store, announced ranges ahead, with few requests and in bounded memory.

Opening sends one request, which reads the object's tail: it contains the footer, and the answer has the size and the
tag. Later ranges are read on the condition that the object still has this tag. No request is sent to open an object
whose size, tag and tail are in an index.

    announced ranges  ->  parts: near ranges merged, long ones split  ->  requested, several at once  ->  read

Background threads request parts in the order of the file, within the memory limits. `read` itself requests a part
that no thread has requested yet.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

from bloomcli.concurrency.threads import Future, Threads
from bloomcli.errors import UnreadableError
from bloomcli.model.traffic import Traffic
from bloomcli.storage import traffic
from bloomcli.storage.base import Fingerprint, Range, Source, united
from bloomcli.storage.objects.client import Client, Conflict, Location, ObjectInfo, ObjectNotFound

LATENCY_SECONDS: Final = 0.020
"""Time to the first byte of an answer, for S3, GCS and Azure within a region."""
BYTES_PER_SECOND: Final = 100_000_000
"""Throughput of one connection to an object store, and of a small instance's network."""
PART_BYTES: Final = 16 << 20
"""Maximum size of a part. A column chunk of a million 64-bit values, a usual row group, fits in one part; the 160 ms
that it takes are eight times a request's latency."""
CONCURRENT: Final = 8
"""Maximum number of concurrent requests. They share the latency of small parts, and stores don't throttle so few."""
GAP_BYTES: Final = int(LATENCY_SECONDS * BYTES_PER_SECOND)
"""Largest gap between two ranges that one request reads: reading it takes as long as another request."""
SMALL_GAP_BYTES: Final = GAP_BYTES // CONCURRENT
"""Gaps up to this size are always read: reading one takes as long as one of `CONCURRENT` concurrent requests."""
GAPS_BYTES: Final = 5 * GAP_BYTES
"""Maximum total of the larger gaps that are read to save requests: a hundredth of a GiB."""
AHEAD_BYTES: Final = 2 * PART_BYTES
"""Maximum bytes of parts that are requested or held, and not read yet."""
STREAMS: Final = 4
"""Column chunks that may be read at the same time: each uses a part."""
IN_USE_BYTES: Final = STREAMS * PART_BYTES
"""Maximum bytes of parts that are being read."""
FINISHED_BYTES: Final = PART_BYTES
"""Maximum bytes of held parts that were read to their end: some ranges are read twice."""
HELD_BYTES: Final = AHEAD_BYTES + IN_USE_BYTES + FINISHED_BYTES
"""Maximum bytes of an object in memory, whatever its size."""


class _Part:
    """A range of the object that is read in one request."""

    __slots__ = ("data", "end", "future", "offset", "pooled")

    def __init__(self, offset: int, end: int) -> None:
        self.offset = offset
        self.end = end
        self.data: bytes | None = None
        self.future: Future[bytes] | None = None
        self.pooled = False
        """A background thread requests it."""

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.end - self.offset


def merged(ranges: Iterable[Range]) -> Iterator[Range]:
    """Merge near ranges and split long ones: the ranges to request, sorted by offset."""
    spans = [(offset, offset + length) for offset, length in united(ranges)]
    gaps_to_read = _gaps_to_read([after[0] - before[1] for before, after in pairwise(spans)])
    start = 0
    for number, (_, end) in enumerate(spans):
        if number not in gaps_to_read:
            yield from _split(spans[start][0], end)
            start = number + 1


def _gaps_to_read(gaps: list[int]) -> set[int]:
    """Indexes of the gaps to read: all small ones, and the smallest of the others up to `GAPS_BYTES` in total."""
    gaps_to_read = {number for number, gap in enumerate(gaps) if gap <= SMALL_GAP_BYTES}
    room = GAPS_BYTES
    for gap, number in sorted((gap, number) for number, gap in enumerate(gaps) if SMALL_GAP_BYTES < gap <= GAP_BYTES):
        room -= gap
        if room < 0:
            break
        gaps_to_read.add(number)
    return gaps_to_read


def _split(start: int, end: int) -> Iterator[Range]:
    count = -(-(end - start) // PART_BYTES)
    size = -(-(end - start) // max(count, 1))
    for at in range(start, end, max(size, 1)):
        yield at, min(size, end - at)


class ReadAhead:
    """The announced ranges of one object. Threads may read at the same time.

    Args:
        fetch: requests a range; called from any thread.
    """

    def __init__(self, fetch: Callable[[int, int], bytes]) -> None:
        self._fetch = fetch
        self._lock = threading.RLock()
        self._threads: Threads | None = None
        self._parts: list[_Part] = []
        self._offsets: list[int] = []
        self._queue: deque[_Part] = deque()
        self._requested = 0
        self._ahead = 0
        self._in_use: OrderedDict[_Part, None] = OrderedDict()
        self._finished: OrderedDict[_Part, None] = OrderedDict()
        self.peak = 0
        """Maximum number of bytes that were held or requested at the same time."""

    def announce(self, ranges: Iterable[Range]) -> None:
        """Announce ranges within the object. Bytes that are held already aren't requested again."""
        announced = list(ranges)  # before the lock: the iterator may read
        with self._lock:
            queued = set(self._queue)
            coming = [p for p in self._parts if p.data is not None or p.future is not None or p in queued]
            if not any(True for _ in _subtracted(announced, coming)):
                return  # merging the queued parts again would read further gaps
            held = [p for p in self._parts if p.data is not None or p.future is not None]
            wanted = [*announced, *((p.offset, p.size) for p in self._queue if p.future is None and p.data is None)]
            new = [_Part(at, at + n) for at, n in merged(_subtracted(wanted, held))]
            self._queue = deque(new)
            held = list(_outside(held, new))  # a gap that is read may contain a held part
            self._parts = sorted([*held, *new], key=lambda part: part.offset)
            self._offsets = [part.offset for part in self._parts]
            if len(new) > 1:  # the reader requests a single part: no thread is needed
                self._start()

    def read(self, offset: int, length: int) -> bytes:
        """Read a range within the object, from announced parts where they exist, else by further requests."""
        pieces: list[bytes] = []
        while length > 0:
            part, stop = self._part_at(offset)
            if part is None:
                count = length if stop is None else min(length, stop - offset)
                pieces.append(self._fetch(offset, count))
            else:
                count = min(length, part.end - offset)
                start = offset - part.offset
                pieces.append(self._load(part)[start : start + count])
                self._mark_read(part, finished=offset + count == part.end)
            offset += count
            length -= count
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Free all parts, after the pending requests are answered."""
        with self._lock:
            threads, self._threads = self._threads, None
            self._queue.clear()
            self._parts, self._offsets = [], []
            self._in_use.clear()
            self._finished.clear()
        if threads is not None:
            threads.close()

    def _part_at(self, offset: int) -> tuple[_Part | None, int | None]:
        """The part that contains an offset; otherwise None and the offset of the next part."""
        with self._lock:
            index = bisect_right(self._offsets, offset)
            if index and offset < self._parts[index - 1].end:
                return self._parts[index - 1], None
            return None, self._offsets[index] if index < len(self._offsets) else None

    def _load(self, part: _Part) -> bytes:
        with self._lock:
            if part.data is not None:
                return part.data
            future, threads, mine = part.future, self._threads, part.future is None
            if future is None:
                future = part.future = Future()
                self._count_ahead(part)
        if mine:
            future.run(partial(self._request, part))
        return threads.result(future) if part.pooled and threads is not None else future.result()

    def _request(self, part: _Part) -> bytes:
        """Request a part, then start requests of queued parts."""
        try:
            data = self._fetch(part.offset, part.size)
        except BaseException:
            with self._lock:  # the part's future raises the error to every reader
                self._requested -= part.pooled
                self._ahead -= part.size
            raise
        with self._lock:
            part.data, part.future = data, None
            self._requested -= part.pooled
            part.pooled = False
            if self._threads is not None:
                self._start()
        return data

    def _start(self) -> None:
        """Request queued parts within the limits of memory and of concurrent requests."""
        while self._queue and self._requested < CONCURRENT:
            part = self._queue[0]
            if part.data is not None or part.future is not None:
                self._queue.popleft()
                continue
            if self._ahead and self._ahead + part.size > AHEAD_BYTES:
                return
            self._queue.popleft()
            if self._threads is None:
                self._threads = Threads(CONCURRENT, "bloom-read")
            part.pooled = True
            self._requested += 1
            self._count_ahead(part)
            part.future = self._threads.submit(partial(self._request, part))

    def _count_ahead(self, part: _Part) -> None:
        self._ahead += part.size
        used = sum(p.size for p in (*self._in_use, *self._finished))
        self.peak = max(self.peak, self._ahead + used)

    def _mark_read(self, part: _Part, *, finished: bool) -> None:
        """Record that a part was read, evict the least recently read parts, and request others."""
        with self._lock:
            if part.data is None:
                return  # evicted meanwhile
            if part not in self._in_use and part not in self._finished:
                self._ahead -= part.size
            where = self._finished if finished or part in self._finished else self._in_use
            self._in_use.pop(part, None)
            where[part] = None
            where.move_to_end(part)
            _evict(self._finished, FINISHED_BYTES)
            _evict(self._in_use, IN_USE_BYTES)
            self._start()


def _evict(parts: OrderedDict[_Part, None], most: int) -> None:
    """Free the least recently read parts beyond `most` bytes, except the last one."""
    held = sum(part.size for part in parts)
    while held > most and len(parts) > 1:
        part, _ = parts.popitem(last=False)
        part.data = None
        held -= part.size


def _outside(held: Iterable[_Part], new: list[_Part]) -> Iterator[_Part]:
    """The held parts that don't overlap new ones. New parts are sorted and don't overlap each other."""
    starts = [part.offset for part in new]
    for part in held:
        index = bisect_right(starts, part.end - 1)
        if not index or new[index - 1].end <= part.offset:
            yield part


def _subtracted(ranges: Iterable[Range], held: list[_Part]) -> Iterator[Range]:
    """The ranges without the bytes of held parts. The parts are sorted and don't overlap."""
    starts = [part.offset for part in held]
    for offset, length in ranges:
        end = offset + length
        index = max(bisect_right(starts, offset) - 1, 0)
        while offset < end:
            part = held[index] if index < len(held) else None
            if part is None or part.offset >= end:
                yield offset, end - offset
                break
            if part.offset > offset:
                yield offset, part.offset - offset
            offset = max(offset, part.end)
            index += 1


TAIL_BYTES: Final = 256 << 10
"""Bytes that opening an object reads: at 100 MB/s they take an eighth of a request's 20 ms. The footer of a file
with a few hundred columns and row groups fits."""
_READ_AHEAD_BYTES: Final = 4 << 20
"""Bytes per request when a stream reads a range that wasn't announced."""


class Tail(NamedTuple):
    """An object's last bytes, its information, and the traffic of reading them."""

    data: bytes
    info: ObjectInfo
    traffic: Traffic


def read_tail(client: Client, at: Location) -> Tail | None:
    """Read an object's tail before it is opened, to find out whether it exists. None if it doesn't."""
    try:
        with traffic.counted_by(meter := traffic.Meter()):
            return Tail(*client.read_tail(at, TAIL_BYTES), meter.total)
    except ObjectNotFound:
        return None


class ObjectSource(Source):
    """A source that reads an object of a store."""

    read_ahead_bytes = _READ_AHEAD_BYTES
    request_bytes = GAP_BYTES
    part_bytes = PART_BYTES
    tail_bytes = TAIL_BYTES

    def __init__(
        self,
        client: Client,
        at: Location,
        path: str,
        tail: Tail | None = None,
        *,
        known_ranges: Sequence[tuple[int, bytes]] = (),
        tail_bytes: int = TAIL_BYTES,
    ) -> None:
        """Open an object.

        Args:
            client: sends the requests.
            at: the object.
            path: its name in messages.
            tail: the result of a recent `read_tail`, if any; its traffic counts as this source's.
            known_ranges: known content outside the tail, as pairs of offset and bytes.
            tail_bytes: size of the tail to read, in bytes.

        Raises:
            UnreadableError: the object doesn't exist or can't be read.
        """
        self.path, self.at, self._client = path, at, client
        self._meter = traffic.current()
        try:
            if tail is None:
                self._tail, self.info = client.read_tail(at, tail_bytes)
            else:
                self._tail, self.info = tail.data, tail.info
                self._meter.add(tail.traffic)
        except ObjectNotFound:
            raise UnreadableError("can't be read: no such file", path=path, hint="check the path") from None
        self.size, self.fingerprint = self.info.size, fingerprint_of(self.info)
        self._tail_at = self.size - len(self._tail)
        self._known_ranges = (*known_ranges, (self._tail_at, self._tail))
        self._ahead = ReadAhead(self._fetch)

    def will_read(self, ranges: Iterable[Range]) -> None:
        """Announce ranges: they are read ahead, and near ones are merged."""
        self._ahead.announce(self._before_tail(ranges))

    def estimate(self, ranges: Iterable[Range]) -> Traffic:
        """The traffic of reading announced ranges."""
        lengths = [length for _, length in merged(self._before_tail(ranges))]
        return Traffic(requests=len(lengths), bytes_downloaded=sum(lengths))

    def _before_tail(self, ranges: Iterable[Range]) -> list[Range]:
        """The parts of ranges before the tail, without known ranges and ranges outside the file."""
        inside = ((at, min(at + length, self._tail_at)) for at, length in ranges if at >= 0)
        return [(at, end - at) for at, end in inside if at < end and self._known_range(at, end - at) is None]

    def _known_range(self, offset: int, length: int) -> bytes | None:
        """The bytes of a range that lies within a known one, such as the tail; None if none contains it."""
        for start, data in self._known_ranges:
            if start <= offset and offset + length <= start + len(data):
                return data[offset - start : offset - start + length]
        return None

    def _current(self) -> Fingerprint | None:
        with traffic.counted_by(self._meter):
            info = self._client.head(self.at)
        return None if info is None else fingerprint_of(info)

    def _read(self, offset: int, length: int) -> bytes:
        data = self._known_range(offset, length)
        if data is not None:
            return data
        before = min(self._tail_at - offset, length)
        return self._ahead.read(offset, before) + self._tail[: length - before]

    def _fetch(self, offset: int, length: int) -> bytes:
        try:
            with traffic.counted_by(self._meter):
                return self._client.read(self.at, offset, length, self.info.tag)
        except (ObjectNotFound, Conflict):
            raise self.changed("changed") from None

    def close(self) -> None:
        """Free the bytes that were read."""
        self._tail, self._tail_at, self._known_ranges = b"", self.size, ()
        self._ahead.close()


def object_from_parts(
    client: Client, path: str, fingerprint: Fingerprint, parts: Sequence[tuple[int, bytes]], name: str | None = None
) -> ObjectSource | None:
    """Open an object without a request, for `Store.open_from_parts`.

    Args:
        client: the store's client.
        path: the object.
        fingerprint: its fingerprint.
        parts: known ranges as pairs of offset and bytes; the last one is the tail.
        name: the object's name in messages; the path by default.

    Returns:
        The source. None if the fingerprint has no tag, as a change couldn't be detected, or no range is known.
    """
    if not fingerprint.tag or not parts:
        return None
    tail = Tail(parts[-1][1], ObjectInfo(fingerprint.size, fingerprint.tag, fingerprint.mtime_ns), Traffic())
    return ObjectSource(client, client.locate(path), name or path, tail, known_ranges=parts[:-1])


def fingerprint_of(info: ObjectInfo) -> Fingerprint:
    """The fingerprint of an object."""
    return Fingerprint(size=info.size, mtime_ns=info.mtime_ns, tag=info.tag)
