"""Compare two trees of plain data: mappings by key, command lines by flag, lists aligned by their items.

Lists are aligned by `difflib`, by the JSON encodings of their items. Long lists without a common beginning or end, for
which it would take quadratic time, are compared item by item.
"""

import re
import shlex
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise, takewhile, zip_longest
from typing import Any, Final

from tpucfg.changes.facts import ABSENT, Change, canonical_json, json_equal
from tpucfg.paths import KeyPath, item_names
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
_HARMLESS_QUOTING: Final = re.compile(r"[\w@%+=:,./'\" -]*", re.ASCII)
"""Words that mean the same to bash in any quotes, as they contain nothing that double quotes expand."""

_Flag = tuple[str, str | None, str]
"""A flag's name and value, and how it is written; the value is None for a flag without one."""


class CommandLine(dict[str, Any]):
    """A command line, or the variables of a container: values by name, and the order in which they were written."""

    def __init__(
        self, values: dict[str, Any], order: Sequence[tuple[str, str]], source: Any
    ) -> None:
        super().__init__(values)
        self.source = source
        """The list or text that was parsed."""
        self.order = tuple(order)
        """The name of each item, and how it is written: `--a=1` and `--a 1` differ."""


def order_change(before: CommandLine, after: CommandLine) -> tuple[list[str], list[str]] | None:
    """Return the items that both have with equal values, if they are in another order or written differently."""
    common = {name for name in before.keys() & after.keys() if before[name] == after[name]}
    old, new = (
        [f"{name}{form}" for name, form in line.order if name in common] for line in (before, after)
    )
    return None if old == new else (old, new)


def parse_command_lines(value: Any, key: str = "") -> Any:
    """Return the value with each command line replaced by a mapping. A text of several lines is treated as a script.

    A digest of the other fields is left out, as it differs if and only if one of them does.
    """
    if isinstance(value, dict):
        return {
            name: parse_command_lines(inner, name)
            for name, inner in value.items()
            if not is_digest(name, inner)
        }
    if isinstance(value, list) and _is_variable_list(value, key):
        return _variables(value)
    if isinstance(value, list) and key == _METADATA_KEY and _is_metadata(value):
        return {item["key"]: parse_command_lines(item.get("value")) for item in value}
    if isinstance(value, list):
        are_words = all(isinstance(item, str) for item in value)
        if are_words and (key in COMMAND_KEYS or any(item.startswith(FLAG) for item in value)):
            return _flags_by_name(_parse_words(value), value)
        return [parse_command_lines(item) for item in value]
    return (
        _flags_by_name(_parse_script(value), value)
        if isinstance(value, str) and "\n" in value
        else value
    )


def _is_metadata(items: Sequence[Any]) -> bool:
    """Return True if a list is the metadata of an instance: values by unique keys, which the API lets an item lack."""
    keys = item_names(items)
    return bool(keys) and all(
        item.get("key") == key and item.keys() <= {"key", "value"}
        for item, key in zip(items, keys, strict=True)
    )


def _is_variable_list(items: Sequence[Any], key: str) -> bool:
    """Return True if a list is a container's environment: objects with unique names, each with a value or a source."""
    names = item_names(items)
    return bool(names) and all(
        item.get("name") == name and (key == _VARIABLES_KEY or item.keys() == {"name", "value"})
        for item, name in zip(items, names, strict=True)
    )


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
    by_name = {
        name: values[0] if len(values) == 1 else values for name, values in values_by_name.items()
    }
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
    """Yield the lines of a script; lines that contain one flag and nothing else are that flag.

    A line whose backslash does not fit its neighbours is none: without the one in the line before, the flag is no
    argument of the command, but a command.
    """
    lines = text.removesuffix("\n").split("\n")
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        is_argument = before.endswith(_CONTINUED) and line.endswith(_CONTINUED) == after.startswith(
            (" ", "\t")
        )
        name, separator, value = _only_flag(line).partition("=") if is_argument else ("", "", "")
        if len(name) > len(FLAG):
            yield name, value if separator else None, ""
        else:
            yield REST, line, ""


