"""Paths as reports and errors show them."""

from __future__ import annotations


def shown(path: str) -> str:
    """A path without secrets.

    An ``https://`` URI is shown without user and password, and without its query, which may hold a signature. Other
    URIs are shown without a query that holds a shared access signature.
    """
    scheme, separator, rest = path.partition("://")
    if not separator:
        return path
    name, question, query = rest.partition("?")
    if scheme.lower() in {"http", "https"}:
        authority, slash, name = name.partition("/")
        name = f"{authority.rpartition('@')[2]}{slash}{name}"
    elif "sig=" not in query.lower():
        return path
    return f"{scheme}://{name}{'?...' if question else ''}"
