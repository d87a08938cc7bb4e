"""Writes the manual pages from the Click commands: ``python -m tools.man [--check] [FOLDER]``.

bloom.1, one page per command, and bloom-json.7 from the dataclasses. They have no dates, so a page changes only with
its command.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from bloomcli.cli import COMMANDS, EXIT_CODES, bloom, command_of
from bloomcli.cli.grouped import GroupedCommand
from bloomcli.report import json
from bloomcli.version import __version__
from tools import json_schema

_ENVIRONMENT = {
    "NO_COLOR": "If set, tables have no colours.",
    "BLOOM_DEBUG": "If set, a bug in bloom shows its traceback.",
}
_COMPLETION = {
    "bash": 'eval "$(_BLOOM_COMPLETE=bash_source bloom)"',
    "zsh": 'eval "$(_BLOOM_COMPLETE=zsh_source bloom)"',
    "fish": "_BLOOM_COMPLETE=fish_source bloom | source",
}


def pages() -> dict[str, str]:
    """The text of every page, by file name."""
    found = {"bloom.1": _main_page()}
    for name in COMMANDS:
        command = command_of(name)
        found[f"bloom-{name}.1"] = _command_page(name, command)
        if isinstance(command, click.Group):
            found |= {
                f"bloom-{name}-{part}.1": _command_page(f"{name} {part}", one)
                for part, one in command.commands.items()
            }
    found["bloom-json.7"] = _json_page()
    return found


def _text(text: str) -> str:
    """Escape text for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\`")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in escaped.split("\n"))


def _head(name: str, section: int, title: str) -> Iterator[str]:
    yield f'.TH "{_text(name.upper())}" "{section}" "" "bloom {__version__}" "bloom manual"'
    yield ".SH NAME"
    yield f"{_text(name)} \\- {_text(title)}"


def _paragraphs(text: str) -> Iterator[str]:
    """Help text: paragraphs are filled; those that start with a backspace are printed unchanged."""
    for index, paragraph in enumerate(text.strip("\n").split("\n\n")):
        if index:
            yield ".PP"
        if paragraph.startswith("\b"):
            yield ".nf"
            yield _text(paragraph.removeprefix("\b").strip("\n"))
            yield ".fi"
        else:
            yield _text(" ".join(paragraph.split()))


def _options(command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=command.name)
    if not isinstance(command, GroupedCommand):
        yield from _records([one for one in command.params if isinstance(one, click.Option)], context)
        yield from (".TP", "\\fB\\-h, \\-\\-help\\fR", "Show help and exit.")
        return
    for title, options in command.grouped(context):
        yield f".SS {title}"
        yield from _records(options, context)


def _records(options: Sequence[click.Option], context: click.Context) -> Iterator[str]:
    for option in options:
        record = option.get_help_record(context)
        if record is not None:
            yield ".TP"
            yield f"\\fB{_text(record[0])}\\fR"
            yield _text(" ".join(record[1].split()))


def _exit_codes() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, text in EXIT_CODES.items():
        yield ".TP"
        yield f"\\fB{code}\\fR"
        yield _text(text)


def _main_page() -> str:
    lines = [*_head("bloom", 1, "show, prove and retrofit Bloom filters in Parquet, ORC and Mosaic files")]
    lines += [".SH SYNOPSIS", "\\fBbloom\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] \\fIFILE\\fR ...", ".SH DESCRIPTION"]
    lines += _paragraphs(bloom.help or "")
    lines.append(".SH COMMANDS")
    for name in COMMANDS:
        command = command_of(name)
        lines += [".TP", f"\\fBbloom\\-{name}\\fR(1)", _text(command.get_short_help_str(limit=200))]
    lines += [".SH OPTIONS", *_options(bloom), *_exit_codes(), ".SH ENVIRONMENT"]
    for name, text in _ENVIRONMENT.items():
        lines += [".TP", f"\\fB{name}\\fR", _text(text)]
    lines += [".SH SHELL COMPLETION", "To complete commands, options and the column names of a file, run one of:"]
    for shell, line in _COMPLETION.items():
        lines += [".TP", shell, _text(line)]
    lines += [".SH SEE ALSO", ", ".join(f"\\fBbloom\\-{n}\\fR(1)" for n in COMMANDS) + ", \\fBbloom\\-json\\fR(7)"]
    return "\n".join(lines) + "\n"


def _command_page(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"bloom {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [*_head(f"bloom-{name.replace(' ', '-')}", 1, command.get_short_help_str(limit=200).rstrip(".").lower())]
    lines += [".SH SYNOPSIS", f"\\fBbloom {name}\\fR {_text(usage)}", ".SH DESCRIPTION"]
    lines += _paragraphs(command.help or "")
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for part, one in command.commands.items():
            lines += [".TP", f"\\fBbloom\\-{name}\\-{part}\\fR(1)", _text(one.get_short_help_str(limit=200))]
    lines += [".SH OPTIONS", *_options(command)]
    if command.epilog:
        lines += [".SH EXAMPLES", *_paragraphs(command.epilog.replace("\b\nExamples:\n", "\b\n"))]
    lines += [*_exit_codes(), ".SH SEE ALSO", "\\fBbloom\\fR(1), \\fBbloom\\-json\\fR(7)"]
    return "\n".join(lines) + "\n"


def _json_page() -> str:
    lines = [*_head("bloom-json", 7, "the JSON documents of bloom's commands")]
    lines += [".SH DESCRIPTION", "Every command prints one JSON object with \\fB\\-\\-format json\\fR. Its key"]
    lines += ['\\fBschema\\fR names command and version, such as "bloom/inspect/1"; the other keys are those of']
    lines += ["the object below. Within a version, keys may be added, but no key is removed or changes its meaning."]
    lines += ["Sizes and offsets are bytes, rates are probabilities between 0 and 1."]
    lines.append(".SH DOCUMENTS")
    for name, kind in json.DOCUMENTS.items():
        lines += [".TP", f"\\fB{_text(json.schema_id(name))}\\fR", f"\\fI{kind.__name__}\\fR"]
    lines.append(".SH OBJECTS")
    for kind in json_schema.reachable(json.DOCUMENTS.values()):
        described = json_schema.object_schema(kind)
        lines += [f".SS {described.name}", _text(described.text)]
        for key in described.keys:
            lines += [".TP", f"\\fB{_text(key.name)}\\fR ({_text(key.type)})"]
            lines.append(_text(key.text) if key.text else "\\&")
    lines += [".SH SEE ALSO", "\\fBbloom\\fR(1)"]
    return "\n".join(lines) + "\n"


def outdated(folder: Path) -> list[str]:
    """Names of pages in `folder` that are out of date or missing, or that belong to no command."""
    wanted = pages()
    existing = {path.name for path in folder.glob("*.[1-9]")}
    changed = {
        name
        for name, text in wanted.items()
        if name in existing and (folder / name).read_text(encoding="utf-8") != text
    }
    return sorted(changed | (existing ^ wanted.keys()))


def main(args: Sequence[str]) -> int:
    """Write the pages, or with --check report which are out of date. Returns the exit code."""
    folder = Path(next((a for a in args if not a.startswith("-")), "man"))
    if "--check" in args:
        stale = outdated(folder)
        if stale:
            print(f"out of date: {', '.join(stale)}; run python -m tools.man", file=sys.stderr)
        return 1 if stale else 0
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
