"""The command line: a Click group that imports a command's module on demand, and the mapping of errors to exit codes
(`EXIT_CODES`).
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click

from bloomcli import kernels
from bloomcli.errors import BloomError, PolicyError, UsageError, near_names
from bloomcli.hints import completed, quoted
from bloomcli.model.paths import shown
from bloomcli.report.human import printable
from bloomcli.storage.os_errors import error_of, out_of_memory
from bloomcli.version import __version__

COMMANDS: Final = (
    "inspect",
    "probe",
    "find",
    "index",
    "advise",
    "add",
    "validate",
    "trial",
    "fold",
    "repair",
    "remove",
    "dump",
)
"""The order in the help: the commands that a new user needs first."""

_CHANGING: Final = ("add", "fold", "repair", "remove")
"""The commands that change files, which are in one module."""

EXIT_CODES: Final = {
    0: "success; probe: a value may be present; find: rows were found",
    1: "validate: a finding; probe: all values are absent everywhere; find: no row; trial: a reader loses rows",
    2: "usage: contradicting options, an unknown column, a filter that exists already",
    3: "input unreadable or corrupt, or output that can't be written",
    4: "input valid but not supported (a missing key, an unknown codec), or a package is missing",
    70: "a bug in bloom",
    130: "stopped by Ctrl-C",
    141: "the program that read the output closed it",
}
"""The exit codes as in README and the manual pages."""

_BUG: Final = 70
_INTERRUPTED: Final = 130
_PIPE_CLOSED: Final = 141


def command_of(name: str) -> click.Command:
    """A command of `bloom`, by its name. Its module is imported now."""
    changing = name in _CHANGING
    module = import_module(f"bloomcli.cli.{'changes' if changing else name}")
    command: click.Command = getattr(module, name if changing else "command")
    return command


class _PipeClosed(Exception):
    """The program that read the output has closed it. Click would exit with 1, which means something else here."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is called."""

    def invoke(self, ctx: click.Context) -> object:
        """Do the same as Click, except for a closed pipe."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _PipeClosed from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the help."""
        del ctx
        return [*COMMANDS, "help"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name; None if it doesn't exist."""
        del ctx
        return command_of(cmd_name) if cmd_name in COMMANDS or cmd_name == "help" else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Do the same as Click, but suggest similar names for a command that doesn't exist."""
        name = args[0]
        if name not in {*COMMANDS, "help"} and not name.startswith("-"):
            near = near_names(name, COMMANDS, n=1)
            offer = f"Did you mean {near[0]}?" if near else f"The commands are {', '.join(COMMANDS)}."
            if not near and os.path.lexists(name):
                offer = f"It is a path: try `bloom inspect {quoted(name)}`."
            ctx.fail(f"No such command {shown(name)!r}. {offer}")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    """Print the version, and with ``--verbose``, which is parsed before, those of the packages that bloom uses."""
    del param
    if not wanted or ctx.resilient_parsing:
        return
    from bloomcli.cli import output

    if ctx.params.get("verbose"):
        from bloomcli.cli.versions import versions

        lines = list(versions())
    else:
        lines = [f"bloom {__version__}"]
    for line in lines:
        output.say(line)
    ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`bloom COMMAND -h` shows a command's common options, `bloom COMMAND --help` all of them. "
    "Exit codes: 0 success, 1 a finding (validate), absent everywhere (probe) or nothing found (find), "
    "2 usage, 3 unreadable or corrupt, 4 not supported. See bloom(1).",
)
@click.option(
    "--verbose",
    is_flag=True,
    is_eager=True,
    help="With --version: also print the versions of the packages that bloom uses.",
)
@click.option(
    "-V", "--version", is_flag=True, expose_value=False, callback=_print_version, help="Print the version and exit."
)
def bloom(verbose: bool) -> None:
    """Show, prove and retrofit Bloom filters in Parquet, ORC and Mosaic files.

    inspect shows every filter and its measured false-positive rate, probe looks up values in the
    filters, advise says which columns need filters, add adds filters to a file without rewriting
    its data, and validate proves that no filter misses a value.
    """
    if verbose:
        raise UsageError("--verbose is for --version", hint="bloom --version --verbose")
    kernels.keep_freed_memory()


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. Never raises."""
    from bloomcli.cli.output import fill_closed_streams, take_any_text

    fill_closed_streams()
    take_any_text()
    # Mosaic's reader imports numpy, whose OpenBLAS aborts the process when the system refuses to start threads; bloom
    # doesn't need those threads
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = bloom.main(args=None if args is None else list(args), prog_name="bloom", standalone_mode=False)
        sys.stdout.flush()
    except BloomError as error:
        return _fail(error)
    except click.ClickException as error:
        error.show(text := io.StringIO())
        _say(
            text.getvalue().rstrip("\n").replace("--help' for help.", "-h' for help.")
        )  # Click names the longest option
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        if isinstance(error.__cause__, EOFError):  # Click treats it as the end of the user's input
            return _bug(error.__cause__)
        progress = str(error.__cause__ or error)  # Click raises its own exception from the one with the progress
        _say(f"bloom: stopped: {progress}" if progress else "bloom: stopped")
        return _INTERRUPTED
    except SystemExit as stop:  # SIGTERM or SIGHUP; `SignalExit` also has the progress of the run
        if progress := getattr(stop, "progress", ""):
            _say(f"bloom: stopped: {progress}")
        raise
    except (BrokenPipeError, _PipeClosed):
        _drop_output()
        return _PIPE_CLOSED
    except OSError as error:
        return _refused(error)
    except MemoryError:
        return _fail(out_of_memory())
    except Exception as error:  # noqa: BLE001  any other exception is a bug, and reported as one
        return _bug(error)
    return code if isinstance(code, int) else 0


def _refused(error: OSError) -> int:
    """Report an OSError. Those of files are converted earlier (see `os_errors`), so this one is about the output."""
    if error.filename is not None:
        return _fail(error_of(error))
    from bloomcli.cli.reports import unwritable

    _drop_output()
    return _fail(unwritable(error, "standard output"))


def _drop_output() -> None:
    """Redirect standard output to the null device, because nothing can be written to it, not even at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str) -> None:
    """Write to standard error. If that fails, the exit code is the only report."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def _fail(error: BloomError) -> int:
    if error.__cause__ is not None:
        _trace(error)
    lines = error.message.split("\n") if isinstance(error, PolicyError) else [error.message]
    _say("bloom: " + "\n".join(map(printable, lines)))
    hint = completed(error.hint, error.path)
    if hint:
        _say(f"hint: {printable(hint)}")
    return error.exit_code


def _trace(error: Exception) -> None:
    if os.environ.get("BLOOM_DEBUG"):
        import traceback

        traceback.print_exception(error)


def _bug(error: Exception) -> int:
    _trace(error)

    _say(f"bloom: a bug: {type(error).__name__}: {printable(str(error))}")
    _say("hint: BLOOM_DEBUG=1 shows where; please report it with the file's footer")
    return _BUG
