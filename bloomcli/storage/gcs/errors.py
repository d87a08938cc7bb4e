"""Converts error answers of the JSON API to bloomcli's errors. Only permissions are repeated from their messages."""

from __future__ import annotations

import re
from typing import Any, Final

from google.api_core.exceptions import GoogleAPICallError

from bloomcli.errors import BloomError, UnreadableError, WriteError
from bloomcli.storage.objects.client import AccessDenied, Conflict, Location, ObjectNotFound

_PERMISSION: Final = re.compile(r"\bstorage\.[a-zA-Z]+\.[a-zA-Z]+\b")
_LOGIN: Final = "gcloud auth application-default login, or check GOOGLE_APPLICATION_CREDENTIALS"
_LATER: Final = "try again later, or with fewer --jobs"


def answer_error(at: Location, error: GoogleAPICallError, *, writing: bool, tried: str = "") -> Exception:
    """The error for an answer: ObjectNotFound, Conflict, or an error of bloomcli with the request's id."""
    status, text = int(error.code or 0), error.message or ""
    reason = next((str(found.get("reason")) for found in error.errors if isinstance(found, dict)), "")
    if status == 404 and "bucket" in text.lower() and "object" not in text.lower():
        why, hint = "there is no such bucket", "check the bucket's name"
    elif status in {404, 410}:
        return ObjectNotFound()
    elif status in {412, 304}:
        return Conflict()
    elif status == 401:
        why, hint = "access denied: there are no credentials, or the token has expired", _LOGIN
    elif "retention" in text.lower() or "hold" in reason.lower() or "retention" in reason.lower():
        why, hint = "the object can't be replaced: it has a hold or a retention period", "-o writes a copy"
    elif status == 403:
        found = _PERMISSION.search(text)
        by_default = "storage.objects.create and .delete" if writing else "storage.objects.get"
        why = f"access denied: {found.group() if found else by_default} is needed"
        hint = "ask the bucket's owner for a role that has it; see docs/stores.md"
    elif status == 429:
        why, hint = f"the store asks for fewer requests{tried}", _LATER
    elif status >= 500:
        why, hint = f"the store failed{tried}", "try again later"
    elif reason.startswith("customerEncryption") or "customer-supplied encryption" in text.lower():
        why, hint = "the object is encrypted with a key of the customer's", "bloom has no keys"
    else:
        why = f"the store refuses ({reason})" if reason else "the store refuses"
        hint = "see the service's documentation of this answer"
    answer: Any = error.response
    request = None if answer is None else answer.headers.get("x-guploader-uploadid")
    details = f"status {status}" + (f", request {request}" if request else "")
    return storage_error(at, writing, f"{why} ({details})", hint, denied=status in {401, 403})


def storage_error(at: Location, writing: bool, why: str, hint: str, *, denied: bool = False) -> BloomError:
    """A WriteError if `writing`, else an UnreadableError."""
    if writing:
        return WriteError(f"can't be written: {why}", path=at.uri, hint=hint)
    return (AccessDenied if denied else UnreadableError)(f"can't be read: {why}", path=at.uri, hint=hint)
