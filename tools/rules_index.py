"""Writes docs/rules.md, the tables of rules, engines and writers: ``python -m tools.rules_index [--check] [FILE]``.

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
from bloomcli.rules.reader_table import NOT_POWER_OF_TWO, Reader

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
# Rules, engines, writers

**Reference.** This page lists the rules of `bloom validate`, the engines that look values up in filters, and the
writers whose metadata are wrong. It is written by `python -m tools.rules_index`.

A finding names its rule by the id. `bloom validate --explain ID` prints the rule's page: what it checks, why a
finding is bad and for which engine, how to fix it, and when to switch it off. Errors and warnings make `bloom
validate` exit with 1; notes don't. A [policy](policy.md) can set another severity or switch a rule off.
"""


_FORMATS: Final = {"parquet": "Parquet", "orc": "ORC"}


def checked(rule: Rule) -> str:
    """When a rule is checked, in the words of the pages."""
    return _CHECKED[rule.when]


_READERS: Final = """\
## Engines

`--readers`, and `readers` in [a policy](policy.md#readers), take these names. A fact is *measured* (the engine read
files with and without filters), known from the *source* code, or reported in a *thread*; a thread alone gives a note
at most. *Sizes* says whether the engine takes filters of [any size](formats.md#sizes-between-the-powers-of-two). In
brackets are old releases, about which `bloom add` warns. `bloomcli/rules/reader_table.py` has each observation.
"""


_WRITERS: Final = """\
## Writers

Readers that trust these metadata lose rows. `find` and `probe` don't: where the file contradicts itself, or its
writer is known for the fault, the part isn't used, and the row group is read instead. `bloom inspect FILE --columns
COLUMN --indexes` says which column indexes aren't used. `bloomcli/rules/writer_table.py` has what is wrong, the
evidence, and how each fault is recognized.
"""


def index(pages: str) -> str:
    """The tables in Markdown. `pages`: the pages' folder relative to the tables' folder."""
    lines = (line for group in _ABOUT for line in _section(group, pages))
    return "\n".join([_HEAD, *lines, *_readers(pages), *_writers()])


def _writers() -> Iterator[str]:
    from bloomcli.rules.writer_table import ROWS

    yield _WRITERS
    yield from _table("writer", "part", "columns", "versions")
    for row in ROWS:
        yield _row(row.writer, row.part, row.which, row.evidence.version)
    yield ""


def _readers(pages: str) -> Iterator[str]:
    from bloomcli.rules.readers import READERS

    yield _READERS
    yield from _table("engine", "names", "looks up in", "known from", "sizes", "rules", "what it looks up")
    for who in READERS.values():
        yield _row(
            f"({who.title})" if who.superseded else who.title,
            ", ".join(f"`{name}`" for name in (who.name, *who.aliases)),
            " and ".join(_FORMATS[name] for name in sorted(who.probes, reverse=True)) or "none",
            f"{who.known.kind.value}: {who.known.version}",
            _sizes(who),
            ", ".join(f"[{rule}]({pages}/{rule}.md)" for rule in _rules(who)),
            who.known.text,
        )
    yield ""


def _sizes(who: Reader) -> str:
    if who.any_size is not None:
        return f"any, {who.any_size.kind.value}"
    for found, word in ((who.misreads, "loses rows by others"), (who.refuses, "refuses others")):
        if NOT_POWER_OF_TWO in found:
            return f"powers of two; {word}, {found[NOT_POWER_OF_TWO].kind.value}"
    return ""


def _rules(who: Reader) -> Iterator[str]:
    yield from dict.fromkeys([*who.wrong_about, *who.misreads, *who.refuses])
    if who.issues:
        yield "reader-issue"


def _section(group: Group, pages: str) -> Iterator[str]:
    yield f"## {group.value.capitalize()}"
    yield f"\n{_ABOUT[group]}\n"
    yield from _table("id", "severity", "checked", "finding")
    for rule in RULES.values():
        if rule.group is group:
            yield _row(f"[`{rule.id}`]({pages}/{rule.id}.md)", rule.severity.value, checked(rule), rule.title)
    yield ""


def _table(*heads: str) -> Iterator[str]:
    yield _row(*heads)
    yield _row(*["---"] * len(heads))


def _row(*cells: str) -> str:
    return f"|{'|'.join(cells)}|"


def main(args: Sequence[str]) -> int:
    """Write the tables, or with --check report whether they are out of date. Returns the exit code."""
    path = Path(next((a for a in args if not a.startswith("-")), INDEX))
    text = index(Path(os.path.relpath(PAGES, path.parent)).as_posix())
    if "--check" in args:
        stale = not path.is_file() or path.read_text(encoding="utf-8") != text
        if stale:
            print(f"out of date: {path}; run python -m tools.rules_index", file=sys.stderr)
        return 1 if stale else 0
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
