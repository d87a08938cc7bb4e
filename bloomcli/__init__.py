"""Show, prove and retrofit Bloom filters in Parquet, ORC and Mosaic files.

    >>> import bloomcli
    >>> report = bloomcli.inspect("orders.parquet")
    >>> bloomcli.add("orders.parquet", ["id"], output="out.parquet", fpp=0.01)
    >>> rows = bloomcli.add(["/data/orders"], ["id"], in_place=True).rows

Nothing is imported until a name is used, so that ``import bloomcli`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module

from bloomcli.version import __version__

TYPE_CHECKING = False  # as typing.TYPE_CHECKING; while Python imports that module, Ctrl-C would end in a traceback
if TYPE_CHECKING:
    from bloomcli.commands.dump import dump
    from bloomcli.errors import BloomError
    from bloomcli.formats.keys import Keys
    from bloomcli.functions.advise import advise
    from bloomcli.functions.changes import add, fold, remove, repair
    from bloomcli.functions.files import Table
    from bloomcli.functions.find import find
    from bloomcli.functions.index import index_build, index_inspect, index_update
    from bloomcli.functions.inspect import inspect, probe
    from bloomcli.functions.trial import trial
    from bloomcli.functions.validate import gate, validate
    from bloomcli.report.html import html

__all__ = [
    "BloomError",
    "Keys",
    "Table",
    "__version__",
    "add",
    "advise",
    "dump",
    "find",
    "fold",
    "gate",
    "html",
    "index_build",
    "index_inspect",
    "index_update",
    "inspect",
    "probe",
    "remove",
    "repair",
    "trial",
    "validate",
]

_HOMES = {name: f"bloomcli.functions.{name}" for name in __all__ if name.islower() and name[0] != "_"}
_HOMES |= dict.fromkeys(("index_build", "index_inspect", "index_update"), "bloomcli.functions.index")
_HOMES |= dict.fromkeys(("add", "fold", "remove", "repair"), "bloomcli.functions.changes")
_HOMES |= {"gate": "bloomcli.functions.validate", "probe": "bloomcli.functions.inspect"}
_HOMES["html"] = "bloomcli.report.html"
_HOMES["dump"] = "bloomcli.commands.dump"
_HOMES["BloomError"] = "bloomcli.errors"
_HOMES["Keys"] = "bloomcli.formats.keys"
_HOMES["Table"] = "bloomcli.functions.files"


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
