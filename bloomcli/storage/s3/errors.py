"""Converts errors of boto3 and S3 to bloomcli's. No message shows a credential."""

from __future__ import annotations

import re
import shlex
from typing import Any, Final, NamedTuple

import botocore.exceptions as sdk
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from bloomcli.errors import BloomError
from bloomcli.model import paths
from bloomcli.storage.objects import network
from bloomcli.storage.objects.client import Conflict, Location, ObjectNotFound
from bloomcli.storage.objects.network import connection_failure, storage_error

PERMISSIONS: Final = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "ListObjectsV2": "s3:ListBucket",
    "GetObjectTagging": "s3:GetObjectTagging",
    "PutObject": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "UploadPartCopy": "s3:PutObject and s3:GetObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListParts": "s3:ListMultipartUploadParts",
}
"""The permission that each request needs."""

_ABSENT: Final = frozenset({"NoSuchKey", "NotFound", "404"})
_CONFLICT: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "OperationAborted"})


class _Explanation(NamedTuple):
    reason: str
    hint: str | None
    denied: bool = False


_LOGIN: Final = (
    "get new credentials, by `aws sso login` or from their source; `aws sts get-caller-identity` tests them"
)
_REGION: Final = _Explanation(
    "the bucket is in another region",
    "set AWS_REGION to it: `aws s3api head-bucket --bucket BUCKET` shows the region",
)
_EXPIRED: Final = _Explanation("the credentials have expired", _LOGIN)
_UNKNOWN: Final = _Explanation("the store doesn't know these credentials", "`aws sts get-caller-identity` tests them")
_BUSY: Final = _Explanation("the store is busy, and refused every attempt", "try again later, with fewer --jobs")

_BY_CODE: Final = {
    "NoSuchBucket": _Explanation(
        "there is no such bucket", "check its name, and AWS_ENDPOINT_URL: `aws s3 ls` lists them"
    ),
    "InvalidBucketName": _Explanation("no bucket can have such a name", "check its name"),
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "RequestExpired": _EXPIRED,
    "InvalidAccessKeyId": _UNKNOWN,
    "InvalidToken": _UNKNOWN,
    "InvalidSecurity": _UNKNOWN,
    "UnrecognizedClientException": _UNKNOWN,
    "SignatureDoesNotMatch": _Explanation(
        "the store doesn't accept the request's signature", "check the secret key, and AWS_REGION"
    ),
    "RequestTimeTooSkewed": _Explanation(
        "this machine's clock differs from the store's by more than the store allows", "set the clock: `timedatectl`"
    ),
    "PermanentRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "301": _REGION,
    "SlowDown": _BUSY,
    "503": _BUSY,
    "429": _BUSY,
    "TooManyRequests": _BUSY,
    "ServiceUnavailable": _BUSY,
    "RequestLimitExceeded": _BUSY,
    "XMinioStorageFull": _Explanation("the store is full", "free some room in it"),
    "KMS.DisabledException": _Explanation("the key that encrypts the object is disabled", "enable it in KMS"),
    "QuotaExceeded": _Explanation("the bucket's quota is used up", "free some room in it"),
}

_ARCHIVED: Final = frozenset({"InvalidObjectState", "ObjectNotInActiveTierError"})
_CUSTOMER_KEY: Final = _Explanation(
    "the object is encrypted with a key of the customer's (SSE-C)",
    "bloom has no keys: copy the object to one that is encrypted with a key of the store's (SSE-S3 or SSE-KMS)",
)

_BUCKET_CODES: Final = frozenset(
    {"NoSuchBucket", "InvalidBucketName", *(c for c, s in _BY_CODE.items() if s is _REGION)}
)

_SECRETS: Final = re.compile(
    r"(?i)(//)[^/@\s]+@|((?:X-Amz-(?:Signature|Credential|Security-Token)|AWSAccessKeyId|Signature)=)[^&\s\"']+"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b"
)


