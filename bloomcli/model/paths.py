"""Paths as reports and errors show them."""

from __future__ import annotations

import re
from typing import Final

_START: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(://)")
_SLOPPY: Final = re.compile(r"(https?|s3[an]?|gs|gcs|azs?|abfss?|wasbs?|hdfs|webhdfs|s?ftps?)(:/*|/+)", re.IGNORECASE)
"""The start of a URI of a known scheme with a typing error: ``https:/``, ``https:``, ``https//``. A local path may
begin so, too."""
_PORT: Final = re.compile(r"\d{0,5}", re.ASCII)
_SECRET: Final = re.compile(
    r"(?i)[\w.%-]*(?:sig|signature|credential|token|secret|password|passwd|pwd|accesskey\w*|accesskeyid|sharedkey)"
    r"[\w.-]*(?:=|%3D)"
)
"""A parameter of a query that holds a secret."""
_SECRET_SETTING: Final = re.compile(
    r"(?i)secret|passw|passphrase|pwd|token|credential|signature|authorization|azure(?:[.]\w+)*[.]sas[.]"
    r"|key(?!(?:[-_]?(?:prefix|space|columns?)|tab)(?![a-z]))"
)
"""What Spark redacts by default, and what the stores' clients call secrets. A dot after ``key`` is followed by the
name of an account, which may be ``prefix``, so only a hyphen or an underscore makes a harmless name of it."""
_HIDDEN: Final = "***"


def shown(path: str) -> str:
    """A path without secrets.

    An ``https://`` URI is shown without user and password, and without its query and fragment, which may hold a
    signature. Other URIs are shown without user and password, and without a query that holds a signature. In a URI
    with a typing error, all that may be a password is hidden: a slash in a password must be written as ``%2F``, so
    ``https://user:pass/word@host/x`` is shown as ``https://***@host/x``.
    """
    start = _START.match(path)
    if start is None:
        start = _SLOPPY.match(path)
        if start is not None and not re.search(r":[^@]*@", path[start.end() :]):
            return path
    if start is None or start[1].lower() == "file":
        return path
    rest = path[start.end() :]
    web = start[1].lower() in {"http", "https"}
    name, ending = _without_query(rest, web)
    return f"{start[0]}{_without_user(name, web)}{ending}"


def shown_setting(setting: str) -> str:
    """A setting of Spark, ``KEY=VALUE``, without a value that may be secret."""
    name, _, value = setting.partition("=")
    return f"{name}={_HIDDEN if _SECRET_SETTING.search(setting) else shown(value)}"


def without_secrets(text: str, uri: str) -> str:
    """Another library's message about a URI, with `shown(uri)` in its place, and without parts of its secrets."""
    if shown(uri) == uri:
        return text
    text = text.replace(uri, shown(uri))
    hidden = set(re.split(r"[/:@?&=#]+", uri)) - set(re.split(r"[/:@?&=#]+", shown(uri)))
    for part in sorted(hidden - {""}, key=len, reverse=True):
        text = text.replace(part, _HIDDEN)
    return text


def _without_query(rest: str, web: bool) -> tuple[str, str]:
    """The part of a URI before its query, and what is shown of the query."""
    if web:
        match = re.search(r"[?#]|%3F(?=[^/]*(?:=|%3D))", rest, re.IGNORECASE)
        if match is None:
            return rest, ""
        mark = "?" if match[0] != "#" else "#"
        return rest[: match.start()], f"{mark}..."
    name, mark, query = rest.partition("?")
    # a question mark is a wildcard, too
    return (name, "?...") if mark and _SECRET.search(query) else (rest, "")


def _without_user(name: str, web: bool) -> str:
    """A URI after its scheme, without user and password."""
    authority, slash, key = name.partition("/")
    user, at, host = authority.rpartition("@")
    if at:
        if ":" in user and "@" in key:  # the password has an at sign and a slash
            return f"{_HIDDEN}@{key.rpartition('@')[2]}"
        if web and user != _HIDDEN:
            return f"{host}{slash}{key}" if _is_host(host) else f"{_HIDDEN}{slash}{key}"
        # a container's name comes before the account's: abfss://CONTAINER@ACCOUNT
        authority = f"{_HIDDEN}@{host}" if ":" in user or not _is_host(host) else authority
        return f"{authority}{slash}{key}"
    if ":" not in authority or authority.startswith("arn:") or (_is_host(authority) and not _is_user(authority, key)):
        return name
    if "@" in key:
        return f"{_HIDDEN}@{key.rpartition('@')[2]}"
    return f"{authority.partition(':')[0]}:{_HIDDEN}{slash}{key}"


def _is_host(text: str) -> bool:
    """Whether a text is a host, possibly with a port."""
    if text.startswith("["):
        return re.fullmatch(r"\[[0-9A-Fa-f:.%\w]*\](?::\d{0,5})?", text) is not None
    host, colon, port = text.partition(":")
    return "@" not in host and (not colon or _PORT.fullmatch(port) is not None)


def _is_user(authority: str, key: str) -> bool:
    """Whether a text that may be a host with a port is rather a user and the digits that a password begins with."""
    host = authority.partition(":")[0]
    return "@" in key and "." not in host and host != "localhost" and not authority.startswith("[")
