"""Compare the configs of two revisions or folders, and group the changes that several configs have in common."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg.changes.facts import ABSENT, Change, Scope, canonical_json, redact_change, sorted_keys
from tpucfg.changes.tree_diff import exactly_equal, parse_command_lines, unfold, value_changes
from tpucfg.findings import Finding, collect, errors
from tpucfg.fs import has_equal_bytes
from tpucfg.paths import grouped
from tpucfg.targets.objects import combined_data
from tpucfg.yamldoc.reader import MAX_FILE_BYTES, SUFFIXES, find_config_files, read_file

ENVIRONMENT: Final = "<env>"
SIZE: Final = "<size>"
"""Placeholders for the config's own environment and size, in changes that several configs share."""
_PLACEHOLDERS: Final = (ENVIRONMENT, SIZE)
_CONFIG_NAMES: Final = frozenset(f"config{suffix}" for suffix in SUFFIXES)
"""A rendered config. Its folder is named after the size, and the folder above after the environment."""
_SharedChange = tuple[Change, tuple[Scope, ...]]
"""A change, and the configs that have it."""


class ChangeGroup(NamedTuple):
    """The changes that a set of configs has in common."""

    keys: tuple[Scope, ...]
    changes: tuple[Change, ...]
    """In the order of the config. `<size>` and `<env>` replace names if only these differ between the configs."""


class Difference(NamedTuple):
    """The difference between two sets of configs."""

    added: tuple[Scope, ...]
    removed: tuple[Scope, ...]
    groups: tuple[ChangeGroup, ...]
    """The groups with the most configs first."""
    unchanged: tuple[Scope, ...]
    noun: str = "config"
    """The word for one of them."""

    @property
    def changed(self) -> tuple[Scope, ...]:
        """The configs that both sets contain and that differ."""
        return sorted_keys(key for group in self.groups for key in group.keys)

    @property
    def common(self) -> tuple[Scope, ...]:
        """The configs that both sets contain."""
        return sorted_keys((*self.changed, *self.unchanged))

    @property
    def all_keys(self) -> tuple[Scope, ...]:
        """The configs of both sets."""
        return sorted_keys((*self.added, *self.removed, *self.changed, *self.unchanged))

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.groups)


def redact_difference(difference: Difference) -> Difference:
    """Return the difference without personal addresses and secrets."""
    groups = (
        group._replace(changes=tuple(map(redact_change, group.changes)))
        for group in difference.groups
    )
    return difference._replace(groups=tuple(groups))


def config_difference(
    before: Mapping[Scope, Any], after: Mapping[Scope, Any], equal: Iterable[Scope] = ()
) -> Difference:
    """Return the difference between two sets of configs, given as plain data.

    Args:
        before: The configs before the change.
        after: The configs after the change.
        equal: Further configs, known to be equal in both sets.
    """
    common = sorted_keys(before.keys() & after.keys())
    changes = {key: tuple(_config_changes(before[key], after[key])) for key in common}
    return Difference(
        added=sorted_keys(after.keys() - before.keys()),
        removed=sorted_keys(before.keys() - after.keys()),
        groups=tuple(_group_changes(changes)),
        unchanged=sorted_keys([*equal, *(key for key in common if not changes[key])]),
    )


def _config_changes(before: Any, after: Any) -> Iterator[Change]:
    # Most configs of a large ladder are unchanged; repr is the fastest comparison that distinguishes 1 from true.
    if repr(before) != repr(after):
        changes = value_changes(
            parse_command_lines(before), parse_command_lines(after), are_equal=exactly_equal
        )
        # No change means that the command lines are equal as parsed: then the texts show what differs.
        first = next(changes, None)
        changes = (
            chain([first], changes)
            if first
            else value_changes(before, after, are_equal=exactly_equal)
        )
        for change in changes:
            yield from unfold(change)


def _group_changes(changes: Mapping[Scope, Sequence[Change]]) -> Iterator[ChangeGroup]:
    """Yield the changes by the set of configs that have them, the largest sets first."""
    owned = (
        (_token(change), (change, key))
        for key, config_changes in changes.items()
        for change in config_changes
    )
    shared = {
        token: (pairs[-1][0], tuple(key for _, key in pairs))
        for token, pairs in grouped(owned).items()
    }
    groups = grouped((keys, change) for change, keys in _merge_own_names(shared))
    for keys in sorted(groups, key=lambda keys: (-len(keys), [key.sort_key for key in keys])):
        yield ChangeGroup(keys, tuple(groups[keys]))


def _merge_own_names(shared: Mapping[str, _SharedChange]) -> Iterator[_SharedChange]:
    """Merge changes that differ only in the config's own size or environment."""
    by_form: dict[tuple[bool, str], list[_SharedChange]] = {}
    for token, (change, keys) in shared.items():
        has_own_names = all(_contains_own_name(token, key) for key in keys)
        forms = (
            {_token(_with_placeholders(change, key)) for key in keys}
            if has_own_names
            else set[str]()
        )
        # Several forms: configs of several sizes share exactly this value, so a size in it is not their own name.
        form = (True, next(iter(forms))) if len(forms) == 1 else (False, token)
        by_form.setdefault(form, []).append((change, keys))
    for members in by_form.values():
        if len(members) == 1:
            yield members[0]
            continue
        all_keys = sorted_keys(key for _, keys in members for key in keys)
        change, keys = members[0]
        yield (
            _with_placeholders(
                change,
                keys[0],
                # A placeholder is needed only for what differs between the configs.
                environment=len({key.environment for key in all_keys}) > 1,
                size=len({key.size for key in all_keys}) > 1,
            ),
            all_keys,
        )


