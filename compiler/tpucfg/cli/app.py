"""The `tpucfg` command: which commands there are, and what becomes of an exception."""

import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from tpucfg import __version__
from tpucfg.cli.exit_codes import BROKEN_PIPE, ERRORS, INTERRUPTED, USAGE, CommandExit
from tpucfg.text_format import format_value, nearest, printable_lines

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Begin": {
        "init": "Write a new project.",
        "schema": "Print a JSON Schema, for editors and other tools.",
    },
    "Look": {
        "ladder": "Print the rungs: batch, steps and learning rate by size.",
        "sizes": "Print the catalogue of TPU sizes, with its sources.",
        "why": "Say where a value of a config comes from.",
        "explain": "Print the page of a finding.",
    },
    "Make": {
        "check": "Print all findings of a spec, or of any config.yaml.",
        "render": "Print the configs, or write them.",
    },
    "Climb": {
        "submit": "Print the command that starts a job, or run it.",
        "record": "Note what a rung measured.",
        "status": "Say where each rung stands, and which comes next.",
    },
    "Review": {
        "review": "Write one comment on what a change does and means.",
        "diff": "Print what a change does to the configs.",
        "infra": "Print the resources of each environment.",
    },
}
"""The help of `tpucfg`, in its order; each command is the function of that name in the module of that name."""

COMMANDS: Final = {name: said for section in SECTIONS.values() for name, said in section.items()}


class _Commands(TyperGroup):
    """Imports a command when it is called, so that no command pays for what another needs."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the interface of a group
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - likewise
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), said) for name, said in commands.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # which the library would end with the status that stands for errors here
            raise CommandExit(BROKEN_PIPE) from None

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - likewise
        if cmd_name not in COMMANDS:
            near = nearest(cmd_name, [*COMMANDS])
            hint = f"did you mean {near}?" if near else "all are listed by: tpucfg --help"
            raise CommandExit(USAGE, f"there is no command {format_value(cmd_name, quoted=False)}", hint)
        return _command(cmd_name)


class _Command(TyperCommand):
    """Refuses a second --spec where one is taken: by itself the library would take the last and drop the others."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        specs = [param for param in self.params if param.name == "spec" and not getattr(param, "multiple", True)]
        if specs and not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            if given.count(specs[0]) > 1:
                raise CommandExit(
                    USAGE, f"--spec is given more than once, and {self.name} takes one spec", "leave one --spec"
                )
        return super().parse_args(ctx, args)


@cache
def _command(name: str) -> Any:
    """Made once in a process: whoever runs many commands in one pays for the signatures once."""
    module = import_module(f"tpucfg.cli.{name}")
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, cls=_Command, context_settings=getattr(module, "CONTEXT", None))(getattr(module, name))
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
        bool, typer.Option("--version", help="Print the version and leave.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """One short spec in, one validated config.yaml per TPU size out.

    Begin with: tpucfg init my-model

    Exit status: 0 done, 1 an error or a refusal, 2 wrong use of the command, 3 differences under --check,
    --exit-code or --fail-on.
    """


@cache
def _group() -> Any:
    return get_command(app)


def run(arguments: Sequence[str]) -> int:
    """The exit status of the command line; whatever goes wrong is said in one line and not in a traceback."""
    command = _group()
    try:
        try:
            status = command.main(args=list(arguments), prog_name="tpucfg", standalone_mode=False)
        except CommandExit as stop:
            stop.say()
            status = stop.status
        sys.stdout.flush()  # here, where it can still be said that the disk is full
    except Exception as error:  # noqa: BLE001 - the outermost place: nothing above could say it better
        return _failed(error)
    return status if isinstance(status, int) else 0


def _failed(error: Exception) -> int:
    show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if callable(show) and isinstance(code, int):  # the command line's own errors, which know how they are shown
        if isinstance(message := getattr(error, "message", None), str):
            error.message = printable_lines(message)  # type: ignore[attr-defined] # it has one
        show()
        return code
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    if isinstance(error, OSError):
        return _unwritten(error)
    if os.environ.get("TPUCFG_DEBUG"):
        raise error
    said = f"{type(error).__name__}: {error}"
    print(
        f"tpucfg: this is a mistake in tpucfg itself ({said}). Nothing was written by halves.\n"
        "help: run it again with TPUCFG_DEBUG=1 and report what it prints, with the spec",
        file=sys.stderr,
    )
    return ERRORS


def _unwritten(error: OSError) -> int:
    """A full disk, or a reader that went away; what is left of the output has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    print(f"tpucfg: {error.filename or 'the output'}: {error.strerror or error}", file=sys.stderr)
    return ERRORS
