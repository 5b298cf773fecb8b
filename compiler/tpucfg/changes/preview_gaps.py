"""Changes that the stack programs declare and a preview does not contain.

A preview is a file. Even one that Pulumi wrote is only as true as the program that ran under it, and a forged one can
leave out anything: the programs of both revisions, run under mocks, are compared with it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.changes.facts import ABSENT, json_equal
from tpucfg.changes.resources import REMOVING_OPS, UNKNOWN, ResourceChange
from tpucfg.changes.statements import Statement
from tpucfg.infra.resources import PROJECT_NUMBER
from tpucfg.redaction import SECRET
from tpucfg.yamldoc.document import KeyPath

_ANYTHING: Final = (UNKNOWN, SECRET)
"""Values of a preview that tell nothing about the real one."""
_LENGTH: Final = "[length]"


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
    leaves = {path: value for change in previewed.inputs for path, value in _leaves(change.path, change.after)}
    return all(
        _contains_leaf(leaves, path, value)
        for change in declared.inputs
        # The engine names a secret input that changes, without its values.
        if not (str(change.path[0]) in previewed.hidden and change.after == SECRET)
        for path, value in _leaves(change.path, change.after)
    )


def _leaves(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the path and value of each leaf, and of each list its length, which the items alone do not tell."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves((*path, key), item)
    elif isinstance(value, list):
        yield (*path, _LENGTH), len(value)
        for index, item in enumerate(value):
            yield from _leaves((*path, index), item)
    else:
        yield path, value


def _contains_leaf(leaves: Mapping[KeyPath, Any], path: KeyPath, declared: Any) -> bool:
    """Return True if the preview has the value at its path, or anything or nothing at the start of the path."""
    start = next((path[:length] for length in range(len(path), 0, -1) if path[:length] in leaves), None)
    if start is None:
        return False
    previewed = leaves[start]
    if isinstance(previewed, str) and previewed in _ANYTHING:
        return True
    if len(start) < len(path):
        return previewed is ABSENT and declared is ABSENT
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
