"""Changes that the stack programs declare and a preview does not contain.

A preview is a file. Even one that Pulumi wrote is only as true as the program that ran under it, and a forged one can
leave out anything: the programs of both revisions, run under mocks, are compared with it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tpucfg.changes.facts import ABSENT, Change, json_equal
from tpucfg.changes.resources import REMOVING_OPS, UNKNOWN, ResourceChange
from tpucfg.changes.statements import Statement
from tpucfg.infra.resources import PROJECT_NUMBER
from tpucfg.redaction import SECRET
from tpucfg.yamldoc.document import KeyPath

_ANYTHING: Final = (UNKNOWN, SECRET)
"""Values of a preview that say nothing about the real one."""


def complete_preview(
    previewed: Sequence[ResourceChange], declared: Sequence[ResourceChange]
) -> tuple[ResourceChange, ...]:
    """Return the changes of a preview with those that only the stack programs declare, which are `only_declared`.

    Args:
        previewed: the changes of the preview.
        declared: the changes between the stack programs of both revisions.
    """
    changes = [*previewed]
    indices: dict[tuple[str, str], list[int]] = {}
    for index, change in enumerate(previewed):
        indices.setdefault((change.type, change.name), []).append(index)
    for change in declared:
        same = indices.get((change.type, change.name), [])
        contained = next((index for index in same if _contains_change(previewed[index], change)), None)
        if contained is not None:
            changes[contained] = _with_meaning(changes[contained], change)
        elif len(same) == 1:
            changes[same[0]] = _merge(changes[same[0]], change)
        else:
            # An engine shows no step for other options, so a preview without one lacks nothing.
            changes.append(change._replace(only_declared=change.op != "same" or bool(change.protection)))
    return tuple(sorted(changes, key=lambda change: (change.type, change.name, change.op)))


def _contains_change(previewed: ResourceChange, declared: ResourceChange) -> bool:
    """Return True if the preview's change of a resource includes all that the programs declare."""
    if declared.protection == "lifted" and previewed.protection != "lifted":
        return False
    if declared.op in REMOVING_OPS and previewed.op not in REMOVING_OPS:
        return False
    if declared.loses_data and not previewed.loses_data:
        return False
    if declared.op == "delete":
        return True
    by_path = {change.path: change for change in previewed.inputs}
    below: dict[KeyPath, list[Change]] = {}
    for change in previewed.inputs:
        for length in range(len(change.path)):
            below.setdefault(change.path[:length], []).append(change)
    return all(
        _contains_input(by_path, below.get(change.path, ()), change) or _is_hidden_secret(previewed, change)
        for change in declared.inputs
    )


def _is_hidden_secret(previewed: ResourceChange, declared: Change) -> bool:
    """Return True if the engine names a secret input that changes, without its values."""
    return str(declared.path[0]) in previewed.hidden and declared.after == SECRET


def _contains_input(by_path: Mapping[KeyPath, Change], below: Sequence[Change], declared: Change) -> bool:
    """Return True if the preview has an input with the value that the programs declare.

    Args:
        by_path: the changes of the preview.
        below: those inside of a value that the programs add or remove as a whole.
        declared: a change of the programs.
    """
    for length in range(len(declared.path), 0, -1):
        if change := by_path.get(declared.path[:length]):
            return _contains_value(_descend(change.after, declared.path[length:]), declared.after)
    start = len(declared.path)
    return bool(below) and all(
        _contains_value(change.after, _descend(declared.after, change.path[start:])) for change in below
    )


def _descend(value: Any, path: KeyPath) -> Any:
    """Return the value at a path, or ABSENT."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


def _contains_value(previewed: Any, declared: Any) -> bool:
    """Return True if a value of the preview includes that of the programs; the provider adds defaults to mappings."""
    if isinstance(previewed, str) and previewed in _ANYTHING:
        return True
    if isinstance(declared, Mapping) and isinstance(previewed, Mapping):
        return all(key in previewed and _contains_value(previewed[key], declared[key]) for key in declared)
    if isinstance(declared, list) and isinstance(previewed, list):
        return len(declared) == len(previewed) and all(map(_contains_value, previewed, declared))
    if isinstance(declared, str) and isinstance(previewed, str):
        return _matches(previewed, declared)
    return json_equal(previewed, declared)


def _matches(previewed: str, declared: str) -> bool:
    """Compare texts without their case, which Google changes, and with numbers instead of the mocks' placeholders."""
    parts = (re.escape(part.casefold()) for part in PROJECT_NUMBER.split(declared))
    return bool(re.fullmatch("[0-9]+".join(parts), previewed.casefold())) or declared == UNKNOWN


def _with_meaning(previewed: ResourceChange, declared: ResourceChange) -> ResourceChange:
    """Return the preview's change of a resource with all that the programs' change of it means.

    The meaning of a value depends on the one before it, which a preview takes from the state, and a forged one from
    nowhere. A preview has few of a resource's options.
    """
    widened = (
        widening
        for widening in declared.widened
        if not any(other.what == widening.what and _matches(other.who, widening.who) for other in previewed.widened)
    )
    statements = (
        statement
        for statement in declared.statements
        if not any(_is_same_statement(other, statement) for other in previewed.statements)
    )
    return previewed._replace(widened=(*previewed.widened, *widened), statements=(*previewed.statements, *statements))


def _is_same_statement(previewed: Statement, declared: Statement) -> bool:
    is_comparable = previewed.template == declared.template and len(previewed.values) == len(declared.values)
    return is_comparable and all(map(_matches, previewed.values, declared.values))


def _merge(previewed: ResourceChange, declared: ResourceChange) -> ResourceChange:
    """Return the preview's change of a resource with what only the programs declare."""
    paths = {change.path for change in declared.inputs}
    return _with_meaning(previewed, declared)._replace(
        op=declared.op if declared.op in REMOVING_OPS else previewed.op,
        inputs=(*declared.inputs, *(change for change in previewed.inputs if change.path not in paths)),
        because=previewed.because or declared.because,
        protected=previewed.protected or declared.protected,
        protection=declared.protection or previewed.protection,
        retained=previewed.retained and declared.retained,
        only_declared=True,
    )
