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
    """A named engine looks up values wrongly."""


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


def _rules() -> dict[str, Rule]:
    error, warning, note = Severity.ERROR, Severity.WARNING, Severity.NOTE
    structure, soundness, policy, readers = Group
    rows = (
        ("value-missing", soundness, error, "a value is not in its filter", When.DEEP),
        ("filter-stray-bits", soundness, warning, "bits are set that no value sets", When.DEEP),
        ("filter-not-checked", soundness, note, "a filter that can't be checked against its values", When.DEEP),
        ("filter-all-zero", soundness, error, "no bit is set, but the column has values", When.ALWAYS),
        ("filter-boolean", soundness, error, "an all-zero filter on a BOOLEAN column", When.ALWAYS),
        ("filter-draft", soundness, error, "a filter of the 2018 drafts", When.ALWAYS),
        ("filter-untrusted", soundness, warning, "a filter that readers must not use", When.ALWAYS),
        ("statistics-bounds", soundness, error, "a value outside the minimum and maximum of statistics", When.ALWAYS),
        ("statistics-counts", soundness, error, "wrong numbers of rows, values, nulls or NaNs", When.ALWAYS),
        ("statistics-encodings", soundness, error, "a dictionary that is said to have all values", When.DEEP),
        ("statistics-not-checked", soundness, note, "statistics that can't be compared with the values", When.DEEP),
        ("page-index-bounds", soundness, error, "a value outside its page's minimum and maximum", When.ALWAYS),
        ("page-index-counts", soundness, error, "wrong numbers of nulls or NaNs in pages", When.ALWAYS),
        ("page-index-locations", soundness, error, "pages that aren't where the offset index says", When.ALWAYS),
        ("row-index-positions", soundness, error, "a row group that isn't where the row index says", When.ALWAYS),
        ("sorting-columns", soundness, error, "rows that aren't in the stated order", When.DEEP),
        ("size-statistics", structure, note, "wrong sizes or levels in the size statistics", When.DEEP),
        ("filter-offset", structure, error, "an impossible offset", When.ALWAYS),
        ("filter-length", structure, error, "a length that contradicts the header", When.ALWAYS),
        ("filter-num-bytes", structure, error, "an impossible bitset size", When.ALWAYS),
        ("filter-too-large", structure, error, "a filter beyond what readers accept", When.ALWAYS),
        ("filter-header", structure, error, "no filter header at the filter's offset", When.ALWAYS),
        ("filter-algorithm", structure, error, "an unknown algorithm", When.ALWAYS),
        ("filter-hash", structure, error, "an unknown hash", When.ALWAYS),
        ("filter-compression", structure, error, "a compressed or unknown bitset encoding", When.ALWAYS),
        ("filter-overlap", structure, error, "a filter shares bytes with another part of the file", When.ALWAYS),
        ("filter-encrypted", structure, warning, "a filter that can't be read without its key", When.ALWAYS),
        ("filter-encoding", structure, warning, "a filter stream without a declared encoding", When.ALWAYS),
        ("filter-no-row-index", structure, warning, "filters without a row index", When.ALWAYS),
        ("filter-count", structure, error, "not one filter per row group", When.ALWAYS),
        ("filter-hash-functions", structure, error, "an impossible number of hash functions", When.ALWAYS),
        ("filter-column", structure, error, "a filter of a column that doesn't exist", When.ALWAYS),
        ("filter-type", structure, error, "a filter on a type that can't have one", When.ALWAYS),
        ("filter-duplicate", structure, warning, "a second filter of the same column", When.ALWAYS),
        ("filter-trailing-bytes", structure, warning, "bytes after a filter's bits", When.ALWAYS),
        ("filter-not-power-of-two", structure, warning, "a size that some readers reject", When.ALWAYS),
        ("filter-no-length", structure, note, "no bloom_filter_length", When.ALWAYS),
        ("page-header", structure, error, "a page contradicts its header", When.ALWAYS),
        ("page-checksum", structure, error, "a page doesn't match its checksum", When.DEEP),
        ("table-bounds", soundness, error, "a table's bounds leave out values of a file", When.TABLE),
        ("table-counts", soundness, error, "a table's counts of rows, nulls or NaN aren't a file's", When.TABLE),
        ("table-partition", soundness, error, "a file has rows of another partition", When.TABLE),
        ("table-splits", soundness, error, "a table's split offsets leave out rows of a file", When.TABLE),
        ("filter-required", policy, error, "a required filter is missing", When.LIMIT),
        ("filter-fpp", policy, error, "a false-positive rate above the limit", When.LIMIT),
        ("filter-oversized", policy, error, "a filter larger than its values need", When.LIMIT),
        ("profit-constant", policy, note, "a filter on a column with one value per row group", When.POLICY),
        ("profit-sorted", policy, note, "a filter on a column that min/max statistics prune already", When.POLICY),
        ("profit-dictionary", policy, note, "a filter on a column whose dictionary readers use", When.READERS),
        ("reader-negative-zero", readers, error, "a reader loses rows with a zero of the other sign", When.READERS),
        ("reader-millis", readers, error, "a reader probes milliseconds as microseconds", When.READERS),
        ("reader-decimal-width", readers, error, "a reader probes decimals at another width", When.READERS),
        ("reader-widened", readers, error, "a reader probes at the table's wider type", When.READERS),
        ("reader-single-block", readers, error, "a reader reads beyond a filter of one block", When.READERS),
        ("reader-float16", readers, error, "a reader probes FLOAT16 columns as FLOAT", When.READERS),
        ("reader-interval", readers, error, "a reader probes intervals in a form that filters lack", When.READERS),
        ("reader-issue", readers, note, "a reader has a bug that can't be detected in files", When.READERS),
    )
    return {i: Rule(id=i, group=g, severity=s, title=t, when=w) for i, g, s, t, w in rows}


RULES: Final = _rules()
"""Every rule by its id, soundness first."""


def rule(id: str) -> Rule:  # noqa: A002  it is the rule's id
    """Return the rule with this id. Raises UsageError, with similar ids, if it doesn't exist."""
    found = RULES.get(id)
    if found is None:
        near = near_names(id, RULES, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else "`bloom validate --explain` lists the rules"
        raise UsageError(f"there is no rule {id!r}", hint=hint)
    return found


@cache
def page(id: str) -> str:  # noqa: A002  it is the rule's id
    """Return the rule's page in Markdown. Raises UsageError for an unknown id."""
    return Path(__file__).with_name("pages").joinpath(f"{rule(id).id}.md").read_text(encoding="utf-8")
