"""The rules of `validate`. Every finding has the id of a rule. Ids are stable: policies and baselines contain them.

Every rule has a page (``pages/<id>.md``), which explains the rule, why it matters and how to fix a finding. Reports
use the titles, groups and default severities from this module; SARIF also contains the pages.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from bloomcli.errors import UsageError, near_names
from bloomcli.model.file import Severity


class Group(StrEnum):
    """The subject of a rule."""

    STRUCTURE = "structure"
    """The bytes or the location of a filter, or of its column's pages, contradict the format or the rest of the
    file."""
    SOUNDNESS = "soundness"
    """A reader that trusts the filter, the statistics or the page index loses rows."""
    POLICY = "policy"
    """The filter doesn't meet the team's requirements, or isn't worth its bytes."""
    READERS = "readers"
    """A named engine looks up values or nulls wrongly."""


class When(StrEnum):
    """The condition under which a rule is checked."""

    ALWAYS = "always"
    DEEP = "--deep"
    LIMIT = "its limit"
    """An option or a key of the policy sets a limit."""
    POLICY = "a policy"
    READERS = "readers"
    """The policy or `--readers` names the engines that read the files."""
    TABLE = "--table"
    """The files are those of a table, whose metadata describe them."""


class Rule(NamedTuple):
    """One rule."""

    id: str
    group: Group
    severity: Severity
    """Default severity; a policy can change it."""
    title: str
    """A short description of the problem."""
    when: When = When.ALWAYS


