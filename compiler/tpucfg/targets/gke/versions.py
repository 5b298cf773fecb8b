"""Fields of a JobSet that older releases lack: a cluster with one of those refuses the config, or drops the field.

`request_body` writes only fields that v0.10.1 knows, the release that XPK installs:
https://github.com/AI-Hypercomputer/xpk/blob/v1.13.1/src/xpk/core/jobset.py. Configs written by hand, and `extra`, may
have newer ones. Releases: https://github.com/kubernetes-sigs/jobset/releases.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tpucfg.schemas import Problem
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import dotted, format_value
from tpucfg.yamldoc.document import KeyPath


class _Addition(NamedTuple):
    """A field, or a value of one, that a release added."""

    path: tuple[str, ...]
    """Keys; `*` stands for each entry of a list."""
    values: tuple[str, ...]
    """The values that were added; none if the field itself was."""
    release: str
    gate: str
    """The feature gate without which the release refuses it; empty if it needs none."""
    fix: str
    """The edit that every release accepts; `{path}` is the field's."""


_ADDITIONS: Final = (
    _Addition(
        ("spec", "failurePolicy", "restartStrategy"),
        ("InPlaceRestart",),
        "v0.11.0",
        "InPlaceRestart",
        "set {path} to Recreate",
    ),
    _Addition(
        ("spec", "failurePolicy", "rules", "*", "action"),
        ("RestartJob",),
        "v0.12.0",
        "RestartJob",
        "set {path} to RestartJobSet",
    ),
    _Addition(
        ("spec", "failurePolicy", "rules", "*", "action"),
        ("RestartJobAndIgnoreMaxRestarts",),
        "v0.12.0",
        "RestartJob",
        "set {path} to RestartJobSetAndIgnoreMaxRestarts",
    ),
    _Addition(
        ("spec", "volumeClaimPolicies"),
        (),
        "v0.11.0",
        "",
        "delete {path}, and mount a claim that exists",
    ),
)
_GATES: Final = "https://github.com/kubernetes-sigs/jobset/blob/{release}/pkg/features/features.go"
_RELEASE: Final = "https://github.com/kubernetes-sigs/jobset/releases/tag/{release}"


def version_problems(body: RequestBody) -> Iterator[Problem]:
    """Yield a warning for each field or value of a JobSet that only newer releases know."""
    for addition in _ADDITIONS:
        for path, value in _values_at(body, addition.path):
            if not addition.values or value in addition.values:
                yield _problem(addition, path, value)


def _problem(addition: _Addition, path: KeyPath, value: Any) -> Problem:
    subject = f"{dotted(path)}: {format_value(value, quoted=False)}" if addition.values else dotted(path)
    gate = f" with the feature gate {addition.gate}, which is off by default" if addition.gate else ""
    message = f"{subject} needs JobSet {addition.release} or newer{gate}"
    source = (_GATES if addition.gate else _RELEASE).format(release=addition.release)
    hint = f"{addition.fix.format(path=dotted(path))}, or install that release in the cluster"
    return Problem("TPU104", message, path, hint, at_key=not addition.values, details=(f"the source: {source}",))


def _values_at(value: Any, pattern: tuple[str, ...], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the path and value of everything in a value that matches a pattern."""
    if not pattern:
        yield path, value
        return
    step, *rest = pattern
    if step == "*" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _values_at(item, tuple(rest), (*path, index))
    elif isinstance(value, dict) and step in value:
        yield from _values_at(value[step], tuple(rest), (*path, step))
