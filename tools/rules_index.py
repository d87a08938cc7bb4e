"""The table of `validate`'s rules, docs/rules.md: ``python tools/rules_index.py [--check] [FILE]``.

From the rules themselves, each linked to its page. No dates: the table changes when a rule does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bloomcli.rules import RULES, Group, Rule, When
from bloomcli.rules.reader_types import Evidence

INDEX: Final = Path("docs", "rules.md")
PAGES: Final = Path("bloomcli", "rules", "pages")

_ABOUT: Final = {
    Group.SOUNDNESS: "A reader that trusts the filter loses rows, or must not use it at all.",
    Group.STRUCTURE: "The filter's bytes and place contradict the format or other parts of the file.",
    Group.POLICY: "The filter isn't what the team asked for, or isn't worth its bytes.",
    Group.READERS: "A named engine would probe a right filter wrongly.",
}
"""What a group's rules are about, in the order of the groups."""

_LOOKED_AT: Final = {
    When.ALWAYS: "always",
    When.DEEP: "with `--deep`",
    When.ASKED: "where a limit asks for it",
    When.POLICY: "with a policy",
    When.READERS: "where readers are named",
}

_HEAD: Final = """\
# The rules of `bloom validate`

<!-- Written by `python tools/rules_index.py`; change the rules and their pages instead. -->

Every finding names its rule by an id that stays what it is: policies and baselines rely on it. Each id leads to its
page: what is checked, why it matters and to which engine, how to mend it, and when it may be switched off.

An error or a warning makes `bloom validate` exit with 1, a note doesn't; a policy can set another severity, switch a
rule off for all files, some files or some columns (with a reason, always), and leave paths out.

The pages' commands name one file and one column; directories and globs work too. In place, files of Delta, Iceberg
and Hudi tables are refused, whose logs record each file's size: there change the writer's setting and let the engine
write the files anew.
"""


def looked_at(rule: Rule) -> str:
    """When a rule is looked at, as the pages have it."""
    return _LOOKED_AT[rule.when]


_READERS: Final = """\
## Engines

What is known of each engine's look-ups, and of what they lose: measured (run on files with filters and without), read
in its source, or told in a thread, which gives a note at most. `bloom validate --readers` and `bloom add --readers`
share this table. Engines in brackets are old releases: where they aren't named, `bloom add` notes what they lose.
"""


def index(pages: str) -> str:
    """The tables, Markdown. `pages`: the pages' folder as seen from the tables'."""
    lines = (line for group in _ABOUT for line in _section(group, pages))
    return "\n".join([_HEAD, *lines, *_readers(pages)])


def _readers(pages: str) -> Iterator[str]:
    from bloomcli.rules.readers import READERS

    yield _READERS
    yield "| engine | known by | versions | what | rule |"
    yield "|---|---|---|---|---|"
    for who in READERS.values():
        name = f"({who.title})" if who.superseded else who.title
        never = "" if who.probes else "never looks values up: "
        yield _reader_row(name, who.known, never + who.known.text, "")
        for rules in (who.wrong_about, who.misreads, who.refuses):
            for rule, fact in rules.items():
                yield _reader_row(name, fact, fact.text, rule, pages)
        for fact in who.issues:
            yield _reader_row(name, fact, fact.text, "reader-issue", pages)
    yield ""


def _reader_row(name: str, fact: Evidence, text: str, rule: str, pages: str = "") -> str:
    link = f"[`{rule}`]({pages}/{rule}.md)" if rule else "looks up"
    return f"| {name} | {fact.kind.value} | {fact.version} | {text} | {link} |"


def _section(group: Group, pages: str) -> Iterator[str]:
    yield f"## {group.value.capitalize()}"
    yield f"\n{_ABOUT[group]}\n"
    yield "| id | severity | looked at | finding |"
    yield "|---|---|---|---|"
    for rule in RULES.values():
        if rule.group is group:
            name = f"[`{rule.id}`]({pages}/{rule.id}.md)"
            yield f"| {name} | {rule.severity.value} | {looked_at(rule)} | {rule.title} |"
    yield ""


def main(args: Sequence[str]) -> int:
    """Write the table, or with --check say whether it is out of date; returns the exit code."""
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
