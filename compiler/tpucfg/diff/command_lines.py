"""Command lines as mappings, so that flags are compared by name: `--train_steps: 1000 → 500`.

Whether a list is a command line is seen from what it holds, whatever the service calls it.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

FLAG: Final = "--"
REST: Final = ""
"""The key of what is no flag: words without a name, the other lines of a script."""
_COMMANDS: Final = ("args", "command")
"""Keys of lists that are command lines though no flag stands in them yet."""

_VARIABLE: Final = "--env"
"""What gives a container a variable; it is known by the variable's name, as `--env.NAME`."""

_Flag = tuple[str, str | None]
"""A flag's name and value; None is a bare flag."""


def parse_command_lines(value: Any, key: str = "") -> Any:
    """The value with every command line in it as a mapping; a text of several lines is taken for a script."""
    if isinstance(value, dict):
        return {name: parse_command_lines(inner, name) for name, inner in value.items()}
    if isinstance(value, list) and _are_variables(value):
        return {item["name"]: item["value"] for item in value}
    if isinstance(value, list):
        texts = all(isinstance(item, str) for item in value)
        if texts and (key in _COMMANDS or any(item.startswith(FLAG) for item in value)):
            return _mapping(_words(value))
        return [parse_command_lines(item) for item in value]
    return _mapping(_lines(value)) if isinstance(value, str) and "\n" in value else value


def _are_variables(items: Sequence[Any]) -> bool:
    """Whether a list is an environment as services write it: a name and a value each, and no name twice."""
    each = all(isinstance(item, dict) and item.keys() == {"name", "value"} for item in items)
    names = [item["name"] for item in items] if each else []
    return bool(names) and all(isinstance(name, str) for name in names) and len({*names}) == len(names)


def _mapping(parts: Iterable[_Flag]) -> dict[str, Any]:
    """Flags by name, a repeated one with the list of its values, and the rest in order."""
    given: dict[str, list[str | None]] = {}
    rest: list[str | None] = []
    for name, value in parts:
        (given.setdefault(name, []) if name else rest).append(value)
    flags = {name: values[0] if len(values) == 1 else values for name, values in given.items()}
    return {**flags, REST: rest} if rest else flags


def _words(words: Sequence[str]) -> Iterator[_Flag]:
    """`--a=1`, `--a`, and `--a 1`, where a word that is no flag follows one."""
    waiting: str | None = None
    for word in words:
        if waiting is not None:
            yield waiting, None if word.startswith(FLAG) else word
            taken, waiting = not word.startswith(FLAG), None
            if taken:
                continue
        if not word.startswith(FLAG) or word == FLAG:
            yield REST, word
        elif "=" in word:
            name, _, value = word.partition("=")
            yield name, value
        else:
            waiting = word
    if waiting is not None:
        yield waiting, None


def _lines(text: str) -> Iterator[_Flag]:
    """A script's lines; one that holds a single flag and nothing else is that flag."""
    for line in text.split("\n"):
        name, _, value = (word := _single(line)).partition("=")
        if name.startswith(FLAG) and len(name) > len(FLAG):
            yield name, value if "=" in word else None
        elif line:
            yield REST, line


def _single(line: str) -> str:
    """The one word of an indented line that the next line may continue; empty where it is something else."""
    if not line[:1].isspace() or not line.lstrip(" '").startswith(FLAG):
        return ""
    try:
        words = shlex.split(line.removesuffix("\\"))
    except ValueError:  # a quote that is closed on another line
        return ""
    if len(words) == 2 and words[0] == _VARIABLE and "=" in words[1]:  # noqa: PLR2004 - the option and its value
        return f"{_VARIABLE}.{words[1]}"
    return words[0] if len(words) == 1 else ""