def _contains_own_name(token: str, key: Scope) -> bool:
    """Return True if a change may contain the config's own environment or size.

    This cheap test avoids most of the regular expressions. The name of the environment may be empty: a file at the
    root of a folder has none. A text that contains a placeholder itself would look like another config's own name.
    """
    return any(name and name in token for name in key) and not any(
        mark in token for mark in _PLACEHOLDERS
    )


def _with_placeholders(
    change: Change, key: Scope, *, environment: bool = True, size: bool = True
) -> Change:
    """Return the change with `<env>` and `<size>` instead of the config's own environment and size."""
    placeholders, pattern = _placeholders(key, environment=environment, size=size)
    before, after = (
        _substitute(placeholders, pattern, value) for value in (change.before, change.after)
    )
    return change._replace(before=before, after=after)


@cache
def _placeholders(
    key: Scope, *, environment: bool, size: bool
) -> tuple[Mapping[str, str], re.Pattern[str]]:
    placeholders: dict[str, str] = {}
    if environment:
        placeholders[key.environment] = ENVIRONMENT
    if size:
        placeholders[key.size] = SIZE
    names = "|".join(re.escape(name) for name in placeholders if name)
    # Whole words only: v2-8 is not a part of v2-80.
    return placeholders, re.compile(rf"(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9])")


def _substitute(placeholders: Mapping[str, str], pattern: re.Pattern[str], value: Any) -> Any:
    if isinstance(value, str):
        return pattern.sub(lambda match: placeholders[match[0]], value)
    if isinstance(value, dict):
        return {name: _substitute(placeholders, pattern, inner) for name, inner in value.items()}
    return (
        [_substitute(placeholders, pattern, item) for item in value]
        if isinstance(value, list)
        else value
    )


def _token(change: Change) -> str:
    """Return a text that equal changes have in common."""
    return canonical_json(
        [
            change.path,
            *([] if value is ABSENT else [value] for value in (change.before, change.after)),
        ]
    )


# Folders


class ConfigFolders(NamedTuple):
    """The configs in two folders."""

    before: dict[Scope, Any]
    """The data of the configs that may differ."""
    after: dict[Scope, Any]
    equal: AbstractSet[Scope]
    """The configs whose files have equal bytes. They are not parsed, so a file may be invalid in both folders."""
    findings: tuple[Finding, ...]
    """Findings about folders and files that cannot be read."""
    sources: dict[str, str]
    """The text of those files, by name."""


def read_folders(before: Path, after: Path) -> ConfigFolders:
    """Read the configs below two folders. Symbolic links, hidden files and hidden folders are skipped.

    Only files that differ are parsed: a comparison of large trees costs little more than reading them. Files with equal
    bytes are no difference, whatever is in them, so an invalid file prevents a comparison only if it differs or is in
    one folder only.
    """
    old_files, new_files = find_config_files(before), find_config_files(after)
    before_files, after_files = _by_key(before, old_files.paths), _by_key(after, new_files.paths)
    common = before_files.keys() & after_files.keys()
    equal = frozenset(
        key
        for key in common
        if has_equal_bytes(before_files[key], after_files[key], MAX_FILE_BYTES)
    )
    old, new = (
        {
            key: read_file(Path(file), several=True)
            for key, file in files.items()
            if key not in equal
        }
        for files in (before_files, after_files)
    )
    broken = [document for document in (*old.values(), *new.values()) if errors(document.findings)]
    return ConfigFolders(
        {key: combined_data(document) for key, document in old.items()},
        {key: combined_data(document) for key, document in new.items()},
        equal,
        (
            *old_files.findings,
            *new_files.findings,
            *collect(each for document in broken for each in document.findings),
        ),
        {document.file: document.text for document in broken},
    )


def _by_key(folder: Path, paths: Sequence[str]) -> dict[Scope, str]:
    """Return the files of a folder by the key of their config."""
    files: dict[Scope, str] = {}
    prefix = str(folder / " ")[:-1]  # without the `./` of the current folder
    for path in paths:
        key = _config_key(path)
        # `config.json` next to `config.yaml` would have its key: a file without one of its own is known by its path.
        files[Scope("", path) if key in files else key] = prefix + path
    return files


def _config_key(path: str) -> Scope:
    """Return the key of a file by its path below the folder."""
    parent, _, name = path.rpartition("/")
    if parent and name in _CONFIG_NAMES:
        # In the output for a single environment, there is no folder above the size's folder.
        environment, _, size = parent.rpartition("/")
        return Scope(environment, size)
    return Scope(parent, name)
