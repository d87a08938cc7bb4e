"""bloomcli.validate"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Unpack

from bloomcli.commands import validate as command
from bloomcli.commands.keywords import ValidateKeywords
from bloomcli.commands.option import takes_options
from bloomcli.commands.options import GateOptions, ValidateOptions
from bloomcli.datasets.engine import Engine
from bloomcli.functions.files import Files, OnRow, ProgressOption, RunOptions, Table, options_of, run, takes_files
from bloomcli.model.gate import GateReport
from bloomcli.model.validate import ValidateReport


@takes_files(GateReport)
@takes_options(ValidateOptions, RunOptions, ProgressOption)
def validate(path: Files | Table, **options: Unpack[ValidateKeywords]) -> ValidateReport:
    """Check a file's Bloom filters.

    Always checks the structure: headers, lengths, offsets, overlaps, known faulty writers. With `deep` it also reads
    every value of every filtered column chunk, builds the filter again from the values, and compares the bits.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them; or a `bloomcli.Table`.
        {options}

    Returns:
        The report on one file. For a directory, a pattern, a list or a table, the `GateReport` of `bloomcli.gate`.

    Raises:
        UnreadableError, UnsupportedError, UnknownColumn: as for `inspect`. A faulty filter is a finding, an
            unreadable file is an error. If only its values can't be read, the error's `findings` contains the
            findings so far.
        UsageError: a figure out of range, a policy that can't be read, an unknown engine.
    """
    return run(path, options_of(ValidateOptions, options), options, command.run, _gate)


def _gate(paths: Sequence[str], options: ValidateOptions, engine: Engine, on_row: OnRow | None) -> GateReport:
    from bloomcli.validation import gate

    fields = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return gate.run(paths, GateOptions(**fields), engine, on_row=on_row)
