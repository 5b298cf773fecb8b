"""docs/reference/commands.md: every command with its options, from its help."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from typer.main import get_command

from refpages import GENERATED, prose
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
| 0 | done, possibly with warnings |
| 1 | findings of level error, or a refusal |
| 2 | wrong use of the command |
| 3 | done, and there are differences, where an option asks for this status |
| 130 | interrupted by Ctrl-C, SIGTERM or SIGHUP |
| 141 | the reader of the output closed the pipe |
"""
_SELECTION: Final = ("--spec", "--env", "--size", "--target", "--run", "--step", "--set", "--probe")
"""Options that most commands have; each is described once."""
_SELECTION_TITLE: Final = "Selection"
Option: TypeAlias = tuple[str, str]
"""An option with its argument, and its help."""


def page() -> str:
    """Return the page's text."""
    contexts = _contexts()
    options = {name: [*_options(context)] for name, context in contexts.items()}
    selection = _selection(options.values())
    parts = [f"{GENERATED}\n\n", _INTRO, "\n", *_overview(contexts), "\n", _STATUSES, "\n"]
    parts += [f"## {_SELECTION_TITLE}\n\n", *map(_option, selection), "\n"]
    commands = (
        line
        for name in contexts
        for line in _command(name, contexts[name], options[name], selection)
    )
    return "".join([*parts, *commands]).rstrip("\n") + "\n"


def _options(context: Any) -> Iterator[Option]:
    for parameter in context.command.params:
        if record := parameter.get_help_record(context):
            yield record[0], prose(record[1])


def _selection(of_commands: Iterable[Sequence[Option]]) -> list[Option]:
    """Return the most frequent description of each option of the selection."""
    counts = Counter(option for options in of_commands for option in options)
    return [
        max((option for option in counts if option[0].split()[0] == name), key=counts.__getitem__)
        for name in _SELECTION
    ]


def _contexts() -> dict[str, Any]:
    """Return each command's context, whose `command` has its help."""
    group: Any = get_command(app)
    above = group.make_context("tpucfg", [], resilient_parsing=True)
    commands = {name: group.get_command(above, name) for name in COMMANDS}
    return {
        name: type(above)(command, info_name=name, parent=above)
        for name, command in commands.items()
    }


def _overview(contexts: Mapping[str, Any]) -> Iterator[str]:
    yield "| command | |\n|---|---|\n"
    for name, context in contexts.items():
        yield f"| [`tpucfg {name}`](#tpucfg-{name}) | {_paragraphs(context)[0]} |\n"


def _command(
    name: str, context: Any, options: Sequence[Option], selection: Sequence[Option]
) -> Iterator[str]:
    yield f"## tpucfg {name}\n\n"
    usage = f"`{context.command.get_usage(context).removeprefix('Usage: ')}`"
    for paragraph in _paragraphs(context):
        example = paragraph.removeprefix("Example: ")
        if example == paragraph:
            yield f"{paragraph}\n\n"
        else:
            usage += f", such as `{example}`"
    yield f"{usage}\n\n"
    yield from (_option(option) for option in options if option not in selection)
    if common := [
        f"`{option.split()[0]}`" for option, text in options if (option, text) in selection
    ]:
        yield f"- [{_SELECTION_TITLE}](#{_SELECTION_TITLE.lower()}): {', '.join(common)}\n"
    yield "\n" if options else ""


def _option(option: Option) -> str:
    return f"- `{option[0]}`: {option[1]}\n"


def _paragraphs(context: Any) -> list[str]:
    return [prose(paragraph) for paragraph in context.command.help.split("\n\n")]
