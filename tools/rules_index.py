"""Writes docs/rules.md, the tables of `validate`'s rules: ``python tools/rules_index.py [--check] [FILE]``.

The tables are made from the rules themselves; each rule links to its page. There are no dates, so the file changes
only when a rule does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bloomcli.rules import RULES, Group, Rule, When
from bloomcli.rules.reader_table import Evidence

INDEX: Final = Path("docs", "rules.md")
PAGES: Final = Path("bloomcli", "rules", "pages")

_ABOUT: Final = {
    Group.SOUNDNESS: "A reader that trusts the filter, the statistics, the page index or the table loses rows.",
    Group.STRUCTURE: "The filter's bytes or its location contradict the format or other parts of the file.",
    Group.POLICY: "The filter doesn't meet the team's policy, or isn't worth its bytes.",
    Group.READERS: "A named engine would look values up wrongly in a correct filter, or nulls in ORC's statistics.",
}
"""Descriptions of the groups, in their order."""

_CHECKED: Final = {
    When.ALWAYS: "always",
    When.DEEP: "with `--deep`",
    When.LIMIT: "with a limit",
    When.POLICY: "with a policy",
    When.READERS: "with named readers",
    When.TABLE: "with `--table`",
}

_HEAD: Final = """\
# The rules of `bloom validate`

<!-- Written by `python tools/rules_index.py`; change the rules and their pages instead. -->

Every finding names its rule by a stable id, which policies and baselines refer to. Each id links to the rule's
page: what the rule checks, why a finding is bad and for which engine, how to fix it, and when to switch the rule
off.

Errors and warnings make `bloom validate` exit with 1; notes don't. A [policy](policy.md) can set another severity,
switch a rule off for all files, some files or some columns (with a reason), and exclude paths.

The commands on the pages name one file and one column; directories and globs work, too. `--in-place` refuses files
of Delta, Iceberg and Hudi tables, because the logs of these tables record each file's size. For such a table,
change the setting of the writer and let the engine write the files again.
"""


def checked(rule: Rule) -> str:
    """When a rule is checked, in the words of the pages."""
    return _CHECKED[rule.when]


_READERS: Final = """\
## Engines

This table lists the values that each engine looks up in filters, and the rows that it loses. A fact is *measured*
(the engine read files with and without filters), known from the *source* code, or reported in a *thread*; a thread
alone gives a note at most. `bloom validate --readers` and `bloom add --readers` use this table. Engines in brackets
are old releases: `bloom add` mentions the rows that they lose, unless readers are named.
"""


_WRITERS: Final = """\
## Writers

This table lists the metadata that programs write wrongly, so that a reader that trusts them loses rows. `find` and
`probe` don't: where the file contradicts itself, or its writer is known for the fault, the part isn't used, and the
row group is read instead. `bloom inspect FILE --columns COLUMN --indexes` says which column indexes aren't used. A
fact is *measured* (the program wrote a file, and its values were looked up), known from the *source* code, or
reported in a *thread*. *created_by* is a regular expression for the start of the name that the writer leaves in its
files; for ORC, `bloom inspect` shows the name.
"""


def index(pages: str) -> str:
    """The tables in Markdown. `pages`: the pages' folder relative to the tables' folder."""
    lines = (line for group in _ABOUT for line in _section(group, pages))
    return "\n".join([_HEAD, *lines, *_readers(pages), *_writers()])


def _writers() -> Iterator[str]:
    from bloomcli.rules.writer_table import ROWS

    yield _WRITERS
    yield "| writer | created_by | part | columns | known from | versions | what | recognized by |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in ROWS:
        fact = row.evidence
        name = "" if row.created_by is None else "`{}`".format(row.created_by.replace("|", "\\|"))
        cells = (row.writer, name, row.part, row.which, fact.kind, fact.version, fact.text, row.detection)
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""


def _readers(pages: str) -> Iterator[str]:
    from bloomcli.rules.readers import READERS

    yield _READERS
    yield "| engine | known from | versions | what | rule |"
    yield "|---|---|---|---|---|"
    for who in READERS.values():
        name = f"({who.title})" if who.superseded else who.title
        never = "" if who.probes else "never looks values up: "
        yield _reader_row(name, who.known, never + who.known.text, "looks up" if who.probes else "doesn't look up")
        if who.any_size is not None:
            yield _reader_row(name, who.any_size, who.any_size.text, "takes any size")
        for rules in (who.wrong_about, who.misreads, who.refuses):
            for rule, fact in rules.items():
                yield _reader_row(name, fact, fact.text, f"[`{rule}`]({pages}/{rule}.md)")
        for fact in who.issues:
            yield _reader_row(name, fact, fact.text, f"[`reader-issue`]({pages}/reader-issue.md)")
    yield ""


def _reader_row(name: str, fact: Evidence, text: str, rule: str) -> str:
    return f"| {name} | {fact.kind.value} | {fact.version} | {text} | {rule} |"


def _section(group: Group, pages: str) -> Iterator[str]:
    yield f"## {group.value.capitalize()}"
    yield f"\n{_ABOUT[group]}\n"
    yield "| id | severity | checked | finding |"
    yield "|---|---|---|---|"
    for rule in RULES.values():
        if rule.group is group:
            name = f"[`{rule.id}`]({pages}/{rule.id}.md)"
            yield f"| {name} | {rule.severity.value} | {checked(rule)} | {rule.title} |"
    yield ""


def main(args: Sequence[str]) -> int:
    """Write the tables, or with --check report whether they are out of date. Returns the exit code."""
    path = Path(next((a for a in args if not a.startswith("-")), INDEX))
    text = index(Path(os.path.relpath(PAGES, path.parent)).as_posix())
    if "--check" in args:
        stale = not path.is_file() or path.read_text(encoding="utf-8") != text
        if stale:
            print(f"out of date: {path}; run python tools/rules_index.py", file=sys.stderr)
        return 1 if stale else 0
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