SDK_ERRORS: Final = (sdk.BotoCoreError, sdk.ClientError, RecursionError)
"""The base classes of boto3's exceptions.

RecursionError is one of them: after a redirect that names no region, boto3 sends HeadBucket to get it, and does
the same after a redirect of that request.
"""
SETTING_ERRORS: Final = (ValueError, *SDK_ERRORS)
"""The exceptions that boto3 raises for an invalid configuration."""
RAW_ERRORS: Final = (HTTPError, OSError)
"""The exceptions for the body of an error, sent instead of content, that is incomplete or stops arriving."""
BODY_ERRORS: Final = (
    sdk.IncompleteReadError,
    sdk.ReadTimeoutError,
    sdk.ResponseStreamingError,
    *RAW_ERRORS,
)
"""The exceptions for an object's content that is incomplete or stops arriving."""
FOREIGN_ERRORS: Final = (ResponseParserError, *network.FOREIGN_ERRORS)
"""boto3's exceptions for an answer that isn't one of S3: it can't be parsed, or has an invalid number or time."""


def code_of(error: Exception) -> str:
    """The code of an error answer, such as AccessDenied; empty for other errors."""
    answer: Any = getattr(error, "response", None)
    return str(answer.get("Error", {}).get("Code", "")) if isinstance(answer, dict) else ""


def status_of(error: Exception) -> int:
    """The HTTP status of an error answer; 0 for other errors."""
    answer: Any = getattr(error, "response", None)
    return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) if isinstance(answer, dict) else 0


def converted_error(error: Exception, operation: str, at: Location, *, writes: bool, endpoint: str = "") -> Exception:
    """Convert an error of boto3 to one of bloomcli's, or to ObjectNotFound or Conflict.

    Args:
        error: the exception of boto3.
        operation: S3's name of the request.
        at: the object or the bucket.
        writes: the request is part of writing an object.
        endpoint: the store's endpoint; empty if it isn't known yet.
    """
    code, status = code_of(error), status_of(error)
    if code in _CONFLICT or status == 412:
        return Conflict()
    if code in _ABSENT or (status == 404 and not code):
        return ObjectNotFound()
    if code or status:
        response: Any = error.response  # type: ignore[attr-defined]
        if code in _ARCHIVED:
            explanation = _explain_archived(response, at)
        else:
            explanation = _explain_answer(response, operation, code, status, endpoint)
        if number := response.get("ResponseMetadata", {}).get("RequestId"):
            explanation = explanation._replace(reason=f"{explanation.reason} (request {number})")
    else:
        explanation = _explain_no_answer(error, endpoint)
    bloom_error = storage_error(at, explanation.reason, explanation.hint, writing=writes, denied=explanation.denied)
    if code in _BUCKET_CODES:
        bloom_error.path = at.root
    return bloom_error


def is_missing_bucket(error: BloomError) -> bool:
    """Whether an error says that the bucket doesn't exist, so that no upload can be left in it."""
    return _BY_CODE["NoSuchBucket"].reason in error.reason


def restore_command(at: Location, storage_class: str) -> str:
    """A hint with the commands that restore an archived object for some days and show when it is readable."""
    # S3 Intelligent-Tiering restores an object from its archive tiers permanently
    days = "" if storage_class.endswith("_ACCESS") else '"Days": 7, '
    request = f'{{{days}"GlacierJobParameters": {{"Tier": "Standard"}}}}'
    named = f"--bucket {shlex.quote(at.bucket)} --key {shlex.quote(at.key)}"
    return (
        f"`aws s3api restore-object {named} --restore-request '{request}'` makes it readable, in hours; "
        f"`aws s3api head-object {named}` shows when it is"
    )


def _explain_archived(response: Any, at: Location) -> _Explanation:
    """The explanation of an answer for an archived object."""
    fields = {**response.get("Error", {}), **response}
    storage_class = str(fields.get("AccessTier") or fields.get("StorageClass") or "")
    named = f" (storage class {storage_class})" if storage_class else ""
    return _Explanation(f"the object is archived{named}", restore_command(at, storage_class))


