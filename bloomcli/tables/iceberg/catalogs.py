"""Finds Iceberg tables in PyIceberg's catalogs: of ``~/.pyiceberg.yaml`` and ``PYICEBERG_CATALOG__NAME__...``."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Final

from bloomcli.errors import UnreadableError, UsageError

_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def parts_of(name: str) -> list[str]:
    """The parts of a table's name, without backticks."""
    return [(match[1] or match[2]).replace("``", "`") for match in _PART.finditer(name)]


def has_catalog(name: str) -> bool:
    """Whether PyIceberg is installed, and its configuration has the catalog of a table's name."""
    parts = parts_of(name)
    if len(parts) < 3 or find_spec("pyiceberg") is None:
        return False
    from pyiceberg.utils.config import Config

    return Config().get_catalog_config(parts[0]) is not None


def metadata_location(name: str) -> str | None:
    """The metadata file of a table; None if the catalog has no such table.

    Args:
        name: ``catalog.db.table``, with a catalog of PyIceberg's configuration.

    Raises:
        UsageError: the catalog's configuration is invalid.
        UnreadableError: the catalog doesn't answer, or can't load the table.
    """
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
    from pyiceberg.utils.config import Config

    catalog, *identifier = parts_of(name)
    try:
        loaded = load_catalog(catalog, **(Config().get_catalog_config(catalog) or {}))  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001  each kind of catalog has errors of its own
        raise UsageError(f"PyIceberg can't use the catalog {catalog}: {_first_line(error)}", path=name) from None
    try:
        return str(loaded.load_table(tuple(identifier)).metadata_location)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    except Exception as error:  # noqa: BLE001
        raise UnreadableError(f"the catalog can't load the table: {_first_line(error)}", path=name) from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
