"""Sentences about a change, and changed configs as text and as JSON: their values, and the scopes that they name."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Any, Final, NamedTuple

from tpucfg.changes.config_diff import ChangeGroup, Difference
from tpucfg.changes.facts import ABSENT, Change, Risk, Scope, mark_as_other, sorted_keys
from tpucfg.changes.tree_diff import FLAG, ORDER, REST
from tpucfg.markdown import code, prose
from tpucfg.paths import KeyPath, grouped
from tpucfg.redaction import redact
from tpucfg.text_format import dotted, format_count, listed, printable

_MAX_VALUE_LENGTH: Final = 200
"""Characters of a value, whose middle is cut: the end of a condition can undo its start.

With the number of those that are cut, it is below the limit at which a comment cuts a word: a second cut would replace
that number by its own.
"""
_NO_VALUE: Final = "nothing"
_MAX_NAMES: Final = 8
"""Limit for names of environments; if there are more, the total is added."""
_CONTEXT: Final = 20
"""Characters of a long text that are shown before the first difference."""
_MAX_DATA_LENGTH: Final = 300
"""Limit for a list or mapping that was added or removed as a whole; its beginning identifies it."""
_AMBIGUOUS_TEXT: Final = re.compile(
    r"|\s.*|.*\s|true|false|null|[-+.0-9][-+.0-9eE]*|[\[{\"].*", re.DOTALL
)
"""Texts that are quoted because they look like another type, or like no value at all."""
_ONLY_SPACES: Final = "only spaces differ"
_LOOKALIKES: Final = "characters that look alike differ"


_RATIO: Final = re.compile(r"[0-9][0-9,.]*[×%]")
"""A factor or a share, which reads better without the marks of code."""


class Statement(NamedTuple):
    """A sentence about one environment, one config or the whole project, without naming it."""

    template: str
    """The sentence, with `{}` for each value."""
    # Kept apart from the sentence: Markdown shows values as code, so no text from a spec can act as markup.
    values: tuple[str, ...] = ()
    risk: Risk = Risk.NONE
    headline: str = ""
    """A short form for the headline of the review; empty if its counts of resources and configs include the change."""

    @property
    def destructive(self) -> bool:
        """True if `--fail-on destructive` has to fail."""
        return self.risk is Risk.DESTRUCTIVE

    @property
    def opens(self) -> bool:
        """True for added access."""
        return self.risk in (Risk.ACCESS, Risk.PUBLIC)

    @property
    def markdown(self) -> str:
        """Markdown of the sentence, with each value as code, but for ratios."""
        values = (
            value if _RATIO.fullmatch(value) else code(value) for value in _shown(self.values)
        )
        return self.template.format(*values)

    @property
    def plain(self) -> str:
        """Plain text of the sentence."""
        return self.template.format(*_shown(self.values))


class LocatedStatement(NamedTuple):
    """A statement and the environments or configs that it is about."""

    scope: str
    """`dev, prod` or `dev: v2-8`; empty for the whole project."""
    statement: Statement

    @property
    def plain(self) -> str:
        """Plain text of scope and statement, for JSON."""
        return f"{self.scope}: {self.statement.plain}" if self.scope else self.statement.plain


def join_statements(located: Iterable[LocatedStatement]) -> list[str]:
    """Return lines of Markdown, one for each scope."""
    by_scope = grouped((scope, statement.markdown) for scope, statement in located)
    return [
        f"**{prose(scope)}**: {'; '.join(statements)}" if scope else "; ".join(statements)
        for scope, statements in by_scope.items()
    ]


def _shown(values: Sequence[str]) -> list[str]:
    """Return the values as they are shown; two that differ are never shown as the same text."""
    shown = [*map(_short, values)]
    for index in range(1, len(values)):
        before, after = values[index - 1 : index + 1]
        if before != after and shown[index - 1] == shown[index]:
            texts = redact(before), redact(after)
            if texts[0] == texts[1]:
                shown[index] = mark_as_other(shown[index])
            else:
                shown[index - 1 : index + 1] = show_texts(*texts, _MAX_VALUE_LENGTH)[:2]
    return shown


def _short(value: str) -> str:
    text = printable(redact(value))
    if len(text) <= _MAX_VALUE_LENGTH:
        return text or _NO_VALUE
    half = _MAX_VALUE_LENGTH // 2
    return f"{text[:half]}… {len(text) - 2 * half:,} characters cut …{text[-half:]}"


def format_environments(names: Sequence[str]) -> str:
    """Return the names of the environments; of many, their number and the first names."""
    if len(names) <= _MAX_NAMES:
        return listed(names)
    return f"{len(names)} environments ({listed(names)})"


# Values


class ShownPair(NamedTuple):
    """Two values as they are shown, and a note on their difference."""

    before: str
    after: str
    note: str = ""
    """A clause such as `they differ from character 1,043 on`; empty if the difference can be seen."""


def show_change(change: Change, *, max_length: int, flag: bool = False) -> ShownPair:
    """Show the values of a change; a value that is absent is empty.

    Args:
        change: the change.
        max_length: the limit for the length of each text.
        flag: True for the value of a flag or a line of a script, which is written as on the command line.
    """
    values = (change.before, change.after)
    is_text = all(isinstance(value, str) or value is ABSENT for value in values)
    if is_text and ABSENT not in values and change.before.split() == change.after.split():
        return show_texts(*values, max_length)
    old, new = ("" if value is ABSENT else _text(value, flag=flag) for value in values)
    if old == new:
        # A bare flag and one with the value `given`, or a line of a script without its backslash.
        old, new = ("given" if flag and value is None else _json(value) for value in values)
    return show_texts(old, new, max_length if is_text else min(max_length, _MAX_DATA_LENGTH))


def show_texts(before: str, after: str, max_length: int) -> ShownPair:
    """Show two texts: escaped or quoted where they look alike, and long ones from their first difference on."""
    note = ""
    if before != after and before.split() == after.split():
        before, after, note = _json(before), _json(after), _ONLY_SPACES
    elif _look_alike(before, after):
        before, after, note = _ascii(before), _ascii(after), _LOOKALIKES
    before, after = printable(before), printable(after)
    pairs, start = enumerate(zip_longest(before, after)), 0
    position = next((index for index, (old, new) in pairs if old != new), len(before))
    if position + 1 >= max_length < max(len(before), len(after)):
        start, note = position - _CONTEXT, f"they differ from character {position + 1:,} on"
    return ShownPair(_from(before, start, max_length), _from(after, start, max_length), note)


def _from(text: str, start: int, max_length: int) -> str:
    shown = f"…{text[start:]}" if start else text
    return shown if len(shown) <= max_length else f"{shown[: max_length - 1]}…"


def _text(value: Any, *, flag: bool) -> str:
    """Return a value as text of any length."""
    if flag and value is None:
        return "given"
    if flag and isinstance(value, str):
        value = value.strip().removesuffix(" \\")  # the layout of a script's line
    if isinstance(value, str) and value and (flag or not _AMBIGUOUS_TEXT.fullmatch(value)):
        return value
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _ascii(text: str) -> str:
    return json.dumps(text)[1:-1].replace('\\"', '"')


def _look_alike(before: str, after: str) -> bool:
    """Return True if texts that differ can look equal: other forms of the same letters, or other letters for ASCII."""
    if before == after or (before.isascii() and after.isascii()):
        return False
    if unicodedata.normalize("NFKC", before) == unicodedata.normalize("NFKC", after):
        return True
    pairs = [(old, new) for old, new in zip_longest(before, after, fillvalue="") if old != new]
    return len(before) == len(after) and all(old.isascii() != new.isascii() for old, new in pairs)


# Changed configs


ALL_CONFIGS: Final = "every config"
_MAX_SIZES: Final = 16
_MAX_TEXT_LENGTH: Final = 1000
"""Limit for a text; of longer ones, the part that differs is shown."""


def text_lines(difference: Difference) -> Iterator[str]:
    """Yield the difference as lines of text: each change once, below the configs that have it."""
    for verb, keys in (("added", difference.added), ("removed", difference.removed)):
        if keys:
            yield f"{verb}: {format_keys(keys)}"
    common = difference.common
    for group in difference.groups:
        yield format_keys(group.keys, common, difference.noun)
        # A script can have the same line, and so the same change, several times.
        yield from dict.fromkeys(
            f"  {change_sentence(change, label)}"
            for change, label in zip(group.changes, change_labels(group.changes), strict=True)
        )
    if difference:
        yield ""
    yield format_config_counts(difference)


def difference_json(difference: Difference) -> dict[str, Any]:
    """Return the difference as data for JSON."""
    return {
        "added": [*map(_scope_json, difference.added)],
        "removed": [*map(_scope_json, difference.removed)],
        "changes": [change for group in difference.groups for change in _group_json(group)],
        "same": len(difference.unchanged),
    }


def _group_json(group: ChangeGroup) -> Iterator[dict[str, Any]]:
    # All changes share this list, as there may be fifty thousand of them.
    configs = [*map(_scope_json, group.keys)]
    yield from ({**change_json(change), "configs": configs} for change in group.changes)


def _scope_json(scope: Scope) -> dict[str, str]:
    return {"environment": scope.environment, "size": scope.size}


def change_json(change: Change) -> dict[str, Any]:
    """Return the change as data for JSON; a value that is absent has no key."""
    (label,) = change_labels([change])
    values = {"before": change.before, "after": change.after}
    return {
        "name": label,
        "path": [step for step in change.path if step != REST],
        **{key: value for key, value in values.items() if value is not ABSENT},
    }


def format_config_counts(difference: Difference) -> str:
    """Return a sentence such as `2 configs change, 1 is added, 9 stay as they are`."""
    counts = [
        (len(difference.changed), "changes", "change"),
        (len(difference.added), "is added", "are added"),
        (len(difference.removed), "is removed", "are removed"),
        (len(difference.unchanged), "stays as it is", "stay as they are"),
    ]
    phrases = [
        (count, singular if count == 1 else plural) for count, singular, plural in counts if count
    ]
    if not phrases:
        return f"there are no {difference.noun}s to compare"
    (first, verb), *rest = phrases
    return ", ".join(
        [
            f"{format_count(first, difference.noun)} {verb}",
            *(f"{count:,} {verb}" for count, verb in rest),
        ]
    )


def format_keys(keys: Sequence[Scope], known: Sequence[Scope] = (), noun: str = "config") -> str:
    """Return configs by their sizes, as in `dev, staging: v2-8, v2-32`.

    Args:
        keys: the configs, sorted.
        known: all configs, sorted; `every config` and `every size of dev` refer to these.
        noun: the word for a config.
    """
    if len(keys) == len(known):
        return (
            f"every {noun}" if len(keys) > 1 else _format_sizes(keys[0].environment, [keys[0].size])
        )
    known_sizes = _sizes_by_environment(known)
    sizes_of = _sizes_by_environment(keys)
    complete = [
        name
        for name, sizes in sizes_of.items()
        if sizes == known_sizes.get(name) and len(sizes) > 1
    ]
    parts = [f"every size of {listed(complete, _MAX_SIZES)}"] if complete else []
    others = grouped((sizes, name) for name, sizes in sizes_of.items() if name not in complete)
    parts += [_format_sizes(listed(names, _MAX_SIZES), sizes) for sizes, names in others.items()]
    return "; ".join(parts)


def group_by_config(
    scoped: Iterable[tuple[Scope, Statement]], known: Iterable[Scope] = ()
) -> Iterator[LocatedStatement]:
    """Yield each statement once, with all configs that it is about; `known` are all configs."""
    known = sorted_keys(known)
    for statement, keys in grouped((statement, key) for key, statement in scoped).items():
        yield LocatedStatement(format_keys(sorted_keys(keys), known), statement)


def _format_sizes(environments: str, sizes: Sequence[str]) -> str:
    text = listed([printable(size) for size in sizes], _MAX_SIZES)
    return f"{printable(environments)}: {text}" if environments else text


def _sizes_by_environment(keys: Sequence[Scope]) -> dict[str, tuple[str, ...]]:
    groups = groupby(keys, key=lambda key: key.environment)
    return {environment: tuple(key.size for key in group) for environment, group in groups}


def change_sentence(change: Change, label: str) -> str:
    """Return a line such as `--train_steps: 1000 → 500` or `added --warmup_steps: 200`."""
    shown = show_change(change, max_length=_MAX_TEXT_LENGTH, flag=is_flag(change))
    if change.before is ABSENT:
        return f"added {label}: {shown.after}"
    if change.after is ABSENT:
        return f"removed {label}: {shown.before}"
    return f"{label}: {shown.before} → {shown.after}{f' ({shown.note})' if shown.note else ''}"


def change_diff(change: Change, label: str, *, flag: bool) -> Iterator[str]:
    """Yield a line of a diff for each revision that has the value: `- image: i:1`, `+ image: i:2`."""
    shown = show_change(change, max_length=_MAX_TEXT_LENGTH, flag=flag)
    if change.before is not ABSENT:
        yield f"- {label}: {shown.before}"
    if change.after is not ABSENT:
        yield f"+ {label}: {shown.after}{f' ({shown.note})' if shown.note else ''}"


def change_labels(changes: Sequence[Change]) -> list[str]:
    """Return a name for each change: the flag if only one change is of that flag, else the whole path."""
    flags = [
        next((str(step) for step in change.path if str(step).startswith(FLAG)), "")
        for change in changes
    ]
    counts = Counter(flags)
    return [
        printable(flag) if flag and counts[flag] == 1 else _format_path(change.path)
        for flag, change in zip(flags, changes, strict=True)
    ]


def _format_path(path: KeyPath) -> str:
    """Return the whole path; for a line of a script, only the script's key, as line numbers identify nothing."""
    if path[-1:] == (ORDER,):
        return f"order of {dotted(path[:-1], 'the whole config')}"
    if REST in path:
        keys = [step for step in path[: path.index(REST)] if isinstance(step, str)]
        return printable(keys[-1]) if keys else "the whole config"
    return dotted(path, "the whole config")


def is_flag(change: Change) -> bool:
    """Return True for the value of a flag and for a line of a script, which are written without quotes."""
    return any(step == REST or str(step).startswith(FLAG) for step in change.path)
