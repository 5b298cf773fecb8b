"""Command lines as mappings, so that flags are compared by name: `--train_steps: 1000 → 500`.

Command lines are recognized by their content, because each service has another name for the field. Nothing that can
change the meaning of a command line is lost: whatever has no canonical form stays a word or a line.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from tpucfg.targets.objects import is_digest

FLAG: Final = "--"
"""The prefix of a flag."""
REST: Final = ""
"""The key of everything that is not a flag: positional words, and the other lines of a script."""
COMMAND_KEYS: Final = ("args", "command")
"""Keys of lists that are command lines even if they contain no flag yet."""
_METADATA_KEY: Final = "items"
_VARIABLES_KEY: Final = "env"
_ENV_OPTION: Final = "--env"
"""The option of `docker create` that sets a variable; each variable is a flag of its own, `--env.NAME`."""
_CONTINUED: Final = " \\"
"""The end of a line of a script whose command continues on the next line."""
_MAX_QUOTED_LINES: Final = 50
"""Lines that one quoted value of a script may have; the lines of a longer one are compared as text."""
_HARMLESS_QUOTING: Final = re.compile(r"[\w@%+=:,./'\" -]*", re.ASCII)
"""Words that mean the same to bash in any quotes, as they contain nothing that double quotes expand."""

_Flag = tuple[str, str | None, str]
"""A flag's name and value, and how it is written; the value is None for a flag without one."""


class CommandLine(dict[str, Any]):
    """A command line, or the variables of a container: values by name, and the order in which they were written."""

    def __init__(self, values: dict[str, Any], order: Sequence[tuple[str, str]], source: Any) -> None:
        super().__init__(values)
        self.source = source
        """The list or text that was parsed."""
        self.order = tuple(order)
        """The name of each item, and how it is written: `--a=1` and `--a 1` differ."""


def order_change(before: CommandLine, after: CommandLine) -> tuple[list[str], list[str]] | None:
    """Return the items that both have with equal values, if they are in another order or written differently."""
    common = {name for name in before.keys() & after.keys() if before[name] == after[name]}
    old, new = ([f"{name}{form}" for name, form in line.order if name in common] for line in (before, after))
    return None if old == new else (old, new)


def parse_command_lines(value: Any, key: str = "") -> Any:
    """Return the value with each command line replaced by a mapping. A text of several lines is treated as a script.

    A digest of the other fields is left out, as it differs if and only if one of them does.
    """
    if isinstance(value, dict):
        return {name: parse_command_lines(inner, name) for name, inner in value.items() if not is_digest(name, inner)}
    if isinstance(value, list) and _is_variable_list(value, key):
        return _variables(value)
    if isinstance(value, list) and key == _METADATA_KEY and _is_metadata(value):
        return {item["key"]: parse_command_lines(item.get("value")) for item in value}
    if isinstance(value, list):
        are_words = all(isinstance(item, str) for item in value)
        if are_words and (key in COMMAND_KEYS or any(item.startswith(FLAG) for item in value)):
            return _flags_by_name(_parse_words(value), value)
        return [parse_command_lines(item) for item in value]
    return _flags_by_name(_parse_script(value), value) if isinstance(value, str) and "\n" in value else value


def _is_metadata(items: Sequence[Any]) -> bool:
    """Return True if a list is the metadata of an instance: values by unique keys, which the API lets an item lack."""
    keys = [item.get("key") if isinstance(item, dict) and item.keys() <= {"key", "value"} else None for item in items]
    return bool(keys) and all(isinstance(key, str) for key in keys) and len({*keys}) == len(keys)


def _is_variable_list(items: Sequence[Any], key: str) -> bool:
    """Return True if a list is a container's environment: objects with unique names, each with a value or a source."""
    is_environment = key == _VARIABLES_KEY
    has_names = all(
        isinstance(item, dict) and (item.keys() == {"name", "value"} or (is_environment and "name" in item))
        for item in items
    )
    names = [item["name"] for item in items] if has_names else []
    return bool(names) and all(isinstance(name, str) for name in names) and len({*names}) == len(names)