def _only_flag(line: str) -> str:
    """Return the word of a line that contains one flag and nothing else; empty for any other line."""
    # Checked first because shlex is slow and most lines of a start-up script contain no flag.
    if line[:1] not in (" ", "\t") or not line.lstrip(" \t'").startswith(FLAG):
        return ""
    raw = line.removesuffix(_CONTINUED).strip(" \t")
    try:
        words = shlex.split(raw)
    except ValueError:  # a quote that another line closes
        return ""
    is_variable = words[0] == _ENV_OPTION and len(words) == 2 and "=" in words[1]  # noqa: PLR2004 - option and value
    word = f"{_ENV_OPTION}.{words[1]}" if is_variable else words[0] if len(words) == 1 else ""
    is_read_so = raw == shlex.join(words) or _HARMLESS_QUOTING.fullmatch(raw)
    return word if word.startswith(FLAG) and is_read_so else ""


ORDER: Final = "(order)"
"""The last step of the path of a change to the order of a command line."""
_MAX_LEAVES: Final = 300
"""Limit for a value that was added or removed; a TPU node with its start-up script has about a hundred leaves."""
_Comparison = tuple[KeyPath, Any, Any]
"""Two values that are still to be compared, and their path."""
_IDENTITY_KEYS: Final = ("name", "key", "id")
"""Keys that identify an item even if all its other values have changed."""

Pair = tuple[int | None, int | None]
"""The indices of an item before and after; None for an item that was added or removed."""
_MAX_ALIGNED: Final = 1_000_000
"""The product of the lengths of two lists up to which they are aligned."""
_Match = tuple[int, int]
"""The indices of equal tokens before and after."""


def exactly_equal(value: Any, other: Any) -> bool:
    """Return True if two values are written in the same way: 1 differs from 1.0, and 0.0 from -0.0."""
    if isinstance(value, str) and isinstance(other, str):
        return value == other  # most values, and much faster than repr
    return repr(value) == repr(other)


def value_changes(
    before: Any, after: Any, path: KeyPath = (), are_equal: Callable[[Any, Any], bool] = json_equal
) -> Iterator[Change]:
    """Yield the changes between two values, in document order. The order of a mapping's keys is not a change.

    Args:
        before: plain data with the depth limit of the YAML reader, or ABSENT.
        after: plain data with the depth limit of the YAML reader, or ABSENT.
        path: the path of both values, which begins the path of each change.
        are_equal: compares values that are neither two mappings nor two lists.
    """
    # A stack instead of recursion, because deep data would exceed Python's recursion limit. Pushed in reverse order, so
    # that values are popped in document order.
    stack: list[_Comparison] = [(path, before, after)]
    while stack:
        current_path, old, new = stack.pop()
        if isinstance(old, CommandLine) != isinstance(new, CommandLine) and ABSENT not in (
            old,
            new,
        ):
            # A command line that becomes something else is compared as it is written.
            old, new = (
                value.source if isinstance(value, CommandLine) else value for value in (old, new)
            )
        if isinstance(old, dict) and isinstance(new, dict):
            if (
                isinstance(old, CommandLine)
                and isinstance(new, CommandLine)
                and (order := order_change(old, new))
            ):
                yield Change((*current_path, ORDER), *order)
            stack += [
                ((*current_path, key), old.get(key, ABSENT), new.get(key, ABSENT))
                for key in reversed({**old, **new})
            ]
        elif isinstance(old, list) and isinstance(new, list):
            stack += reversed(
                [_item_comparison(current_path, old, new, *pair) for pair in align(old, new)]
            )
        elif not are_equal(old, new):
            yield Change(current_path, old, new)


def _item_comparison(
    path: KeyPath,
    before: list[Any],
    after: list[Any],
    before_index: int | None,
    after_index: int | None,
) -> _Comparison:
    index = after_index if after_index is not None else before_index or 0
    old = ABSENT if before_index is None else before[before_index]
    new = ABSENT if after_index is None else after[after_index]
    return (*path, index), old, new


