"""docs/reference/commands.md: every command with its options, from its help."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from typer.main import get_command

from refpages import GENERATED, prose
from tpucfg.cli import exit_codes
from tpucfg.cli.app import COMMANDS, app

_INTRO: Final = """\
# Commands

`tpucfg COMMAND --help` prints the text of this page. Results are written to standard output, and everything else to
standard error. Output is colored only on a terminal, and not if `NO_COLOR` is set. `tpucfg --install-completion` sets
up completion in the shell.
"""
_STATUSES: Final = """\
## Exit status

| status | meaning |
|---|---|
"""


def page() -> str:
    """Return the page's text."""
    contexts = _contexts()
    parts = [f"{GENERATED}\n\n", _INTRO, "\n", *_overview(contexts), "\n", _STATUSES, *_statuses(), "\n"]
    commands = (line for name, context in contexts.items() for line in _command(name, context))
    return "".join([*parts, *commands]).rstrip("\n") + "\n"


def _contexts() -> dict[str, Any]:
    """Return each command's context, whose `command` has its help."""
    group: Any = get_command(app)
    above = group.make_context("tpucfg", [], resilient_parsing=True)
    commands = {name: group.get_command(above, name) for name in COMMANDS}
    return {name: type(above)(command, info_name=name, parent=above) for name, command in commands.items()}


def _overview(contexts: Mapping[str, Any]) -> Iterator[str]:
    yield "| command | |\n|---|---|\n"
    for name, context in contexts.items():
        yield f"| [`tpucfg {name}`](#tpucfg-{name}) | {_paragraphs(context)[0]} |\n"


def _statuses() -> Iterator[str]:
    yield from (f"| {status} | {meaning} |\n" for status, meaning in exit_codes.MEANINGS.items())


def _command(name: str, context: Any) -> Iterator[str]:
    yield f"## tpucfg {name}\n\n"
    for paragraph in _paragraphs(context):
        example = paragraph.removeprefix("Example: ")
        yield f"{paragraph}\n\n" if example == paragraph else f"```text\n$ {example}\n```\n\n"
    yield f"```text\n{context.command.get_usage(context).removeprefix('Usage: ')}\n```\n\n"
    rows = [parameter.get_help_record(context) for parameter in context.command.params]
    if rows := [row for row in rows if row]:
        yield from (f"- `{option}`: {prose(text)}\n" for option, text in rows)
        yield "\n"
    yield f"Exit status: {', '.join(map(str, _statuses_of(name)))}.\n\n"


def _paragraphs(context: Any) -> list[str]:
    return [prose(paragraph) for paragraph in context.command.help.split("\n\n")]


def _statuses_of(name: str) -> Iterator[int]:
    """Yield the exit statuses that every command has, and DIFFERENT if the command's module uses it."""
    yield from (0, exit_codes.ERRORS, exit_codes.USAGE)
    if hasattr(import_module(f"tpucfg.cli.{name}"), "DIFFERENT"):
        yield exit_codes.DIFFERENT
