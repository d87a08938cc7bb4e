"""The keys of encrypted files, as people and programs give them.

A key on the command line has an explicit form, because a text of 16, 24 or 32 characters can be a key itself, its
hexadecimal digits or its base64: ``hex:``, ``base64:``, ``env:NAME`` for a variable, ``@FILE`` for a file. The
variable and the file have ``hex:`` or ``base64:`` in front of the key, too. No error and no `repr` shows a key.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bloomcli.errors import UsageError, needed
from bloomcli.words import counted

_SIZES: Final = (16, 24, 32)
_FORMS: Final = "hex:DIGITS, base64:TEXT, env:NAME or @FILE"
_FILE_MOST: Final = 4096
_PAIR: Final = re.compile(r"(.+?)=((?:hex:|base64:|env:|@).*)", re.DOTALL)
"""A name may contain ``=``: the value begins with a form."""
_SETTING: Final = re.compile(r"([^=]+)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Keys:
    """The keys of encrypted files. A key is 16, 24 or 32 bytes, or a text with an explicit form.

    Attributes:
        footer_key: the footer's key.
        column_keys: keys of columns, by the dotted paths of the leaf columns.
        keys: keys by what a file calls them: the key metadata of the footer or of a column, or a master key's id.
        aad_prefix: the prefix of the additional authenticated data, where the file doesn't store it: bytes, or a
            text like a key's, or with ``text:``.
        kms: a client of a key management service with the method ``unwrap_key`` of `pyarrow.parquet.encryption`'s
            `KmsClient`, its class, or ``module:Class``.
        files: the footer's key and the AAD prefix of single files, by path: a table's metadata have them. They take
            precedence.
        kms_config: settings for that class. ``kms_instance_id``, ``kms_instance_url`` and ``key_access_token`` become
            fields of the `KmsConnectionConfig`, others its ``custom_kms_conf``.
    """

    footer_key: bytes | str | None = None
    column_keys: Mapping[str, bytes | str] = field(default_factory=dict)
    keys: Mapping[str, bytes | str] = field(default_factory=dict)
    aad_prefix: bytes | str | None = None
    kms: Any = None
    kms_config: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, tuple[bytes, bytes | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Turn each key into bytes, and import the KMS's class. Raises UsageError, which doesn't show a key."""
        put = object.__setattr__
        if self.footer_key is not None:
            put(self, "footer_key", read_key(self.footer_key, "the footer's key"))
        for name, whose in (("column_keys", "the key of column {}"), ("keys", "the key {}")):
            keys = _mapping(getattr(self, name), name)
            put(self, name, {each: read_key(key, whose.format(each)) for each, key in keys.items()})
        if self.aad_prefix is not None:
            put(self, "aad_prefix", _bytes_of(self.aad_prefix, "the AAD prefix", text=True))
        put(
            self,
            "kms_config",
            {name: _setting(value) for name, value in _mapping(self.kms_config, "kms_config").items()},
        )
        if self.kms_config and self.kms is None:
            raise UsageError(
                "kms_config has settings of a KMS, and no KMS is named", hint="name its class with --kms"
            )
        if isinstance(self.kms, str):
            _imported(self.kms)  # a file without key material would never ask for the class
        put(self, "files", _mapping(self.files, "files"))
        seal()  # before processes are forked

    def of_file(self, path: str) -> Keys:
        """The keys for one file."""
        if path not in self.files:
            return self
        key, prefix = self.files[path]
        return Keys(footer_key=key, aad_prefix=prefix)

    def __repr__(self) -> str:
        parts = [] if self.footer_key is None else ["footer_key=..."]
        parts += [f"column_keys={sorted(self.column_keys)}"] if self.column_keys else []
        parts += [f"keys={sorted(self.keys)}"] if self.keys else []
        parts += [] if self.aad_prefix is None else ["aad_prefix=..."]
        parts += [] if self.kms is None else ["kms=..."]
        parts += [f"files=({len(self.files)})"] if self.files else []
        return f"Keys({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        """Pickle the keys sealed: Spark writes tasks and broadcasts to its disks."""
        import pickle

        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        try:
            plaintext = pickle.dumps(fields)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise UsageError(
                f"other processes can't get the KMS client: {type(error).__name__}",
                hint="name its class: module:Class",
            ) from None
        nonce = os.urandom(_NONCE_BYTES)
        return _unsealed, (nonce + _sealer(seal()).encrypt(nonce, plaintext, None),)

    def client(self, instance: str | None = None, url: str | None = None) -> Any:
        """The client of the KMS; None if none is named. `instance` and `url` are those of a file's key material.

        Raises UsageError: the class can't be imported, or doesn't take the settings.
        """
        kms = self.kms
        if isinstance(kms, str):
            kms = _imported(kms)
        if not isinstance(kms, type):
            return kms
        from pyarrow.parquet import encryption

        config = {"kms_instance_id": instance, "kms_instance_url": url, **self.kms_config}
        of_arrow = {name: config.pop(name) for name in ("kms_instance_id", "kms_instance_url") if name in config}
        token = config.pop("key_access_token", None)
        try:
            return kms(
                encryption.KmsConnectionConfig(
                    **{name: value for name, value in of_arrow.items() if value is not None},
                    **({} if token is None else {"key_access_token": token}),
                    custom_kms_conf=config,
                )
            )
        except Exception as error:  # noqa: BLE001  the class is the user's
            raise UsageError(f"the KMS {kms.__name__} can't be made: {type(error).__name__}") from None


def _imported(name: str) -> Any:
    """The class of a KMS that ``module:Class`` names. Raises UsageError."""
    module, _, within = name.partition(":")
    try:
        return getattr(import_module(module), within)
    except (ImportError, AttributeError, ValueError) as error:
        imported = shlex.quote(f"from {module or 'module'} import {within or 'Class'}")
        raise UsageError(
            f"no class of a KMS can be imported as {name!r}: {error}",
            hint="--kms takes module:Class; set PYTHONPATH to the module's directory, so that "
            f"`python -c {imported}` ends without an error",
        ) from None


_NONCE_BYTES: Final = 12
SEAL_PROPERTY: Final = "bloom.secret.seal"
"""The local property by which Spark's tasks get the seal. Spark's logs leave out properties with "secret" in them."""
_seal: list[bytes] = []


def seal() -> bytes:
    """The key that seals pickled keys: of this process, or of the one that it works for. It is never on a disk."""
    if not _seal:
        _seal.append(_seal_of_task() or os.urandom(32))
    return _seal[0]


def use_seal(sender_seal: bytes) -> None:
    """Take the seal of the process that sends keys to this one."""
    _seal[:] = [sender_seal]


def _seal_of_task() -> bytes | None:
    """The seal that a Spark task got from its driver; None outside of tasks, and without keys."""
    pyspark = sys.modules.get("pyspark")  # a task's process has imported it
    context = None if pyspark is None else pyspark.TaskContext.get()
    text = None if context is None else context.getLocalProperty(SEAL_PROPERTY)
    return None if text is None else bytes.fromhex(text)


def _sealer(key: bytes) -> Any:
    with needed("encrypted files need", "encryption"):
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    return AESGCM(key)


def _unsealed(sealed: bytes) -> Keys:
    """The keys that `Keys.__reduce__` sealed. Raises UsageError in a process that has no such seal."""
    import pickle

    from cryptography.exceptions import InvalidTag

    for own in filter(None, (_seal_of_task(), *_seal)):
        try:
            plaintext = _sealer(own).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except InvalidTag:
            continue
        return Keys(**pickle.loads(plaintext))  # noqa: S301  authentic, by the seal
    raise UsageError(
        "the keys of encrypted files can't be opened in this process",
        hint="run the action on the frame in the thread that made it",
    )


def keys_of(option: object) -> Keys:
    """The keys of a keyword ``keys``: a `Keys`, or a mapping of its fields. Raises UsageError."""
    if isinstance(option, Keys):
        return option
    fields = _mapping(option, "keys")
    unknown = fields.keys() - Keys.__dataclass_fields__.keys()
    if unknown:
        raise UsageError(
            f"keys takes {', '.join(Keys.__dataclass_fields__)}, not {min(map(str, unknown))!r}",
            hint="a key by what a file calls it is in keys['keys']",
        )
    return Keys(**fields)


def pairs(texts: Iterable[str], flag: str) -> dict[str, str]:
    """The names and values of an option ``--flag NAME=VALUE`` that repeats. Raises UsageError, without the value."""
    values: dict[str, str] = {}
    for text in texts:
        match = _PAIR.fullmatch(text) or _SETTING.fullmatch(text)
        if match is None:
            raise UsageError(f"{flag} takes NAME=VALUE; one of its values has no name or no =")
        if match[1] in values:
            raise UsageError(f"{flag} names {match[1]} twice", hint="give each once")
        values[match[1]] = match[2]
    return values


def _mapping(option: object, name: str) -> dict[str, Any]:
    if not isinstance(option, Mapping) or not all(isinstance(key, str) for key in option):
        raise UsageError(f"{name} takes a mapping with names as its keys")
    return dict(option)


def _setting(value: object) -> str:
    """A setting of a KMS; ``env:NAME`` and ``@FILE`` are read."""
    if not isinstance(value, str):
        raise UsageError("kms_config takes texts")
    return _referred(value, "a setting of the KMS") or value


def read_key(option: object, whose: str) -> bytes:
    """A key of 16, 24 or 32 bytes. `whose` is for errors, which don't show it. Raises UsageError."""
    key = _bytes_of(option, whose)
    if len(key) not in _SIZES:
        raise UsageError(f"{whose} has {counted(len(key), 'byte')}, and a key has 16, 24 or 32")
    return key


