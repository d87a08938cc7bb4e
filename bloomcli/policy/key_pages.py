"""The keys of a policy file, explained for ``bloom validate --explain KEY``. docs/policy.md is the reference."""

from __future__ import annotations

from typing import Final, NamedTuple


class KeyPage(NamedTuple):
    """A key of a policy file."""

    title: str
    text: str
    example: str


PAGES: Final[dict[str, KeyPage]] = {
    "require": KeyPage(
        "columns that must have a filter",
        "Columns (leaf paths or globs) that must have a filter in every row group that has values. In "
        "[columns.NAME] the "
        "value is true. Required columns accumulate. A missing filter is a finding of filter-required; `bloom "
        "add` without "
        "--columns adds it.",
        'require = ["id", "user.*"]',
    ),
    "max-fpp": KeyPage(
        "the highest measured false-positive rate",
        "A rate above 0 and below 1. A filter above it is a finding of filter-fpp. It is also the rate of the "
        "filters that "
        "`bloom add` makes, unless --fpp is given.",
        "max-fpp = 0.01",
    ),
    "max-oversize": KeyPage(
        "the largest size of a filter, as a multiple of what it needs",
        "A factor of 1 or more, at the rate of max-fpp, or 0.01. A larger filter is a finding of filter-oversized.",
        "max-oversize = 4",
    ),
    "size": KeyPage(
        "the sizes that `bloom add` gives filters",
        "power-of-two, the default, or tight: any multiple of 32 bytes, a third less on average. Tight sizes need "
        "readers, and "
        "all of them have to accept such filters. --size has precedence.",
        'size = "tight"\nreaders = ["spark", "duckdb"]',
    ),
    "readers": KeyPage(
        "the engines that read the files",
        "Filters that one of them looks up wrongly are findings, and `bloom add` leaves such columns out.",
        'readers = ["spark", "trino"]',
    ),
    "table-schema": KeyPage(
        "the file with the table's schema",
        "A path relative to the policy: Spark's or Iceberg's JSON, or DDL. Readers look values up at its types.",
        'table-schema = "schemas/orders.json"',
    ),
    "severity": KeyPage(
        "severities other than the rules' defaults",
        "A table: rule = error, warning or note. Errors and warnings make the check fail, notes don't.",
        '[severity]\nfilter-no-length = "warning"',
    ),
    "off": KeyPage(
        "rules that are switched off",
        "A table: rule = the reason, which reports show with the findings.",
        '[off]\nfilter-not-power-of-two = "only Spark reads these, and it accepts any size"',
    ),
    "columns": KeyPage(
        "requirements for some columns",
        "Tables by column or glob, with require, max-fpp, max-oversize and off.",
        '[columns."user.*"]\nmax-fpp = 0.05',
    ),
    "exclude": KeyPage(
        "files that are not checked",
        "Globs of paths as in .gitignore, relative to the policy's directory. `bloom add` without --columns "
        "leaves these "
        "files alone, too.",
        'exclude = ["**/staging/**"]',
    ),
    "files": KeyPage(
        "requirements for some files",
        "Sections with paths and every other key except exclude. Later sections override earlier ones.",
        '[[files]]\npaths = ["archive/**"]\nmax-fpp = 0.05',
    ),
    "paths": KeyPage(
        "the files that a section applies to",
        "Globs of paths as in .gitignore, relative to the policy's directory.",
        '[[files]]\npaths = ["archive/**"]\nmax-fpp = 0.05',
    ),
}
"""By key, in the order of docs/policy.md."""
