"""Former home of what `base`, `registry`, and `local.source` have."""

from bloomcli.storage.base import Fingerprint as Fingerprint  # noqa: PLC0414  until its users follow
from bloomcli.storage.base import Source as Source  # noqa: PLC0414  until its users follow
from bloomcli.storage.local.source import LocalSource as LocalSource  # noqa: PLC0414  until its users follow
from bloomcli.storage.registry import open_source as open_source  # noqa: PLC0414  until its users follow