_SOUNDNESS, _STRUCTURE, _POLICY, _READERS = Group.SOUNDNESS, Group.STRUCTURE, Group.POLICY, Group.READERS
_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
_ROWS: Final = (
    ("value-missing", _SOUNDNESS, _ERROR, "a value is not in its filter", When.DEEP),
    ("filter-stray-bits", _SOUNDNESS, _WARNING, "bits are set that no value sets", When.DEEP),
    ("filter-not-checked", _SOUNDNESS, _NOTE, "a filter that can't be checked against its values", When.DEEP),
    ("filter-all-zero", _SOUNDNESS, _ERROR, "no bit is set, but the column has values", When.ALWAYS),
    ("filter-boolean", _SOUNDNESS, _ERROR, "an all-zero filter on a BOOLEAN column", When.ALWAYS),
    ("filter-draft", _SOUNDNESS, _ERROR, "a filter of the 2018 drafts", When.ALWAYS),
    ("filter-untrusted", _SOUNDNESS, _WARNING, "a filter that readers must not use", When.ALWAYS),
    ("statistics-bounds", _SOUNDNESS, _ERROR, "a value outside the minimum and maximum of statistics", When.ALWAYS),
    ("statistics-counts", _SOUNDNESS, _ERROR, "wrong numbers of rows, values, nulls or NaNs", When.ALWAYS),
    ("statistics-encodings", _SOUNDNESS, _ERROR, "a dictionary that is said to have all values", When.DEEP),
    ("statistics-not-checked", _SOUNDNESS, _NOTE, "statistics that can't be compared with the values", When.DEEP),
    ("page-index-bounds", _SOUNDNESS, _ERROR, "a value outside its page's minimum and maximum", When.ALWAYS),
    ("page-index-counts", _SOUNDNESS, _ERROR, "wrong numbers of nulls or NaNs in pages", When.ALWAYS),
    ("page-index-locations", _SOUNDNESS, _ERROR, "pages that aren't where the offset index says", When.ALWAYS),
    ("row-index-positions", _SOUNDNESS, _ERROR, "a row group that isn't where the row index says", When.ALWAYS),
    ("sorting-columns", _SOUNDNESS, _ERROR, "rows that aren't in the stated order", When.DEEP),
    ("size-statistics", _STRUCTURE, _NOTE, "wrong sizes or levels in the size statistics", When.DEEP),
    ("filter-offset", _STRUCTURE, _ERROR, "an impossible offset", When.ALWAYS),
    ("filter-length", _STRUCTURE, _ERROR, "a length that contradicts the header", When.ALWAYS),
    ("filter-num-bytes", _STRUCTURE, _ERROR, "an impossible bitset size", When.ALWAYS),
    ("filter-too-large", _STRUCTURE, _ERROR, "a filter beyond what readers accept", When.ALWAYS),
    ("filter-header", _STRUCTURE, _ERROR, "no filter header at the filter's offset", When.ALWAYS),
    ("filter-algorithm", _STRUCTURE, _ERROR, "an unknown algorithm", When.ALWAYS),
    ("filter-hash", _STRUCTURE, _ERROR, "an unknown hash", When.ALWAYS),
    ("filter-compression", _STRUCTURE, _ERROR, "a compressed or unknown bitset encoding", When.ALWAYS),
    ("filter-overlap", _STRUCTURE, _ERROR, "a filter shares bytes with another part of the file", When.ALWAYS),
    ("filter-encrypted", _STRUCTURE, _WARNING, "a filter that can't be read without its key", When.ALWAYS),
    ("footer-unverified", _STRUCTURE, _NOTE, "a signed footer that no key verifies", When.ALWAYS),
    ("filter-plaintext", _STRUCTURE, _ERROR, "a filter in plain text of an encrypted column", When.ALWAYS),
    ("filter-encoding", _STRUCTURE, _WARNING, "a filter stream without a declared encoding", When.ALWAYS),
    ("filter-no-row-index", _STRUCTURE, _WARNING, "filters without a row index", When.ALWAYS),
    ("filter-count", _STRUCTURE, _ERROR, "not one filter per row group", When.ALWAYS),
    ("filter-hash-functions", _STRUCTURE, _ERROR, "an impossible number of hash functions", When.ALWAYS),
    ("filter-column", _STRUCTURE, _ERROR, "a filter of a column that doesn't exist", When.ALWAYS),
    ("filter-type", _STRUCTURE, _ERROR, "a filter on a type that can't have one", When.ALWAYS),
    ("filter-duplicate", _STRUCTURE, _WARNING, "a second filter of the same column", When.ALWAYS),
    ("filter-trailing-bytes", _STRUCTURE, _WARNING, "bytes after a filter's bits", When.ALWAYS),
    ("filter-not-power-of-two", _STRUCTURE, _WARNING, "a size that some readers reject", When.ALWAYS),
    ("filter-no-length", _STRUCTURE, _NOTE, "no bloom_filter_length", When.ALWAYS),
    ("page-header", _STRUCTURE, _ERROR, "a page contradicts its header", When.ALWAYS),
    ("page-checksum", _STRUCTURE, _ERROR, "a page doesn't match its checksum", When.DEEP),
    ("engine-filter-misses", _SOUNDNESS, _ERROR, "a value is not in a filter that an engine keeps", When.DEEP),
    ("engine-filter-bounds", _SOUNDNESS, _ERROR, "a value outside the bounds beside an engine's filter", When.DEEP),
    ("engine-filter-copy", _SOUNDNESS, _ERROR, "another filter in a table's metadata", When.DEEP),
    ("engine-filter-missing", _STRUCTURE, _ERROR, "an engine's filter isn't where it should be", When.ALWAYS),
    ("engine-filter-damaged", _STRUCTURE, _ERROR, "an engine's filter can't be decoded", When.ALWAYS),
    ("engine-filter-label", _STRUCTURE, _ERROR, "an engine's filter has the name of another type", When.ALWAYS),
    ("engine-filter-overfilled", _STRUCTURE, _WARNING, "an engine's filter has too many values", When.ALWAYS),
    ("engine-filter-oversized", _STRUCTURE, _NOTE, "an engine's filter is far too large", When.ALWAYS),
    ("table-bounds", _SOUNDNESS, _ERROR, "a table's bounds leave out values of a file", When.TABLE),
    ("table-counts", _SOUNDNESS, _ERROR, "a table's counts of rows, nulls or NaN aren't a file's", When.TABLE),
    ("table-partition", _SOUNDNESS, _ERROR, "a file has rows of another partition", When.TABLE),
    ("table-splits", _SOUNDNESS, _ERROR, "a table's split offsets leave out rows of a file", When.TABLE),
    ("filter-required", _POLICY, _ERROR, "a required filter is missing", When.LIMIT),
    ("filter-fpp", _POLICY, _ERROR, "a false-positive rate above the limit", When.LIMIT),
    ("filter-oversized", _POLICY, _ERROR, "a filter larger than its values need", When.LIMIT),
    ("profit-constant", _POLICY, _NOTE, "a filter on a column with one value per row group", When.POLICY),
    ("profit-sorted", _POLICY, _NOTE, "a filter on a column that min/max statistics prune already", When.POLICY),
    ("profit-dictionary", _POLICY, _NOTE, "a filter on a column whose dictionary readers use", When.READERS),
    ("reader-negative-zero", _READERS, _ERROR, "a reader loses rows with a zero of the other sign", When.READERS),
    ("reader-millis", _READERS, _ERROR, "a reader probes milliseconds as microseconds", When.READERS),
    ("reader-decimal-width", _READERS, _ERROR, "a reader probes decimals at another width", When.READERS),
    ("reader-widened", _READERS, _ERROR, "a reader probes at the table's wider type", When.READERS),
    ("reader-single-block", _READERS, _ERROR, "a reader reads beyond a filter of one block", When.READERS),
    ("reader-float16", _READERS, _ERROR, "a reader probes FLOAT16 columns as FLOAT", When.READERS),
    ("reader-interval", _READERS, _ERROR, "a reader probes intervals in a form that filters lack", When.READERS),
    ("reader-null-structs", _READERS, _ERROR, "a reader loses the nulls of structs by their fields", When.READERS),
    ("reader-encrypted", _READERS, _ERROR, "a reader can't read encrypted columns with filters", When.READERS),
    ("reader-issue", _READERS, _NOTE, "a reader has a bug that can't be detected in files", When.READERS),
)

RULES: Final = {i: Rule(id=i, group=g, severity=s, title=t, when=w) for i, g, s, t, w in _ROWS}
"""Every rule by its id, soundness first."""


def rule(id: str) -> Rule:  # noqa: A002  it is the rule's id
    """Return the rule with this id. Raises UsageError, with similar ids, if it doesn't exist."""
    entry = RULES.get(id)
    if entry is None:
        near = near_names(id, RULES, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else "`bloom validate --explain` lists the rules"
        raise UsageError(f"there is no rule {id!r}", hint=hint)
    return entry


@cache
def page(id: str) -> str:  # noqa: A002  it is the rule's id
    """Return the rule's page in Markdown. Raises UsageError for an unknown id."""
    return Path(__file__).with_name("pages").joinpath(f"{rule(id).id}.md").read_text(encoding="utf-8")
