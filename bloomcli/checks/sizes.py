"""Decides whether all readers of a file accept filters whose size isn't a power of two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bloomcli.errors import UsageError
from bloomcli.formats.add_options import for_old_readers
from bloomcli.formats.format import NO_OPTIONS, OptionValues, Sizes
from bloomcli.formats.registry import format_named
from bloomcli.model.file import TIGHT, Severity
from bloomcli.model.validate import Finding
from bloomcli.policy.policy import FilePolicy, Policy
from bloomcli.rules.reader_table import NOT_POWER_OF_TWO
from bloomcli.rules.readers import any_size_refusal, reader, refusing

_NOBODY = f"--size {TIGHT} needs the names of the files' readers, because some readers accept only powers of two"
_NAMING = "--readers spark,duckdb or the like, or readers in the policy"


def tight(rules: FilePolicy, file_format: str, path: str, options: OptionValues = NO_OPTIONS) -> bool:
    """Return whether a file's filters get tight sizes: they are requested, and the format rounds sizes otherwise.

    Args:
        rules: the file's policy, with its readers and the requested size.
        file_format: as in `FilterFile.format`.
        path: the file's path, for errors.
        options: options of single formats.

    Raises:
        UsageError: tight sizes are requested, but no reader is named, a named reader isn't known to accept them, or
            the format allows only powers of two.
    """
    sizes = format_named(file_format).sizes
    if rules.size != TIGHT or sizes is Sizes.OWN:
        return False
    if sizes is Sizes.POWERS_OF_TWO or for_old_readers(options):
        what = "this form of filters" if sizes is Sizes.ANY else format_named(file_format).title
        raise UsageError(f"{what} allows only powers of two", path=path, hint=f"leave --size {TIGHT} out")
    if not rules.readers:
        raise UsageError(_NOBODY, path=path, hint=_NAMING)
    for name in rules.readers:
        refusal = any_size_refusal(reader(name), file_format)
        if refusal is not None:
            raise UsageError(
                f"--size {TIGHT} makes filters whose size isn't a power of two: {refusal}",
                path=path,
                hint=f"leave --size {TIGHT} out, or {name} out of the readers if it doesn't read the file",
            )
    return True


def refuse_without_readers(policy: Policy) -> None:
    """Raise UsageError if a policy requests tight sizes and names no reader in any part."""
    parts = (policy.whole, *policy.files)
    if any(part.size == TIGHT for part in parts) and not any(part.readers for part in parts):
        raise UsageError(_NOBODY, path=policy.path, hint=_NAMING)


def by_readers(findings: Iterable[Finding], rules: FilePolicy, file_format: str) -> Iterator[Finding]:
    """Yield the findings. Those about sizes that aren't powers of two name the readers that refuse or misread them.

    If all named readers accept such filters, these findings are dropped, unless the policy sets a severity for the
    rule. If a named reader misreads them and so loses rows, they are errors.
    """
    named = [reader(name) for name in rules.readers]
    refusals = [text for who in named if (text := any_size_refusal(who, file_format)) is not None]
    loses = any(NOT_POWER_OF_TWO in who.misreads for who in named)
    for finding in findings:
        if finding.id != NOT_POWER_OF_TWO:
            yield finding
        elif refusals:
            severity = Severity.ERROR if loses else finding.severity
            yield replace(finding, message=f"{finding.message}: {'; '.join(refusals)}", severity=severity)
        elif not named or NOT_POWER_OF_TWO in rules.severity:
            yield replace(finding, message=f"{finding.message}: {refusing(NOT_POWER_OF_TWO)}")
