"""Errors of S3: one line, what to do, the store's request id, and nothing of credentials."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError
from conftest import ROOT
from support.object_stores import MemoryClient
from support.s3_place import S3Place, seen_through_a_proxy
from support.servers.faults import Action, Fault
from support.servers.messages import Response
from support.servers.running import free_port
from urllib3.exceptions import ProxyError

import bloomcli
from bloomcli.errors import BloomError, SourceChanged, UnreadableError, UsageError, WriteError
from bloomcli.storage.objects.client import AccessDenied, Conflict, Location, ObjectNotFound, Precondition
from bloomcli.storage.objects.content import Content
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.writing import NewObject
from bloomcli.storage.registry import store_of
from bloomcli.storage.s3.errors import PERMISSIONS, converted_error, shown
from bloomcli.storage.s3.upload import complete_object

AT = Location("s3://lake", "orders/a.parquet")


def answered(code: str, status: int, message: str = "") -> ClientError:
    """The exception that boto3 raises for an error of the store."""
    response: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "RequestId": "4442587FB7D0A2F9"},
    }
    return ClientError(response, "GetObject")


CODES = {
    "NoSuchBucket": (404, "no such bucket", "aws s3 ls"),
    "ExpiredToken": (400, "credentials have expired", "aws sso login"),
    "InvalidAccessKeyId": (403, "doesn't know these credentials", "get-caller-identity"),
    "SignatureDoesNotMatch": (403, "signature", "secret key"),
    "RequestTimeTooSkewed": (403, "clock differs", "timedatectl"),
    "PermanentRedirect": (301, "another region", "AWS_REGION"),
    "AuthorizationHeaderMalformed": (400, "another region", "AWS_REGION"),
    "SlowDown": (503, "busy", "--jobs"),
    "InvalidObjectState": (403, "archived", "restore-object --bucket lake --key orders/a.parquet"),
    "ObjectNotInActiveTierError": (403, "archived", "restore-object --bucket lake --key orders/a.parquet"),
    "AccessDenied": (403, "access denied: s3:GetObject", "s3:ListBucket"),
}


@pytest.mark.parametrize("code", CODES)
def test_what_the_store_answers_is_said_with_its_request_id_and_a_hint(code: str) -> None:
    status, words, hint = CODES[code]
    error = converted_error(answered(code, status), "GetObject", AT, writes=False)
    assert isinstance(error, UnreadableError)
    assert words in error.reason
    assert "4442587FB7D0A2F9" in error.reason
    assert hint in str(error.hint)
    assert "\n" not in error.message
    assert isinstance(error, AccessDenied) == (code == "AccessDenied")
    assert isinstance(converted_error(answered(code, status), "UploadPart", AT, writes=True), WriteError)


@pytest.mark.parametrize("operation", PERMISSIONS)
def test_a_refused_request_names_its_permission(operation: str) -> None:
    error = converted_error(answered("AccessDenied", 403), operation, AT, writes=False)
    assert isinstance(error, BloomError)
    assert PERMISSIONS[operation] in error.reason


def test_what_callers_decide_on_is_left_to_them() -> None:
    assert isinstance(converted_error(answered("NoSuchKey", 404), "GetObject", AT, writes=False), ObjectNotFound)
    assert isinstance(converted_error(answered("404", 404), "HeadObject", AT, writes=False), ObjectNotFound)
    for code, status in (("PreconditionFailed", 412), ("412", 412), ("ConditionalRequestConflict", 409)):
        assert isinstance(converted_error(answered(code, status), "PutObject", AT, writes=True), Conflict)


REFUSED_BY_PROXY = ProxyError("no connection to the proxy", ConnectionRefusedError())
UNANSWERED: dict[str, tuple[Exception, str]] = {
    "connection refused": (
        exceptions.EndpointConnectionError(endpoint_url="http://u:p@h/", error=ConnectionRefusedError()),
        "the connection was refused",
    ),
    "no answer": (exceptions.ReadTimeoutError(endpoint_url="http://h/"), "didn't answer in time"),
    "broken connection": (exceptions.ConnectionClosedError(endpoint_url="http://h/"), "the connection was lost"),
    "TLS": (exceptions.SSLError(endpoint_url="https://h/", error="CERTIFICATE_VERIFY_FAILED"), "certificate"),
    "proxy": (exceptions.ProxyConnectionError(proxy_url="http://u:p@h/", error=REFUSED_BY_PROXY), "the proxy"),
    "half credentials": (exceptions.PartialCredentialsError(provider="env", cred_var="AWS_SECRET"), "incomplete"),
    "profile": (exceptions.ProfileNotFound(profile="nowhere"), "nowhere"),
    "redirects": (RecursionError("maximum recursion depth exceeded"), "redirects every request"),
    "sign-on": (exceptions.UnauthorizedSSOTokenError(), "can't be obtained"),
}


@pytest.mark.parametrize("kind", UNANSWERED)
def test_a_store_that_cannot_be_reached_is_an_error_with_a_hint(kind: str) -> None:
    raised, words = UNANSWERED[kind]
    error = converted_error(raised, "GetObject", AT, writes=False)
    assert isinstance(error, UnreadableError)
    assert words in error.reason
    assert error.hint
    assert "u:p" not in f"{error}{error.hint}"


def test_what_could_be_a_credential_is_not_shown() -> None:
    text = (
        "GET https://user:pass@host/b?X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F2026&X-Amz-Signature=fe5f80 by "
        "AKIAIOSFODNN7EXAMPLE"
    )
    line = shown(text)
    for secret in ("user", "pass", "AKIA", "fe5f80"):
        assert secret not in line
    assert "host" in line
    error = converted_error(answered("Weird", 400, text), "GetObject", AT, writes=False)
    assert isinstance(error, BloomError)
    assert "AKIA" not in str(error)
    assert "400 Weird" in error.reason


def test_credentials_in_a_uri_are_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="has credentials in it") as caught:
        store_of("s3n://AKIAIOSFODNN7EXAMPLE:secret@lake/a").open("s3n://AKIAIOSFODNN7EXAMPLE:secret@lake/a")
    assert "secret" not in f"{caught.value}{caught.value.hint}"
    assert "AKIA" not in str(caught.value)


def redirecting(response: Response, _: bytes) -> bytes:
    """A redirect that names neither a region nor another address."""
    response.start, response.headers = "HTTP/1.1 301 Moved", [("Content-Length", "0")]
    return b""


@pytest.mark.servers
def test_each_error_of_a_real_store_is_one_line(lake: S3Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.put("data.bin", b"old")
    orders = str(ROOT / "fixtures/parquet/orders.parquet")
    cases: dict[str, tuple[Callable[[], object], str]] = {
        "bucket": (lambda: open_("s3://no-such-bucket-here/data.bin"), "there is no such bucket"),
        "key": (lambda: open_(lake.path("nowhere")), "no such file"),
        "writing": (lambda: bloomcli.add(orders, ["id"], output="s3://no-such-bucket-here/new"), "no such bucket"),
        "listing": (lambda: list(lake.store.list("s3://no-such-bucket-here/")), "there is no such bucket"),
    }
    for name, (act, words) in cases.items():
        assert "begun an upload" not in check_error(act, words, name)
    fault = Fault(Action.CHANGE, times=None, change=redirecting)
    with monkeypatch.context() as patched, seen_through_a_proxy(lake, patched) as (proxy, _), proxy.injecting(fault):
        check_error(lambda: open_("s3://bucket/data.bin"), "names no region", "redirect")
    secret = "SecretThatNobodyMaySee0123456789"
    changed = {
        "AWS_SECRET_ACCESS_KEY": (secret, "signature"),
        "AWS_ACCESS_KEY_ID": ("AKIAIOSFODNN7EXAMPLE", "doesn't know these credentials"),
        "AWS_ENDPOINT_URL": (f"http://user:{secret}@127.0.0.1:{free_port()}", "the connection was refused"),
        "AWS_PROFILE": ("nowhere", "configuration can't be used"),
    }
    for name, (value, words) in changed.items():
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            patched.setenv("AWS_MAX_ATTEMPTS", "1")
            text = check_error(lambda: open_(lake.path("data.bin")), words, name)
        assert secret not in text
        assert "AKIA" not in text


def open_(path: str) -> None:
    """Open an object."""
    store_of(path).open(path).close()


def check_error(act: Callable[[], object], words: str, name: str) -> str:
    """Raise AssertionError unless it fails with an error of bloom's; gives its text."""
    with pytest.raises(BloomError) as caught:
        act()
    text = str(caught.value)
    assert words in text, name
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert caught.value.__cause__ is None
    return text


def test_an_output_that_another_program_replaces_is_named_and_not_the_source() -> None:
    client = MemoryClient()
    client.store("memory://lake/old", b"old")
    there = client.store("memory://lake/new", b"there")
    at = client.locate("memory://lake/new")

    def send() -> str:
        client.store("memory://lake/new", b"theirs")
        raise ObjectNotFound  # the upload was ended

    source = ObjectSource(client, client.locate("memory://lake/old"), "memory://lake/old")
    with source, closing(Content(source)) as content:
        content.add(b"ours")
        content.finish()
        new = NewObject(at, "memory://lake/new", content, Precondition.NONE, there, source, None, force=False)
        with pytest.raises(SourceChanged) as caught:
            complete_object(client, new, send)
    assert caught.value.path == "memory://lake/new"
