"""Converts errors of Azure to bloomcli's, by the service's error codes.

Messages of the service and the SDK aren't repeated: they may contain signatures.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from azure.core.exceptions import AzureError, ClientAuthenticationError, DecodeError, HttpResponseError
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from bloomcli.errors import BloomError
from bloomcli.storage.azure.connection import ATTEMPTS, container, endpoint_of
from bloomcli.storage.objects.bounded import answers_to_writes
from bloomcli.storage.objects.client import Conflict, Location, ObjectNotFound
from bloomcli.storage.objects.network import FOREIGN_ERRORS, Answers, connection_failure, storage_error

ANSWERS: Final = Answers("Azure Blob Storage", endpoint_of)
_ABSENT: Final = frozenset({"BlobNotFound", "ResourceNotFound", "CannotVerifyCopySource"})
_CONFLICT: Final = frozenset(
    {"ConditionNotMet", "BlobAlreadyExists", "TargetConditionNotMet", "SourceConditionNotMet"}
)

_LOGIN: Final = "check AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or the login of `az`; see docs/stores.md"
_ROLE: Final = "the identity needs {permission} on the container"
_REASONS: Final = {
    "ContainerNotFound": ("there is no such container", "check the container's name and the account"),
    "InvalidResourceName": ("a container can't have such a name", "az://CONTAINER/NAME"),
    "ContainerBeingDeleted": ("the container is being deleted", "name another container"),
    "AccountIsDisabled": ("the account is disabled", "ask its owner"),
    "AuthenticationFailed": ("access denied: the key or the signature is wrong or has expired", _LOGIN),
    "InvalidAuthenticationInfo": ("access denied: the token has expired, or this machine's clock is wrong", _LOGIN),
    "NoAuthenticationInformation": (
        "access denied: the container isn't public, and there are no credentials",
        _LOGIN,
    ),
    "PublicAccessNotPermitted": ("access denied: the account allows no access without credentials", _LOGIN),
    "AuthorizationPermissionMismatch": ("access denied", _ROLE),
    "InsufficientAccountPermissions": ("access denied", _ROLE),
    "AuthorizationFailure": (
        "access denied",
        f"{_ROLE}, the key or the signature must be right, and the account's firewall must let this machine in",
    ),
    "AuthorizationSourceIPMismatch": ("access denied: the signature is for another address", _LOGIN),
    "AuthorizationResourceTypeMismatch": ("access denied: the signature is for other kinds of resources", _LOGIN),
    "AuthorizationServiceMismatch": ("access denied: the signature is for another service", _LOGIN),
    "AuthorizationProtocolMismatch": ("access denied: the signature is for another protocol", _LOGIN),
    "BlobArchived": ("the blob is in the Archive tier", "{rehydration}"),
    "BlobBeingRehydrated": ("the blob is being moved from the Archive tier", "wait for some hours"),
    "BlobImmutableDueToPolicy": (
        "the blob can't be replaced: it has a legal hold or an immutability policy",
        "-o writes a copy",
    ),
    "LeaseIdMissing": ("the blob has a lease: whoever has it may write", "wait for its end, or -o writes a copy"),
    "LeaseAlreadyPresent": ("the blob has a lease: whoever has it may write", "wait for its end"),
    "BlobUsesCustomerSpecifiedEncryption": (
        "the blob is encrypted with a key of the customer's",
        "bloom has no keys",
    ),
    "InvalidBlobOrBlock": (
        "another upload to it isn't complete, and its blocks have names of another length",
        "wait for its end (the service drops such blocks after a week), or write to another name",
    ),
    "ServerBusy": (
        f"the store is busy, {ATTEMPTS} attempts failed",
        "try again later, or with fewer --jobs",
    ),
    "OperationTimedOut": (f"the store took too long, {ATTEMPTS} attempts failed", "try again later"),
    "InternalError": (f"the store failed, {ATTEMPTS} attempts failed", "try again later"),
}
READING: Final = "the role Storage Blob Data Reader (in a signature: rl)"
WRITING: Final = "the role Storage Blob Data Contributor (in a signature: racwlt)"


@contextmanager
def convert_sdk_errors(at: Location, *, writing: bool = False) -> Iterator[None]:
    """Convert errors of the SDK that the with block raises.

    Raises:
        ObjectNotFound: the blob doesn't exist.
        Conflict: a precondition failed.
        UnreadableError: any other error; WriteError if `writing`.
    """
    try:
        with answers_to_writes() if writing else nullcontext():
            yield
    except HttpResponseError as error:
        answer: Any = error.response
        if isinstance(error, DecodeError):
            raise ANSWERS.foreign(at, writing=writing) from None
        if answer is None or (error.status_code or 0) in {200, 206}:  # it broke while the body was read
            raise _unanswered_error(at, error, writing) from None
        code = answer.headers.get("x-ms-error-code") or getattr(error, "error_code", None) or ""
        code = str(getattr(code, "value", code))
        status = error.status_code or 0
        if code in _ABSENT or (status == 404 and code not in _REASONS):
            raise ObjectNotFound from None
        if code in _CONFLICT or (status == 412 and code not in _REASONS):
            raise Conflict from None
        raise answer_error(at, code, status, answer.headers.get("x-ms-request-id"), writing=writing) from None
    except AzureError as error:
        raise _unanswered_error(at, error, writing) from None
    except FOREIGN_ERRORS:
        raise ANSWERS.foreign(at, writing=writing) from None
    except (HTTPError, RequestException, OSError) as error:
        raise storage_error(at, *connection_failure(error, endpoint_of(at)), writing=writing) from None


def _unanswered_error(at: Location, error: AzureError, writing: bool) -> BloomError:
    """The error for a request without an answer."""
    if type(error).__name__ == "AzureSigningError":
        return storage_error(at, "access denied: the account's key is invalid", _LOGIN, writing=writing)
    if isinstance(error, ClientAuthenticationError):
        return storage_error(at, "access denied: no token could be obtained", _LOGIN, writing=writing)
    return storage_error(at, *connection_failure(error, endpoint_of(at)), writing=writing)


def answer_error(at: Location, code: str, status: int, request: str | None, *, writing: bool) -> BloomError:
    """The error for an answer, with the request's id."""
    permission = WRITING if writing else READING
    if code in _REASONS:
        why, hint = _REASONS[code]
    elif status in {401, 403}:
        why, hint = "access denied", _ROLE
    elif status == 429:
        why = f"the store asks for fewer requests, {ATTEMPTS} attempts failed"
        hint = "try again later, or with fewer --jobs"
    else:
        why, hint = "the store refuses", "see the service's documentation of this code, and check {endpoint}"
    details = ", ".join(filter(None, (code or f"status {status}", f"request {request}" if request else "")))
    return storage_error(
        at,
        f"{why} ({details})",
        hint.format(permission=permission, rehydration=rehydration_hint(at), endpoint=endpoint_of(at)),
        writing=writing,
        denied=status in {401, 403},
    )


def rehydration_hint(at: Location) -> str:
    """A hint with the commands that move a blob out of the Archive tier and show when it is readable."""
    where = container(at)
    account = f"--account-name {shlex.quote(where.account)} " if where.account else ""
    named = f"{account}--container-name {shlex.quote(where.name)} --name {shlex.quote(at.key)}"
    return (
        f"`az storage blob set-tier {named} --tier Hot` makes it readable, in hours; "
        f"`az storage blob show {named}` shows when it is"
    )
