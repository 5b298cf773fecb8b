"""Command lines as mappings, so that flags are compared by name: `--train_steps: 1000 → 500`.

Command lines are recognized by their content, because each service has another name for the field.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

FLAG: Final = "--"
"""The prefix of a flag."""
REST: Final = ""
"""The key of everything that is not a flag: positional words, and the other lines of a script."""
_COMMAND_KEYS: Final = ("args", "command")
"""Keys of lists that are command lines even if they contain no flag yet."""
_ENV_OPTION: Final = "--env"
"""The option of `docker run` that sets a variable; each variable is a flag of its own, `--env.NAME`."""

_Flag = tuple[str, str | None]
"""A flag's name and value; the value is None for a flag without one."""


def parse_command_lines(value: Any, key: str = "") -> Any:
    """Return the value with each command line replaced by a mapping. A text of several lines is treated as a script."""
    if isinstance(value, dict):
        return {name: parse_command_lines(inner, name) for name, inner in value.items()}
    if isinstance(value, list) and _is_variable_list(value):
        return {item["name"]: item["value"] for item in value}
    if isinstance(value, list):
        are_words = all(isinstance(item, str) for item in value)
        if are_words and (key in _COMMAND_KEYS or any(item.startswith(FLAG) for item in value)):
            return _flags_by_name(_parse_words(value))
        return [parse_command_lines(item) for item in value]
    return _flags_by_name(_parse_script(value)) if isinstance(value, str) and "\n" in value else value


def _is_variable_list(items: Sequence[Any]) -> bool:
    """Return True if a list is a container's environment: objects with a name and a value, and unique names."""
    has_pairs = all(isinstance(item, dict) and item.keys() == {"name", "value"} for item in items)
    names = [item["name"] for item in items] if has_pairs else []
    return bool(names) and all(isinstance(name, str) for name in names) and len({*names}) == len(names)


def _flags_by_name(flags: Iterable[_Flag]) -> dict[str, Any]:
    """Return flags by name, a repeated flag with the list of its values, and the rest in order."""
    values_by_name: dict[str, list[str | None]] = {}
    rest: list[str | None] = []
    for name, value in flags:
        (values_by_name.setdefault(name, []) if name else rest).append(value)
    by_name = {name: values[0] if len(values) == 1 else values for name, values in values_by_name.items()}
    return {**by_name, REST: rest} if rest else by_name


def _parse_words(words: Sequence[str]) -> Iterator[_Flag]:
    """Yield the flags `--a=1`, `--a`, and `--a 1`: a word that is not a flag is the value of the flag before it."""
    pending: str | None = None  # a flag that may still get a value
    for word in words:
        if pending is not None:
            has_value = not word.startswith(FLAG)
            yield pending, word if has_value else None
            pending = None
            if has_value:
                continue
        if not word.startswith(FLAG) or word == FLAG:
            yield REST, word
        elif "=" in word:
            name, _, value = word.partition("=")
            yield name, value
        else:
            pending = word
    if pending is not None:
        yield pending, None


def _parse_script(text: str) -> Iterator[_Flag]:
    """Yield the lines of a script; a line that contains one flag and nothing else is that flag."""
    for line in text.split("\n"):
        word = _only_flag(line)
        name, _, value = word.partition("=")
        if name.startswith(FLAG) and len(name) > len(FLAG):
            yield name, value if "=" in word else None
        elif line:
            yield REST, line


def _only_flag(line: str) -> str:
    """Return the only flag of an indented line, which may end in a backslash; empty for any other line."""
    # Checked first because shlex is slow and most lines of a start-up script contain no flag.
    if not line[:1].isspace() or not line.lstrip(" '").startswith(FLAG):
        return ""
    try:
        words = shlex.split(line.removesuffix("\\"))
    except ValueError:  # a quote that another line closes
        return ""
    if len(words) == 2 and words[0] == _ENV_OPTION and "=" in words[1]:  # noqa: PLR2004 - the option and its value
        return f"{_ENV_OPTION}.{words[1]}"
    return words[0] if len(words) == 1 else ""
