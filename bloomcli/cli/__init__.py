"""The command line: a group whose commands load when they are called, and the one map to exit codes.

0    fine; probe: maybe present somewhere
1    validate: a finding; probe: absent everywhere (as grep)
2    the request can't be meant: usage, unknown column, a filter that is there already
3    input unreadable or corrupt, or output that can't be written
4    input valid, but not supported (encrypted, signed footer, unknown codec)
70   a bug in bloom; BLOOM_DEBUG=1 shows the traceback
130  stopped by Ctrl-C
141  whoever read the output closed it (as a shell says of a program that SIGPIPE ended)
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click

from bloomcli.errors import BloomError, PolicyError, near_names
from bloomcli.version import __version__

COMMANDS: Final = ("inspect", "probe", "add", "validate", "fold", "remove", "dump")
"""In the order in which a newcomer needs them."""

EXIT_CODES: Final = {
    0: "fine; probe: maybe present somewhere",
    1: "validate: a finding; probe: absent everywhere",
    2: "usage: contradicting options, an unknown column, a filter that is there already",
    3: "input unreadable or corrupt, or output that can't be written",
    4: "input valid but not supported (encrypted, signed footer, unknown codec)",
    70: "a bug in bloom",
    130: "stopped by Ctrl-C",
    141: "whoever read the output closed it",
}
"""The map that README and the manual pages print."""

_BUG: Final = 70
_INTERRUPTED: Final = 130
_PIPE_CLOSED: Final = 141


class _PipeClosed(Exception):
    """Whoever read our output has gone. Click would end the program with 1, which has a meaning here."""


class LazyGroup(click.Group):
    """Imports a command's module when the command is asked for."""

    def invoke(self, ctx: click.Context) -> object:
        """As Click does, but for a closed pipe."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _PipeClosed from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in their order."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, if there is one."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"bloomcli.cli.{cmd_name}").command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As Click does, with near names offered for one that doesn't exist."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = near_names(name, COMMANDS, n=1)
            offer = f"Did you mean {near[0]}?" if near else f"The commands are {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {name!r}. {offer}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 a finding (validate) or absent everywhere (probe), 2 usage, "
    "3 unreadable or corrupt, 4 not supported. See bloom(1).",
)
@click.version_option(__version__, "-V", "--version", prog_name="bloom", message="%(prog)s %(version)s")
def bloom() -> None:
    """Show, prove and retrofit Bloom filters in Parquet, ORC and Mosaic files.

    inspect shows every filter and its measured false-positive rate, probe asks the filters about
    values, add puts filters into a file without rewriting its data, validate proves that no filter
    misses a value.
    """


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code and never raises."""
    from bloomcli.cli.output import take_any_text

    take_any_text()
    # numpy comes with the package that reads Mosaic: its OpenBLAS interrupts a process that gets no threads, which
    # nothing here needs
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = bloom.main(args=None if args is None else list(args), prog_name="bloom", standalone_mode=False)
        sys.stdout.flush()
    except BloomError as error:
        return _fail(error)
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _say("bloom: stopped")
        return _INTERRUPTED
    except (BrokenPipeError, _PipeClosed):
        _drop_output()
        return _PIPE_CLOSED
    except OSError as error:
        return _refused(error)
    except MemoryError:
        from bloomcli.storage.os_errors import out_of_memory

        return _fail(out_of_memory())
    except Exception as error:  # noqa: BLE001  the last line of defence: a bug is said to be one
        return _bug(error)
    return code if isinstance(code, int) else 0


def _refused(error: OSError) -> int:
    """Work on files tells its own errors (see `system`): what comes this far is about our output."""
    if error.filename is not None:
        from bloomcli.storage.os_errors import error_of

        return _fail(error_of(error))
    from bloomcli.cli.reports import unwritable

    _drop_output()
    return _fail(unwritable(error, "standard output"))


def _drop_output() -> None:
    """Whoever took our output takes no more: nothing may be written to it, not even at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str) -> None:
    """Tell the user; where standard error takes nothing, the exit code tells alone."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def _fail(error: BloomError) -> int:
    from bloomcli.report.human import printable

    if error.__cause__ is not None:
        _trace(error)
    lines = str(error).split("\n") if isinstance(error, PolicyError) else [str(error)]
    _say("bloom: " + "\n".join(map(printable, lines)))
    if error.hint:
        _say(f"hint: {printable(error.hint)}")
    return error.exit_code


def _trace(error: Exception) -> None:
    if os.environ.get("BLOOM_DEBUG"):
        import traceback

        traceback.print_exception(error)


def _bug(error: Exception) -> int:
    _trace(error)
    from bloomcli.report.human import printable

    _say(f"bloom: a bug: {type(error).__name__}: {printable(str(error))}")
    _say("hint: BLOOM_DEBUG=1 shows where; please report it with the file's footer")
    return _BUG
