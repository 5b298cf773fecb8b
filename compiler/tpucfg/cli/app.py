"""The `tpucfg` command line: its commands, its help, and the exit status of an exception."""

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from keyword import iskeyword
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from tpucfg import __version__
from tpucfg.cli.exit_codes import (
    BROKEN_PIPE,
    ERRORS,
    INTERRUPTED,
    USAGE,
    CommandExit,
    print_error,
    terminations_as_interrupts,
)
from tpucfg.refusal import RefusalError, UsageError
from tpucfg.text_format import format_value, printable_lines, suggestion

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Start": {
        "init": "Create a new project.",
        "import": "Turn a JobSet or another config into a spec.",
        "schema": "Print a JSON Schema, for editors and other tools.",
    },
    "Inspect": {
        "ladder": "Show batch, steps and learning rate of each rung.",
        "sizes": "List the catalog of TPU sizes, with its sources.",
        "why": "Explain where a value of a config comes from.",
        "explain": "Show the page of a finding.",
    },
    "Build": {
        "check": "Report all findings of a spec, or of any config.yaml.",
        "render": "Print the configs, or write them to a folder.",
    },
    "Scale up": {
        "fit": "Compile each rung's step without a TPU: memory, speed.",
        "tune": "Search the cheapest way to run a rung that fits.",
        "submit": "Print the command that starts a job, or run it.",
        "record": "Record what a rung measured.",
        "status": "Show each rung's status and the next one to run.",
    },
    "Review": {
        "review": "Write one comment on what a change does and means.",
        "diff": "Show what a change does to the configs.",
        "infra": "Show the resources of each environment.",
    },
}
"""The commands in the order of `tpucfg --help`. Each is a function in a module of its own: see `python_name`."""

COMMANDS: Final = {
    name: summary for section in SECTIONS.values() for name, summary in section.items()
}


class _Commands(TyperGroup):
    """A group that imports a command only when it is called, so that start-up is fast."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the interface of a group
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the interface of a group
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), summary) for name, summary in commands.items()]
                )

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would exit with 1, which means errors here
            raise CommandExit(BROKEN_PIPE) from None

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the interface of a group
        if cmd_name not in COMMANDS:
            hint = suggestion(cmd_name, [*COMMANDS], "list all commands with: tpucfg --help")
            raise UsageError(f"there is no command {format_value(cmd_name, quoted=False)}", hint)
        return _command(cmd_name)


class _SpecCommand(TyperCommand):
    """A command that rejects a second --spec unless it is repeatable: click would silently use the last one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        specs = [
            param
            for param in self.params
            if param.name == "spec" and not getattr(param, "multiple", True)
        ]
        if specs and not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            if given.count(specs[0]) > 1:
                raise UsageError(
                    f"--spec is given more than once, and {self.name} takes one spec",
                    "keep one --spec",
                )
        return super().parse_args(ctx, args)


def python_name(command: str) -> str:
    """Return the name of a command's module and function: a keyword, such as `import`, gets an underscore."""
    return f"{command}_" if iskeyword(command) else command


@cache  # for processes that run many commands, such as the test suite
def _command(name: str) -> Any:
    """Import a command's module and build the command from its function's signature."""
    module, function = import_module(f"tpucfg.cli.{python_name(name)}"), python_name(name)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, cls=_SpecCommand, context_settings=getattr(module, "CONTEXT", None))(
        getattr(module, function)
    )
    return get_command(single)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    pretty_exceptions_enable=False,
)


def _version(value: bool) -> None:
    if value:
        print(f"tpucfg {__version__}")
        raise typer.Exit


@app.callback()
def tpucfg(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Compile one short spec to one validated config.yaml per TPU size.

    Start with: tpucfg init my-model

    Exit status: 0 done, 1 an error or a refusal, 2 wrong use of the command, 3 differences under --check,
    --exit-code or --fail-on.
    """


@cache
def _group() -> Any:
    return get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status; an error is printed without a traceback.

    SIGTERM and SIGHUP act as Ctrl-C does: a canceled CI job leaves no folder, no process and no job behind.
    """
    command = _group()
    try:
        try:
            with terminations_as_interrupts():
                status = command.main(
                    args=list(arguments), prog_name="tpucfg", standalone_mode=False
                )
        except CommandExit as end:
            status = end.status
        except RefusalError as refusal:
            print_error(str(refusal), refusal.help)
            status = USAGE if isinstance(refusal, UsageError) else ERRORS
        # Flushed here, where a full disk can still be reported.
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001 - the outermost handler: every other error is an internal one
        return _report(error)
    return status if isinstance(status, int) else 0


def _report(error: Exception) -> int:
    """Print an exception as an error message, and return the exit status."""
    show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if callable(show) and isinstance(code, int):  # an error of click, which formats itself
        if isinstance(message := getattr(error, "message", None), str):
            error.message = printable_lines(message)  # type: ignore[attr-defined] # checked in the line above
        show()
        return code
    if type(error).__name__ == "Abort":  # click's, for Ctrl-C
        return INTERRUPTED
    if isinstance(error, OSError):
        return _report_output_error(error)
    if os.environ.get("TPUCFG_DEBUG"):
        raise error
    print(
        f"tpucfg: internal error ({type(error).__name__}: {error}); no partial file was written\n"
        "help: run it again with TPUCFG_DEBUG=1, and report the traceback together with the spec",
        file=sys.stderr,
    )
    return ERRORS


def _report_output_error(error: OSError) -> int:
    """Report a full disk or a closed stream, and discard the rest of the output, which cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    is_closed = error.errno == errno.EBADF and not error.filename
    reason = "stdout is closed" if is_closed else error.strerror or str(error)
    with suppress(OSError):  # stderr may be on the full disk too
        print(f"tpucfg: {error.filename or 'the output'}: {reason}", file=sys.stderr)
    return ERRORS
