"""Former home of what `base`, `registry`, and `local.source` have."""

from bloomcli.storage.base import Fingerprint as Fingerprint
from bloomcli.storage.base import Source as Source
from bloomcli.storage.local.source import LocalSource as LocalSource
from bloomcli.storage.registry import open_source as open_source
