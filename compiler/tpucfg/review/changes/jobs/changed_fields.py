"""Changed fields of one config: their single values, their names, and how dangerous they are."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from tpucfg.changes.command_lines import COMMAND_KEYS, FLAG, REST
from tpucfg.changes.describe import is_flag
from tpucfg.changes.facts import ABSENT, Absent, Change, redact_change
from tpucfg.changes.shown_values import ShownPair, show_change
from tpucfg.changes.statements import Risk
from tpucfg.changes.tree_diff import ORDER, tree_leaves
from tpucfg.review.changes.jobs.field_sentences import FieldChange
from tpucfg.review.changes.jobs.job_context import JobContext
from tpucfg.review.changes.jobs.job_fields import (
    ACCOUNT,
    ARGUMENT,
    FOLDER,
    IMAGE,
    ORDER_OF,
    SCRIPT,
    VARIABLE,
    FieldRule,
    field_rule,
)
from tpucfg.review.changes.jobs.verdicts import Verdict, account_verdict, image_verdict, reference_verdict
from tpucfg.text_format import dotted, format_count, format_value
from tpucfg.yamldoc.document import KeyPath

_MAX_LENGTH: Final = 120
"""Characters of a value in a sentence."""
_ENV_OPTION: Final = "--env."
_OUTER_STEPS: Final = (
    ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec"),
    ("tpu", "nodeSpec", 0, "node"),
    ("instanceTemplate", "properties"),
    ("instance",),
    ("workerPoolSpecs", 0),
    ("trainingInput",),
)
"""Beginnings of paths that say nothing, as a config has only one of each."""


class KnownValues(NamedTuple):
    """Values that jobs of the base already use, which are no news in a new config."""

    registries: frozenset[str]
    references: frozenset[str]
    dangers: Mapping[str, frozenset[object]]
    """By environment: subject, label and verdict of each dangerous field."""


def leaves_of(change: Change) -> Iterator[Change]:
    """Yield the single values of a change, which can be a whole tree on either side."""
    sides = [[*tree_leaves(change.path, value)] for value in (change.before, change.after) if _is_tree(value)]
    if not sides:
        yield change
        return
    if _is_tree(change.before):
        yield from (Change(path, value, ABSENT) for path, value in sides[0])
    elif change.before is not ABSENT:
        yield change._replace(after=ABSENT)
    if _is_tree(change.after):
        yield from (Change(path, ABSENT, value) for path, value in sides[-1])
    elif change.after is not ABSENT:
        yield change._replace(before=ABSENT)


def _is_tree(value: Any) -> bool:
    return (isinstance(value, dict) and bool(value)) or (
        isinstance(value, list) and any(isinstance(item, dict | list) for item in value)
    )


def paired(leaves: Sequence[Change], context: JobContext) -> Iterator[Change]:
    """Yield the changes of a config with another target: fields with the same meaning are compared with each other."""
    removed: dict[tuple[str, str], Change] = {}
    for leaf in leaves:
        if leaf.after is ABSENT and not context.is_explained(leaf):
            removed[_meaning(leaf, context)] = leaf
    for leaf in leaves:
        if leaf.before is not ABSENT:
            continue
        old = removed.pop(_meaning(leaf, context), None)
        if old is None:
            yield leaf
        elif context.concrete(old.before) != context.concrete(leaf.after):
            yield leaf._replace(before=old.before)
    # The config of some targets has the image only in a script.
    yield from (leaf for (subject, _), leaf in removed.items() if subject != IMAGE or context.is_extra(leaf.path))


def _meaning(leaf: Change, context: JobContext) -> tuple[str, str]:
    rule = rule_of(leaf.path, context)
    return rule.subject, field_label(leaf, rule)


# One field


def rule_of(path: KeyPath, context: JobContext) -> FieldRule:
    """Return the kind of a field; a flag in a script that the target generates is an argument of the program."""
    rule = field_rule(path)
    if rule.subject != SCRIPT or context.is_extra(path):
        return rule
    name = next((step for step in path if isinstance(step, str) and step.startswith(FLAG)), None)
    return field_rule((name,)) if name else rule


def field_change(leaf: Change, rule: FieldRule, verdict: Verdict) -> FieldChange:
    """Return a field as it is shown, without secrets."""
    is_text = rule.subject in (ARGUMENT, VARIABLE)
    # Only texts are keys of the cache: 1 and True would be the same key.
    is_cached = isinstance(leaf.before, str | Absent) and isinstance(leaf.after, str | Absent)
    shown = (_shown if is_cached else _shown.__wrapped__)(leaf, is_text=is_text)
    before = None if leaf.before is ABSENT else shown.before
    after = None if leaf.after is ABSENT else shown.after
    if is_text and leaf.after is None and leaf.before is ABSENT:
        after = ""  # a flag without a value
    return FieldChange(rule.subject, field_label(leaf, rule), before, after, shown.note, verdict)


# Hundreds of configs share most changes.
@lru_cache(maxsize=8192)
def _shown(leaf: Change, *, is_text: bool) -> ShownPair:
    return show_change(redact_change(leaf), max_length=_MAX_LENGTH, flag=is_text or is_flag(leaf))


def field_label(leaf: Change, rule: FieldRule) -> str:
    """Return the name of a field, or its path without what all configs have in common."""
    if not rule.label and is_in_first_items(leaf.path):
        return ""
    if rule.label == "name":
        name = next((str(step) for step in reversed(leaf.path) if str(step).startswith(FLAG)), str(leaf.path[-1]))
        return name.removeprefix(_ENV_OPTION) if rule.subject == VARIABLE else name
    path = leaf.path[:-1] if rule.subject == ORDER_OF else leaf.path
    outer = next((outer for outer in _OUTER_STEPS if path[: len(outer)] == outer), ())
    return dotted(tuple(step for step in path[len(outer) :] if step != REST), "the config")


def is_in_first_items(path: KeyPath) -> bool:
    """Return True if a field is in the first item of every list, as in the configs that targets generate."""
    return not any(step for step in path if isinstance(step, int))


def field_verdict(leaf: Change, rule: FieldRule, context: JobContext, known: KnownValues | None = None) -> Verdict:
    """Judge a field that nothing else explains."""
    before, after = (context.concrete(value) for value in (leaf.before, leaf.after))
    if rule.subject == ACCOUNT:
        return account_verdict(after, context)
    if rule.subject == IMAGE and isinstance(after, str):
        return image_verdict(
            before if isinstance(before, str) else None, after, known.registries if known else frozenset()
        )
    if rule.risk and rule.is_dangerous(before, after):
        return Verdict(rule.risk, rule.consequence)
    if rule.subject in (ARGUMENT, VARIABLE, FOLDER):
        return reference_verdict(before, after, context, known.references if known else frozenset())
    return Verdict()


def is_script_line(leaf: Change, rule: FieldRule) -> bool:
    """Return True for a line of a script or a flag in it, as opposed to a word of a command line."""
    return rule.subject == SCRIPT or (
        rule.subject != ARGUMENT and REST in leaf.path and not {*COMMAND_KEYS} & {*leaf.path}
    )


def script_path(path: KeyPath) -> KeyPath:
    """Return the path of the script that has a line or a flag."""
    is_inside = (isinstance(step, str) and (step in (REST, ORDER) or step.startswith(FLAG)) for step in path)
    return path[: next((index for index, inside in enumerate(is_inside) if inside), len(path))]


def script_change(lines: Sequence[Change]) -> FieldChange:
    """Return one change for all lines of a script, which shows the first line that is new."""
    added = format_count(sum(line.after is not ABSENT for line in lines), "line")
    removed = sum(line.before is not ABSENT for line in lines)
    first = next((line for line in lines if line.after not in (ABSENT, "", "#!/bin/bash")), lines[0])
    rule = field_rule(first.path)
    value = redact_change(first)
    name = str(first.path[-1])
    text = str(value.before if value.after is ABSENT else value.after).strip()
    text = f"{name}={text}" if name.startswith(FLAG) else text
    text = format_value(text, quoted=False, max_length=_MAX_LENGTH)
    clause = f"{added} added, {removed:,} removed, the first: {{}}; {rule.consequence or 'read it in the fold'}"
    path = script_path(first.path)
    label = field_label(first._replace(path=path), rule) if rule.subject != SCRIPT else ""
    return FieldChange(rule.subject, label, None, None, verdict=Verdict(rule.risk or Risk.CAUTION, clause, (text,)))
