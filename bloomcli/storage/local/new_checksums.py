"""New checksums for a file that is replaced: see `sidecar` for what they are.

    new ones written beside, old ones put aside -> the file is replaced -> new ones in their place
                                                   it isn't             -> old ones in their place

A file left without its checksums for an instant is readable; one with stale ones is not, hence the order.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bloomcli.errors import WriteError
from bloomcli.storage.local import hadoop_crc
from bloomcli.storage.local.exchange import beside, may_be_beside
from bloomcli.storage.local.locks import Holding
from bloomcli.storage.local.temporary import Temporary, appear, identity, temporaries


@contextmanager
def renewed_beside(
    temporary: Temporary, final: Path, known: hadoop_crc.Checksums | None, same: int
) -> Iterator[None]:
    """Give the file new checksums if it has some. Within the block it is to be replaced.

    Args:
        temporary: the new file.
        final: its name, whose lock the caller holds.
        known: verified checksums of what the new file was made from.
        same: so many bytes at the start are the same in both.

    Raises:
        UnreadableError: there are checksums, and they can't be read.
        WriteError: the checksums couldn't get their name. They are left for a sweep.
        OSError: the system refused. The old checksums are in their place.
    """
    place_of = hadoop_crc.sidecar_of(final)
    old = hadoop_crc.load(place_of)
    if old is None:
        yield
        return
    before = identity(final)
    aside = beside(place_of)

    def settle() -> None:
        if temporary.placed:
            _vouch(new, place_of, temporary)
        elif identity(final) == before or _differs(aside, old):
            _restore(aside, place_of)
        with contextlib.suppress(OSError):  # a sweep will remove it
            aside.unlink(missing_ok=True)

    with Temporary(place_of) as new, contextlib.ExitStack() as locks:
        try:
            with os.fdopen(new.open(), "wb", closefd=False) as stream:
                stream.write(hadoop_crc.renewed(old, final, temporary.path, known, same))
                stream.flush()
                os.fchmod(new.fd, stat.S_IMODE(temporary.path.stat().st_mode) & 0o666)
                os.fsync(new.fd)
            locks.enter_context(Holding(place_of))
            with contextlib.suppress(FileNotFoundError):  # somebody else is at it, at the same file
                os.replace(place_of, aside)  # noqa: PTH105
            yield
        finally:
            try:
                settle()
            except OSError as error:  # nothing tells which of them fit; a sweep will
                new.keep()
                raise _left(place_of, error) from None
            except WriteError:
                raise
            except BaseException:  # stopped in the middle of it
                settle()
                raise


def has_checksums(final: Path) -> bool:
    """Whether a file has checksums, or somebody is at them."""
    place_of = hadoop_crc.sidecar_of(final)
    return os.path.lexists(place_of) or any(may_be_beside(p.name, place_of.name) for p in temporaries(final.parent))


def _left(place_of: Path, error: OSError) -> WriteError:
    return WriteError(
        f"the checksums can't be put in place: {(error.strerror or str(error)).lower()}",
        path=str(place_of),
        hint="they are kept beside; the next bloom that writes to the directory puts those in place that fit",
    )


def _vouch(new: Temporary, place_of: Path, temporary: Temporary) -> None:
    """Give the new file's checksums their name, unless they have it already."""
    try:
        try:
            if not new.placed:
                appear(new.path, place_of)
        except FileExistsError:
            if temporary.placed:
                os.replace(new.path, place_of)  # noqa: PTH105
    except OSError as error:
        new.keep()
        raise WriteError(
            f"the checksums can't be written: {(error.strerror or str(error)).lower()}; the new file is in place",
            path=str(place_of),
            hint=f"they are kept as {new.path}; the next bloom that writes to the directory puts them in place",
        ) from None
    if not temporary.placed and new.placed:  # replaced in this instant, perhaps by one who writes no checksums
        with contextlib.suppress(OSError):
            place_of.unlink()


def _restore(aside: Path, place_of: Path) -> None:
    """Give the old checksums their name again."""
    try:
        appear(aside, place_of)
    except (FileExistsError, FileNotFoundError):  # somebody else's are there; these were never put aside
        return
    except OSError as error:
        raise WriteError(
            f"the checksums can't be put back: {(error.strerror or str(error)).lower()}; their file is unchanged",
            path=str(place_of),
            hint=f"they are kept as {aside}; the next bloom that writes to the directory puts them in place",
        ) from None


def _differs(path: Path, content: bytes) -> bool:
    """Whether a file that was put aside is another one than was read before."""
    try:
        return path.read_bytes() != content
    except OSError:
        return False