def _variables(items: Sequence[Any]) -> CommandLine:
    values = {
        item["name"]: item["value"]
        if item.keys() == {"name", "value"}
        else {key: value for key, value in item.items() if key != "name"}
        for item in items
    }
    return CommandLine(values, [(name, "") for name in values], items)


def _flags_by_name(flags: Iterable[_Flag], source: Any) -> CommandLine:
    """Return flags by name, a repeated flag with the list of its values, and the rest in order."""
    values_by_name: dict[str, list[str | None]] = {}
    rest: list[str | None] = []
    order = []
    for name, value, form in flags:
        (values_by_name.setdefault(name, []) if name else rest).append(value)
        order.append((name, form))
    by_name = {name: values[0] if len(values) == 1 else values for name, values in values_by_name.items()}
    return CommandLine({**by_name, REST: rest} if rest else by_name, order, source)


def _parse_words(words: Sequence[str]) -> Iterator[_Flag]:
    """Yield the flags `--a=1`, `--a`, and `--a 1`: a word that is not a flag is the value of the flag before it."""
    pending: str | None = None  # a flag that may still get a value
    for word in words:
        if pending is not None:
            has_value = not word.startswith(FLAG)
            yield pending, word if has_value else None, " " if has_value else ""
            pending = None
            if has_value:
                continue
        if not word.startswith(FLAG) or word == FLAG:
            yield REST, word, ""
        elif "=" in word:
            name, _, value = word.partition("=")
            yield name, value, ""
        else:
            pending = word
    if pending is not None:
        yield pending, None, ""


def _parse_script(text: str) -> Iterator[_Flag]:
    """Yield the lines of a script; lines that contain one flag and nothing else are that flag."""
    lines = text.removesuffix("\n").split("\n")
    index = 0
    while index < len(lines):
        count, word = _only_flag(lines, index)
        name, _, value = word.partition("=")
        if name.startswith(FLAG) and len(name) > len(FLAG):
            yield name, value if "=" in word else None, ""
        else:
            yield from ((REST, line, "") for line in lines[index : index + count])
        index += count


def _only_flag(lines: Sequence[str], start: int) -> tuple[int, str]:
    """Return the number of lines that a quoted word spans, and the word if it is the only flag of its line.

    The word is empty for any other line, and for a line whose backslash does not fit its neighbours: without the one
    in the line before, the flag is no argument of the command, but a command.
    """
    # Checked first because shlex is slow and most lines of a start-up script contain no flag.
    first = lines[start]
    if first[:1] not in (" ", "\t") or not first.lstrip(" \t'").startswith(FLAG):
        return 1, ""
    count, words = _quoted_words(lines, start)
    text = "\n".join(lines[start : start + count])
    after = lines[start + count] if start + count < len(lines) else ""
    is_continued = text.endswith(_CONTINUED)
    if not (start and lines[start - 1].endswith(_CONTINUED)) or is_continued != (after[:1] in (" ", "\t")):
        return 1, ""
    raw = text.removesuffix(_CONTINUED).strip(" \t")
    if len(words) == 2 and words[0] == _ENV_OPTION and "=" in words[1]:  # noqa: PLR2004 - the option and its value
        is_canonical, word = raw == f"{_ENV_OPTION} {shlex.quote(words[1])}", f"{_ENV_OPTION}.{words[1]}"
    else:
        is_canonical, word = len(words) == 1 and raw == shlex.quote(words[0]), words[0] if len(words) == 1 else ""
    return (count, word) if word and (is_canonical or _HARMLESS_QUOTING.fullmatch(raw)) else (1, "")


def _quoted_words(lines: Sequence[str], start: int) -> tuple[int, list[str]]:
    """Return the number of lines up to the end of the quotes that open in a line, and the words in them."""
    for count in range(1, min(_MAX_QUOTED_LINES, len(lines) - start) + 1):
        try:
            return count, shlex.split("\n".join(lines[start : start + count]).removesuffix(_CONTINUED))
        except ValueError:  # a quote that a later line closes
            continue
    return 1, []
