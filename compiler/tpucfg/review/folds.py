"""Folded parts of a comment, each as one diff, and the bounds of its lines, its folds and its size."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any, Final, NamedTuple

from tpucfg.changes.config_diff import ChangeGroup, Difference, redact_difference
from tpucfg.changes.facts import Change, Scope
from tpucfg.changes.resources import ResourceChange, count_phrases
from tpucfg.changes.statements import (
    ALL_CONFIGS,
    change_diff,
    change_labels,
    format_config_counts,
    format_keys,
    is_flag,
)
from tpucfg.markdown import fence, html, html_code, prose
from tpucfg.paths import grouped
from tpucfg.redaction import redact, redact_report
from tpucfg.review.review import EnvironmentReview
from tpucfg.text_format import dotted, listed

MAX_COMMENT_BYTES: Final = 65_535
"""GitHub's limit is 65,536 characters. Bytes are counted, as a character has at least one."""
_MAX_FOLDS: Final = 60
"""With more, the share of each would be a line or two."""
_MAX_TITLES: Final = 16
_TITLES_BYTES: Final = 4_000
"""Reserved for the line that names omitted folds."""
_WORD: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)\s*|(?:\\.|[^\s`\\])+\s*|.\s*")
"""A word of Markdown, or a value as code, with the spaces after it."""


class Fold(NamedTuple):
    """A part of a comment that can be cut to its first lines: a folded section, or the part of one spec."""

    title: str
    """One line of Markdown that identifies it where it is omitted."""
    opening: str
    """Markdown that is always shown, with the line breaks that follow it."""
    lines: tuple[str, ...]
    """Lines, or whole blocks, that can be omitted from the end."""
    closing: str = ""

    @property
    def text(self) -> str:
        """The whole part as Markdown, without a final line break."""
        return self._join(self.lines)

    def cut(self, max_bytes: int) -> str:
        """Return as many of the first lines as fit, and the number of the others; empty if not even one fits."""
        if size(self.text) <= max_bytes:
            return self.text
        shown = self.lines[: count_fitting(self.lines, max_bytes - size(self._join(())))]
        return self._join(shown) if shown else ""

    def _join(self, shown: Sequence[str]) -> str:
        total, omitted = (
            sum(line.count("\n") + 1 for line in self.lines[start:]) for start in (0, len(shown))
        )
        note = f"\n\n_{omitted:,} of {total:,} lines are omitted for length._" if omitted else ""
        return "".join((self.opening, "\n".join(shown).rstrip("\n"), self.closing, note))


def fold(title: str, summary: str, lines: Sequence[str], frame: str = "", fence: str = "") -> Fold:
    """Return a part that is folded below its summary.

    Args:
        title: one line of Markdown.
        summary: one line of HTML.
        lines: the lines, or blocks.
        frame: what makes the lines valid Markdown: the opening fence, or the header of a table.
        fence: the closing fence.
    """
    opening, closing = (f"{frame}\n" if frame else "", f"\n{fence}" if fence else "")
    return Fold(
        title,
        f"<details><summary>{summary}</summary>\n\n{opening}",
        (*lines,),
        f"{closing}\n\n</details>",
    )


def join_within_limit(
    head: Sequence[str],
    folds: Sequence[Fold],
    foot: Sequence[str] = (),
    *,
    hint: str = "",
    max_bytes: int = MAX_COMMENT_BYTES,
) -> str:
    """Return the comment within the limit. The folds share the room equally.

    Args:
        head: the blocks that are always included.
        folds: the parts that can be cut, in the order of the comment.
        foot: the last lines, which are always included.
        hint: a line of Markdown about where to find omitted lines, included if any is omitted.
        max_bytes: the limit.
    """
    text = _join([*head, *(part.text for part in folds), *foot])
    if size(text) > max_bytes:
        room = max_bytes - size(_join([*head, hint, *foot])) - _TITLES_BYTES
        # Two bytes for the empty line between parts.
        share = room // max(1, min(len(folds), _MAX_FOLDS)) - 2
        texts = ["" if index >= _MAX_FOLDS else part.cut(share) for index, part in enumerate(folds)]
        omitted = [part.title for part, shown in zip(folds, texts, strict=True) if not shown]
        titles = f"_Omitted for length: {listed(omitted, _MAX_TITLES)}._" if omitted else ""
        text = _join([*head, *texts, titles[:_TITLES_BYTES], hint, *foot])
    return text if size(text) <= max_bytes else _cut(text, max_bytes)


def _join(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _cut(text: str, max_bytes: int) -> str:
    """Return the first lines of a comment whose head alone exceeds the limit."""
    note = "\n\n_The rest is omitted for length._\n"
    # A cut may split a character, whose bytes are dropped by `ignore`.
    beginning = text.encode(errors="replace")[: max_bytes - size(note)].decode(errors="ignore")
    return beginning[: beginning.rfind("\n")] + note


def cut_middle(line: str, max_length: int) -> str:
    """Return a line of Markdown of about the given length, cut in its middle at the bounds of words and values.

    The number of characters that are cut replaces them. Beginning and end stay, as either can decide what is allowed.
    Each value of a statement is cut before, so that many of them fit.
    """
    if len(line) <= max_length:
        return line
    words = [match[0] for match in _WORD.finditer(line)]
    first = _count_within(words, max_length // 2)
    last = len(words) - _count_within(words[first:][::-1], max_length // 2)
    cut = sum(map(len, words[first:last]))
    return f"{''.join(words[:first])} … {cut:,} characters cut … {''.join(words[last:])}"


def _count_within(words: Sequence[str], max_length: int) -> int:
    return len([*takewhile(lambda end: end <= max_length, accumulate(map(len, words)))])


def count_fitting(lines: Sequence[str], max_bytes: int) -> int:
    """Return how many of the first lines fit."""
    return len(
        [*takewhile(lambda end: end <= max_bytes, accumulate(size(line) + 1 for line in lines))]
    )


def size(text: str) -> int:
    """Return the number of bytes."""
    # `replace`, as text from a user may contain lone surrogates, which have no encoding.
    return len(text.encode(errors="replace"))


_MAX_SUMMARY_LABELS: Final = 4
"""Changes that the summary line of a fold names."""
_MAX_NAMES: Final = 16
_PROTECTION_TEXTS: Final = {"lifted": "no longer protected", "added": "now protected", "": ""}


def difference_markdown(difference: Difference) -> str:
    """Return a difference without a review, as `tpucfg diff` prints it, without a final line break."""
    counts = format_config_counts(difference)
    head = [f"**{counts[0].upper()}{counts[1:]}.**"]
    for verb, keys in (("Added", difference.added), ("Removed", difference.removed)):
        if keys:
            head.append(f"{verb}: {prose(format_keys(keys))}")
    return join_within_limit(head, config_folds(difference)).rstrip("\n")


def _diff_fold(title: str, summary: str, lines: Sequence[str]) -> Fold:
    """Return a fold with one diff, whose fence is longer than any run of backticks in its lines."""
    opening, *escaped, closing = fence("\n".join(lines), "diff").split("\n")
    # The fence escapes lines, but never adds or removes any; a text of two lines stays together.
    remaining = iter(escaped)
    texts = ["\n".join(next(remaining) for _ in range(line.count("\n") + 1)) for line in lines]
    return fold(title, summary, texts, opening, closing)


# Configs


def config_folds(difference: Difference) -> list[Fold]:
    """Return a fold for each set of configs that change in the same way."""
    common = difference.common
    return [_config_fold(group, common) for group in redact_difference(difference).groups]


def _config_fold(group: ChangeGroup, common: tuple[Scope, ...]) -> Fold:
    keys, labels = format_keys(group.keys, common), change_labels(group.changes)
    # A script can have the same line several times.
    diffs = dict.fromkeys(
        "\n".join(change_diff(change, label, flag=is_flag(change)))
        for change, label in zip(group.changes, labels, strict=True)
    )
    short = dict.fromkeys(
        _short_label(change, label) for change, label in zip(group.changes, labels, strict=True)
    )
    prefix = "" if keys == ALL_CONFIGS else "configs of "
    summary = f"{prefix}{html_code(keys)}: {html(listed([*short], _MAX_SUMMARY_LABELS))}"
    return _diff_fold(f"{prefix}{prose(keys)}", summary, [*diffs])


def _short_label(change: Change, label: str) -> str:
    """Return the last key of a field's path, which is enough to recognize it and can contain dots itself."""
    if label != dotted(change.path):
        return label
    keys = [index for index, step in enumerate(change.path) if isinstance(step, str)]
    return dotted(change.path[keys[-1] :]) if keys else label


# Resources


def resource_folds(environments: Sequence[EnvironmentReview]) -> list[Fold]:
    """Return a fold for each set of environments whose resources change in the same way."""
    folds = []
    contents = (
        ((_summarize(item), tuple(_resource_lines(item))), item.environment)
        for item in environments
    )
    for (summary, lines), environment_names in grouped(contents).items():
        if not lines:
            continue
        names = listed(environment_names, _MAX_NAMES)
        title = f"resources of {html_code(names)}: {html(summary)}"
        folds.append(_diff_fold(f"resources of {prose(names)}", title, lines))
    return folds


def _summarize(environment: EnvironmentReview) -> str:
    phrases = [f"{count:,} {phrase}" for count, phrase in count_phrases(environment.changes)]
    if environment.declared:
        count, protected = (
            len(environment.declared),
            sum(resource.protect for resource in environment.declared),
        )
        quantity = {0: "none", count: "all"}.get(protected, f"{protected:,}")
        phrases.append(f"{count:,} declared, {quantity} of them protected")
    phrases += ["failed"] if environment.problem else []
    phrases += ["policies"] if environment.preview.violations else []
    return ", ".join(phrases) or "warnings"


def _verb(change: ResourceChange) -> str:
    return "keep" if change.op == "same" else change.op


def _resource_lines(environment: EnvironmentReview) -> Iterator[str]:
    if problem := environment.problem:
        yield redact(problem.reason)
        yield from map(redact_report, problem.output)
    yield from (f"warning: {line}" for line in environment.preview.warnings)
    yield from (
        _resource_label(resource.kind, resource.name, resource.inputs)
        for resource in environment.declared
    )
    for change in environment.changes:
        if environment.is_new and change.op == "create":
            # Only the names: with every input the fold would repeat the whole program.
            inputs = {
                str(item.path[0]): item.after for item in change.inputs if len(item.path) == 1
            }
            yield f"create {_resource_label(change.kind, change.name, inputs)}"
        else:
            yield _change_title(change)
            yield from _diff_lines(change.inputs)


def _resource_label(kind: str, name: str, inputs: Mapping[str, Any]) -> str:
    """Return a resource without its inputs; for an IAM grant, with its role and member."""
    role, member = inputs.get("role"), inputs.get("member")
    has_grant = isinstance(role, str) and isinstance(member, str)
    return f"{kind} {name}: {role} to {member}" if has_grant else f"{kind} {name}"


def _retention_text(change: ResourceChange) -> str:
    if not change.retained:
        return ""
    return "kept in the cloud with its content" if change.holds_data else "kept in the cloud"


def _change_title(change: ResourceChange) -> str:
    marks = [
        f"because of {', '.join(change.because)}" if change.because else "",
        _retention_text(change),
        _PROTECTION_TEXTS[change.protection],
        f"differs in {', '.join(change.hidden)}" if change.hidden else "",
        "not in the preview" if change.only_declared else "",
    ]
    text = "; ".join(mark for mark in marks if mark)
    return f"{_verb(change)} {change.kind} {change.name}" + (f" ({text})" if text else "")


def _diff_lines(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the values before and after, each pair as one text, so that they stay together where a fold is cut."""
    for change, label in zip(changes, change_labels(changes), strict=True):
        yield "\n".join(change_diff(change, label, flag=False))