def unfold(change: Change) -> Iterator[Change]:
    """Yield an addition or a removal as changes of its single values.

    Configs that add almost equal trees then share most of the changes. A list of plain values counts as one value. A
    tree with too many values remains one change.
    """
    is_addition = change.before is ABSENT
    if not is_addition and change.after is not ABSENT:
        yield change
        return
    tree = change.after if is_addition else change.before
    leaves = tuple(islice(tree_leaves(change.path, tree), _MAX_LEAVES + 1))
    if len(leaves) > _MAX_LEAVES:
        yield change
    else:
        yield from (
            Change(path, ABSENT, value) if is_addition else Change(path, value, ABSENT)
            for path, value in leaves
        )


def tree_leaves(path: KeyPath, tree: Any) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the path and value of each leaf of a tree, in document order."""
    stack: list[tuple[KeyPath, Any]] = [(path, tree)]
    while stack:
        current_path, value = stack.pop()
        if isinstance(value, dict) and value:
            stack += [((*current_path, key), value[key]) for key in reversed(value)]
        elif isinstance(value, list) and value and _is_tree(current_path, value):
            stack += [
                ((*current_path, index), value[index]) for index in reversed(range(len(value)))
            ]
        else:
            yield current_path, value


def _is_tree(path: KeyPath, items: list[Any]) -> bool:
    """Return True for the lines of a script and for a list that contains mappings or lists."""
    return REST in path or any(isinstance(item, dict | list) for item in items)


# Lists


def align(before: Sequence[Any], after: Sequence[Any]) -> list[Pair]:
    """Pair the items of two lists, in order: those with equal names, or equal ones without; others by position."""
    # The usual case, and cheap. Here 1 equals True, but the caller compares each pair exactly.
    if before == after:
        return [(index, index) for index in range(len(before))]

    def position(pair: Pair) -> int:
        before_index, after_index = pair
        return after_index if after_index is not None else before_index or 0

    matched = matches(
        *([identity(item) or canonical_json(item) for item in items] for items in (before, after))
    )
    others = (zip_longest(old, new) for old, new in gaps(matched, len(before), len(after)))
    return sorted([*matched, *chain.from_iterable(others)], key=position)


def matches(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[_Match]:
    """Return pairs of equal tokens whose indices increase in both sequences. None matches no token.

    The common beginning and end are matched first. What is between them is not aligned if it is too long, as that takes
    quadratic time.
    """
    # Imported late: most comparisons find no two lists that differ.
    from difflib import SequenceMatcher

    # An object of its own equals nothing.
    old, new = (
        [object() if token is None else token for token in tokens] for tokens in (before, after)
    )
    start = _count_equal(old, new)
    end = _count_equal(old[start:][::-1], new[start:][::-1])
    old, new = (tokens[start : len(tokens) - end] for tokens in (old, new))
    pairs = [(index, index) for index in range(start)]
    if len(old) * len(new) <= _MAX_ALIGNED:
        blocks = SequenceMatcher(None, old, new).get_matching_blocks()
        pairs += [
            (start + block.a + step, start + block.b + step)
            for block in blocks
            for step in range(block.size)
        ]
    return pairs + [(len(before) - step, len(after) - step) for step in range(end, 0, -1)]


def _count_equal(before: Sequence[Hashable], after: Sequence[Hashable]) -> int:
    """Return the number of equal tokens at the beginning."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))])


def gaps(
    pairs: Sequence[_Match], before_length: int, after_length: int
) -> Iterator[tuple[range, range]]:
    """Yield the ranges between the matches."""
    for (i, j), (next_i, next_j) in pairwise(
        [(-1, -1), *sorted(pairs), (before_length, after_length)]
    ):
        if next_i - i > 1 or next_j - j > 1:
            yield range(i + 1, next_i), range(j + 1, next_j)


def identity(item: Any) -> str | None:
    """Return what identifies an item of a list, even if all its other values have changed; None for other items."""
    if not isinstance(item, dict):
        return None
    return next(
        (f"{key} {item[key]}" for key in _IDENTITY_KEYS if isinstance(item.get(key), str)), None
    )
