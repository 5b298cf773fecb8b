"""Sentences about a change, independent of their output format: their values, and their grouping by scope."""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import zip_longest
from typing import Any, Final, NamedTuple, TypeVar

from tpucfg.changes.facts import ABSENT, Change, mark_as_other
from tpucfg.markdown import code, prose
from tpucfg.paths import grouped
from tpucfg.redaction import redact
from tpucfg.text_format import format_value, listed, printable

_MAX_VALUE_LENGTH: Final = 200
"""Characters of a value: names of images and buckets are shorter."""
_NO_VALUE: Final = "nothing"
_MAX_NAMES: Final = 8
"""Limit for names of environments; if there are more, the total is added."""
MAX_VARIANTS: Final = 3
"""Limit for texts that differ only in the name of their environment; more are replaced by one general text."""
_CONTEXT: Final = 20
"""Characters of a long text that are shown before the first difference."""
_MAX_DATA_LENGTH: Final = 300
"""Limit for a list or mapping that was added or removed as a whole; its beginning identifies it."""
_AMBIGUOUS_TEXT: Final = re.compile(r"|\s.*|.*\s|true|false|null|[-+.0-9][-+.0-9eE]*|[\[{\"].*", re.DOTALL)
"""Texts that are quoted because they look like another type, or like no value at all."""
_ONLY_SPACES: Final = "only spaces differ"
_LOOKALIKES: Final = "characters that look alike differ"


class Risk(IntEnum):
    """The risk of a change; a review lists the highest first."""

    NONE = 0
    CAUTION = 1
    """Something becomes worse, but neither data nor access is affected."""
    ACCESS = 2
    """Access is granted, or a barrier against access is removed."""
    UNKNOWN = 3
    """The review cannot show the effect."""
    DESTRUCTIVE = 4
    """Data or the protection of data is lost, or the change can hide such a loss."""


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
    def markdown(self) -> str:
        """Markdown of the sentence, with each value as code, but for ratios."""
        values = (value if _RATIO.fullmatch(value) else code(value) for value in _shown(self.values))
        return self.template.format(*values)

    @property
    def plain(self) -> str:
        """Plain text of the sentence."""
        return self.template.format(*_shown(self.values))


def replace_name(text: str, environment: str) -> str:
    """Return the text with `<env>` instead of the environment's name."""
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(environment)}(?![A-Za-z0-9])", "<env>", text)


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
    return format_value(redact(value), quoted=False, max_length=_MAX_VALUE_LENGTH) or _NO_VALUE


_Owner = TypeVar("_Owner")
_Text = TypeVar("_Text")


def generalize(general: _Text, owned: Sequence[tuple[_Text, _Owner]]) -> Iterator[tuple[_Text, list[_Owner]]]:
    """Yield the exact texts with their owners if there are few, otherwise the general text with all owners."""
    exact = grouped(owned)
    yield from exact.items() if len(exact) <= MAX_VARIANTS else [(general, [owner for _, owner in owned])]


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


def show_values(before: Any, after: Any, *, max_length: int, flag: bool = False) -> ShownPair:
    """Show two values that differ.

    Args:
        before: plain data.
        after: plain data.
        max_length: the limit for the length of each text.
        flag: True for the value of a flag or a line of a script, which is written as on the command line.
    """
    if isinstance(before, str) and isinstance(after, str) and before.split() == after.split():
        return show_texts(before, after, max_length)
    old, new = (_text(value, flag=flag) for value in (before, after))
    if old == new:
        # A bare flag and one with the value `given`, or a line of a script without its backslash.
        old, new = ("given" if flag and value is None else _json(value) for value in (before, after))
    is_data = not (isinstance(before, str) and isinstance(after, str))
    return show_texts(old, new, min(max_length, _MAX_DATA_LENGTH) if is_data else max_length)


def show_value(value: Any, *, max_length: int, flag: bool = False) -> str:
    """Show one value on one line; the value of a flag as on the command line."""
    limit = max_length if isinstance(value, str) else min(max_length, _MAX_DATA_LENGTH)
    return format_value(_text(value, flag=flag), quoted=False, max_length=limit)


def show_texts(before: str, after: str, max_length: int) -> ShownPair:
    """Show two texts: escaped or quoted where they look alike, and long ones from their first difference on."""
    note = ""
    if before != after and before.split() == after.split():
        before, after, note = _json(before), _json(after), _ONLY_SPACES
    elif _look_alike(before, after):
        before, after, note = _ascii(before), _ascii(after), _LOOKALIKES
    before, after = printable(before), printable(after)
    if max(len(before), len(after)) <= max_length:
        return ShownPair(before, after, note)
    position = _first_difference(before, after)
    if position + 1 < max_length:
        before, after = (format_value(text, quoted=False, max_length=max_length) for text in (before, after))
        return ShownPair(before, after, note)
    note = f"they differ from character {position + 1:,} on"
    return ShownPair(_from(before, position, max_length), _from(after, position, max_length), note)


def show_change(change: Change, *, max_length: int, flag: bool = False) -> ShownPair:
    """Show the values of a change; a value that is absent is empty."""
    if change.before is ABSENT or change.after is ABSENT:
        shown = (
            "" if value is ABSENT else show_value(value, max_length=max_length, flag=flag)
            for value in (change.before, change.after)
        )
        return ShownPair(*shown)
    return show_values(change.before, change.after, max_length=max_length, flag=flag)


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


def _first_difference(before: str, after: str) -> int:
    pairs = enumerate(zip_longest(before, after))
    return next((index for index, (old, new) in pairs if old != new), len(before))


def _from(text: str, position: int, max_length: int) -> str:
    start = position - _CONTEXT
    part = text[start : start + max_length - 2]
    return f"…{part}" + ("…" if start + len(part) < len(text) else "")