def _explain_answer(response: Any, operation: str, code: str, status: int, endpoint: str) -> _Explanation:
    if code in _BY_CODE:
        return _BY_CODE[code]
    if code in {"AccessDenied", "AllAccessDisabled", "403", "Forbidden"} or status == 403:
        wanted = PERMISSIONS.get(operation, operation)
        hint = f"the request needs {wanted}: `aws sts get-caller-identity` shows whose credentials were found, if any"
        if operation in {"GetObject", "HeadObject"}:
            hint = f"{hint}; without s3:ListBucket, S3 gives this answer for a missing object too"
        return _Explanation(f"access denied: {wanted}", hint, denied=True)
    if code.startswith("KMS."):
        return _Explanation(f"the key that encrypts the object can't be used: {code}", "check its policy in KMS")
    if operation == "HeadObject" and code == "400":  # the answer has no text
        return _Explanation(f"the store answered 400: perhaps {_CUSTOMER_KEY.reason}", _CUSTOMER_KEY.hint)
    if code == "InvalidRequest" and "stored using a form of Server Side Encryption" in str(response):
        return _CUSTOMER_KEY
    message = shown(str(response.get("Error", {}).get("Message", "")))
    return _Explanation(
        f"the store answered {status} {shown(code)}{': ' if message else ''}{message}",
        f"check the endpoint {paths.shown(endpoint)}" if endpoint else None,
    )


def _explain_no_answer(error: Exception, endpoint: str) -> _Explanation:
    if isinstance(error, _CONNECTION_ERRORS):
        return _Explanation(*connection_failure(error, endpoint, "AWS_ENDPOINT_URL and AWS_REGION"))
    kinds = {kind.__name__ for kind in type(error).__mro__}
    text = shown(str(error))
    for names, explanation in _WITHOUT_ANSWER:
        if kinds & names:
            hint = explanation.hint and explanation.hint.format(endpoint=f"the endpoint {paths.shown(endpoint)}")
            return _Explanation(explanation.reason.format(text=text), hint)
    return _Explanation(text or type(error).__name__, None)


_CONNECTION_ERRORS: Final = (sdk.ConnectionError, sdk.HTTPClientError, *BODY_ERRORS)
_WITHOUT_ANSWER: Final = (
    ({"NoCredentialsError", "PartialCredentialsError"}, _Explanation("the credentials are incomplete", _LOGIN)),
    (
        {"CredentialRetrievalError", "TokenRetrievalError", "SSOError", "LoginError"},
        _Explanation("the credentials can't be obtained", _LOGIN),
    ),
    (
        {"ProfileNotFound", "ConfigParseError", "ConfigNotFound", "InvalidConfigError"},
        _Explanation("the configuration can't be used: {text}", "check AWS_PROFILE and ~/.aws/config"),
    ),
    (
        {"InvalidRetryConfigurationError", "InvalidEndpointConfigurationError", "ValueError"},
        _Explanation(
            "the configuration can't be used: {text}",
            "check AWS_MAX_ATTEMPTS, AWS_RETRY_MODE, AWS_ENDPOINT_URL and ~/.aws/config",
        ),
    ),
    (
        {"RecursionError"},
        _Explanation(
            "the store redirects every request, and names no region",
            "check AWS_ENDPOINT_URL ({endpoint}) and AWS_REGION",
        ),
    ),
    ({"ParamValidationError"}, _Explanation("{text}", "check the URI and AWS_REGION")),
)
"""Explanations of boto3's other exceptions, by class names: older releases of boto3 don't have all of the classes."""


def shown(text: str) -> str:
    """A message on one line, with possible credentials masked."""
    line = " ".join(text.split())
    return _SECRETS.sub(lambda m: f"{m[1] or m[2] or ''}***{'@' if m[1] else ''}", line)[:300]
