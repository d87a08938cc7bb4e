"""Sends the last request of writing an object and checks the result, even if the answer is lost or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from bloomcli.errors import BloomError, SourceChanged, UnreadableError, WriteError
from bloomcli.storage.entries import output_exists
from bloomcli.storage.objects.client import Client, Conflict, Location, ObjectInfo, ObjectNotFound, Precondition
from bloomcli.storage.objects.content import Content
from bloomcli.storage.s3.properties import is_archived, recovery_hint

COMPARED_BYTES: Final = 256 << 10
"""Bytes at an object's end that are compared. The store has checked each upload by its checksum."""


class Target(NamedTuple):
    """The object to write."""

    at: Location
    path: str
    precondition: Precondition | str
    """The condition for writing it."""
    previous: ObjectInfo | None
    """The object to replace; None if none exists."""


def complete_object(client: Client, target: Target, content: Content, send: Callable[[], str]) -> None:
    """Send the last request of writing an object, and compare its tail.

    Args:
        client: reads the object.
        target: the object.
        content: its new content.
        send: sends the request, and returns the new object's tag.

    Raises:
        SourceChanged: another program changed the object to replace.
        UsageError: an object exists and may not be replaced.
        WriteError: the store refused the request, or stored another content. The reason says which object exists.
    """
    tail = content.read(max(content.size - COMPARED_BYTES, 0), min(content.size, COMPARED_BYTES))
    try:
        tag = send()
    except (ObjectNotFound, Conflict, BloomError) as error:
        _resolve_failure(client, target, content, tail, error)
        return
    try:
        data, info = client.read_tail(target.at, COMPARED_BYTES)
    except ObjectNotFound:
        return  # another program removed it after it was written
    except UnreadableError as error:
        if _is_archived_whole(client, target, tag, content.size):
            return
        raise WriteError(
            f"the object was written, but couldn't be read for a comparison: {error.reason}",
            path=target.path,
            hint=error.hint,
        ) from None
    if info.tag == tag and (data != tail or info.size != content.size):
        raise WriteError(
            "the object in the store isn't the one that was written",
            path=target.path,
            hint=recovery_hint(target.at, target.previous),
        )


def _is_archived_whole(client: Client, target: Target, tag: str, size: int) -> bool:
    """Whether the new object is archived, and so can't be read, but has the expected tag and size."""
    try:
        found = client.head(target.at)
    except UnreadableError:
        return False
    return found is not None and is_archived(found.details or {}) and (found.tag, found.size) == (tag, size)


def _resolve_failure(client: Client, target: Target, content: Content, tail: bytes, error: Exception) -> None:
    """Find out whether a failed last request wrote the object nevertheless. Raises the error if it didn't."""
    try:
        data, info = client.read_tail(target.at, COMPARED_BYTES)
    except ObjectNotFound:
        if target.previous is not None and not isinstance(target.precondition, Precondition):
            raise _changed(target) from None
        raise _refused(target, error, "there is no such object") from None
    except UnreadableError as unknown:
        reason = error.reason if isinstance(error, BloomError) else "the store refused the request"
        raise WriteError(
            f"{reason}; it isn't known whether the object was written, as it can't be read: it is either the old "
            f"object or the new one, and complete ({unknown.reason})",
            path=target.path,
            hint="start the command again when the store can be reached: it finds out which",
        ) from None
    if target.previous is not None and info.tag == target.previous.tag:
        raise _refused(target, error, "the object is as it was") from None
    if data == tail and info.size == content.size:
        return  # the answer was lost
    if target.precondition is Precondition.NO_OBJECT:
        raise output_exists(target.path) from None
    if isinstance(error, BloomError) and target.precondition is Precondition.NONE:
        raise error
    raise _changed(target) from None


def _changed(target: Target) -> SourceChanged:
    return SourceChanged(
        "the object changed while it was being worked on",
        path=target.path,
        hint="something else writes to it; try again when it is done. bloom wrote nothing to it",
    )


def _refused(target: Target, error: Exception, state: str) -> WriteError:
    reason, hint = "the store refused to complete it, as another request wrote to it at the same time", "start again"
    if isinstance(error, BloomError):
        reason, hint = error.reason, error.hint or hint
    return WriteError(f"{reason}; {state}", path=target.path, hint=hint)