def _bytes_of(option: object, whose: str, *, text: bool = False) -> bytes:
    if isinstance(option, bytes | bytearray):
        return bytes(option)
    if not isinstance(option, str):
        raise UsageError(f"{whose} is neither bytes nor a text")
    spec = _referred(option, whose) or option
    form, _, value = spec.partition(":")
    try:
        if form == "hex":
            return bytes.fromhex(value.removeprefix("0x"))
        if form == "base64":
            import base64

            return base64.b64decode(value, validate=True)
    except ValueError:
        raise UsageError(f"{whose} isn't valid {form}") from None
    if form == "text" and text:
        return os.fsencode(value)
    raise UsageError(
        f"{whose} has none of the forms {_FORMS}{', or text:WORDS' if text else ''}",
        hint="the form is never guessed: a key of 16 characters is written hex:30313233..., and a variable or a file "
        "has hex: or base64: in front, too",
    )


def _referred(reference: str, whose: str) -> str | None:
    """The text in the variable or the file that is named; None if none is."""
    if reference in {"env:", "@"}:
        return None
    if reference.startswith("env:"):
        variable = os.environ.get(reference[4:])
        if variable is None:
            raise UsageError(f"{whose} is in the environment variable {reference[4:]}, which isn't set")
        return variable.strip()
    if reference.startswith("@"):
        try:
            with Path(reference[1:]).open("rb") as file:
                raw = file.read(_FILE_MOST + 1)
            if len(raw) > _FILE_MOST:
                raise UsageError(f"{whose}: the file {reference[1:]} has more than {_FILE_MOST} bytes")
            return raw.decode("utf-8").strip()
        except OSError as error:
            raise UsageError(f"{whose}: the file {reference[1:]} can't be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError(
                f"{whose}: the file {reference[1:]} isn't text",
                hint=f"a file has base64: or hex: in front of the key: (printf base64:; base64 -w0 {reference[1:]})",
            ) from None
    return None


def key_hint(key_id: str | None, column: str | None = None) -> str:
    """The hint with the options by which a key is given: that of a column, or of the footer."""
    option = ["--footer-key", "env:NAME"] if column is None else ["--column-key", f"{column}=env:NAME"]
    named = "" if key_id is None else f", or by the file's name for it, {shlex.join(['--key', f'{key_id}=env:NAME'])}"
    return f"give its key: {shlex.join(option)}{named}"
