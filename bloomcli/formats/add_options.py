"""Options of `bloom add` that belong to one format: lists them and checks their values."""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.errors import UsageError
from bloomcli.formats.format import Format, Option, OptionValues, enumerated
from bloomcli.formats.registry import format_named, installed_formats, own_formats


def own_options() -> Iterator[Option]:
    """The options that bloom's own formats add to `bloom add`."""
    for record in own_formats():
        yield from record.options


def checked_options(values: OptionValues) -> OptionValues:
    """Check the values of formats' options, and return them unchanged.

    Raises UsageError for an option that no format has, and for a value that isn't one of an option's choices.
    """
    for name, value in values.items():
        owners = _owners(name)
        if not owners:
            raise UsageError(f"no format has an option {name!r}")
        if not any(value in option.choices if option.choices else value is True for _, option in owners):
            record, option = owners[0]
            raise UsageError(
                f"no {option.noun} is called {value!r}",
                hint=f"{enumerated(option.choices, 'or')}, for {record.title}",
            )
    return values


def refuse_foreign(values: OptionValues, file_format: str, path: str) -> None:
    """Raise UsageError for an option that files of this format don't have."""
    record = format_named(file_format)
    for name in values:
        if record.option(name) is not None:
            continue
        owner, option = _owners(name)[0]
        if not option.ignored_elsewhere:
            raise UsageError(
                f"{record.title} has one {option.noun}",
                path=path,
                hint=f"leave {option.flag} out: it is for {owner.title}",
            )


def for_old_readers(values: OptionValues) -> bool:
    """Whether a choice selects a format's old form, which only old readers use."""
    return any(value in option.old_readers for name, value in values.items() for _, option in _owners(name))


def recorded_choices(values: OptionValues) -> dict[str, str]:
    """The choices that `FilterFacts` records, by the names of its fields."""
    return {
        option.fact: str(value)
        for name, value in values.items()
        for _, option in _owners(name)
        if option.fact is not None
    }


def _owners(name: str) -> list[tuple[Format, Option]]:
    """The formats that have an option: bloom's own or, if none of them has it, formats of other packages."""
    for records in (own_formats, installed_formats):
        owners = [(record, option) for record in records() if (option := record.option(name)) is not None]
        if owners:
            return owners
    return []
