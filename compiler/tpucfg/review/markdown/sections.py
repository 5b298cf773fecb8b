"""What changes in the configs, as Markdown: a fold for each set of configs that change in the same way."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.diff.change import ABSENT, Change, ConfigKey, Difference, Group, redact_difference
from tpucfg.diff.describe import EVERY, change_labels, format_change_value, format_config_counts, format_keys, is_flag
from tpucfg.markdown import code, details, fence, html, html_code, prose
from tpucfg.redaction import redact
from tpucfg.review.changes.resource_change import ResourceChange
from tpucfg.review.markdown.size_limit import Section, fit_sections
from tpucfg.review.review import Part
from tpucfg.text_format import listed

_NAMED: Final = 4
"""Changes that a fold's own line names."""


def whole_difference(found: Difference) -> str:
    """The difference by itself, without a line break at its end."""
    return fit_sections("\n".join(_before_the_folds(found)), config_sections(found)).rstrip("\n")


def _before_the_folds(found: Difference) -> Iterator[str]:
    said = format_config_counts(found)
    yield f"**{said[0].upper()}{said[1:]}.**"
    for verb, keys in (("Added", found.added), ("Removed", found.removed)):
        if keys:
            yield ""
            yield f"{verb}: {prose(format_keys(keys))}"


def config_sections(found: Difference) -> list[Section]:
    """A fold for each group of changes."""
    kept = found.kept
    return [_config_section(group, kept) for group in redact_difference(found).groups]


def _config_section(group: Group, kept: tuple[ConfigKey, ...]) -> Section:
    of, names = format_keys(group.keys, kept), change_labels(group.changes)
    lines = dict.fromkeys(
        line for change, name in zip(group.changes, names, strict=True) for line in _config_lines(change, name)
    )
    short = listed([*dict.fromkeys(name.rpartition(".")[2] for name in names)], _NAMED)
    return Section(
        f"the configs of {prose(of)}",
        details(
            f"{'' if of == EVERY else 'configs of '}{html_code(of)}: {html(short)}", fence("\n".join(lines), "diff")
        ),
    )


def _config_lines(change: Change, label: str) -> Iterator[str]:
    for sign, side in (("-", change.before), ("+", change.after)):
        if side is not ABSENT:
            yield f"{sign} {label}: {format_change_value(side, flag=is_flag(change))}"


# What happens to resources, as Markdown: a fold for each environment, or for several in which the same happens.


_VERBS: Final = {
    "create": "create",
    "update": "update",
    "replace": "replace",
    "delete": "delete",
    "import": "import",
    "same": "keep",
}
_MOST_NAMES: Final = 16


def resource_sections(parts: Sequence[Part]) -> list[Section]:
    """A fold for each set of environments in which the same happens to the same resources."""
    bodies: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        if body := "\n\n".join(_body(part)):
            bodies.setdefault((_counted(part), body), []).append(part.environment)
    return [_resource_section(names, said, body) for (said, body), names in bodies.items()]


def _resource_section(names: Sequence[str], said: str, body: str) -> Section:
    of = listed(names, _MOST_NAMES)
    return Section(f"the resources of {prose(of)}", details(f"resources of {html_code(of)}: {html(said)}", body))


def _counted(part: Part) -> str:
    counts = Counter(_VERBS[change.op] for change in part.changes)
    said = [f"{counts[verb]:,} to {verb}" for verb in _VERBS.values() if counts[verb]]
    if part.declared:
        count, kept = len(part.declared), sum(it.protect for it in part.declared)
        protected = {0: "none", count: "all"}.get(kept, f"{kept:,}")
        said.append(f"{count:,} declared, {protected} of them protected")
    said += ["failed"] if part.problem else []
    said += ["policies"] if part.violations else []
    return ", ".join(said) or "warnings"


def _body(part: Part) -> Iterator[str]:
    if part.problem:
        yield prose(redact(part.problem.reason))
        if part.problem.said:
            yield fence("\n".join(redact(line) for line in part.problem.said))
    if part.warnings:
        yield "\n".join(f"- warning: {prose(line)}" for line in part.warnings)
    # Where everything is made anew, each input would be a line that says nothing: the program has it.
    if part.is_first:
        yield "\n".join(_made(change) for change in part.changes)
        return
    if part.declared:
        yield "\n".join(f"- {_named(it.kind, it.name, it.inputs)}" for it in part.declared)
    if short := [f"- {_head(change)}" for change in part.changes if not change.inputs]:
        yield "\n".join(short)
    for change in part.changes:
        if change.inputs:
            yield _head(change)
            yield fence("\n".join(_resource_lines(change.inputs)), "diff")


def _made(change: ResourceChange) -> str:
    """A resource of a new environment."""
    told = {str(it.path[0]): it.after for it in change.inputs if len(it.path) == 1}
    return f"- create {_named(change.kind, change.name, told)}"


def _named(kind: str, name: str, inputs: Mapping[str, Any]) -> str:
    """A resource that is not compared; of a grant, who gets what."""
    grant = [it for key in ("role", "member") if isinstance(it := inputs.get(key), str)]
    said = f": {' to '.join(map(code, grant))}" if len(grant) == 2 else ""  # noqa: PLR2004 - what, and to whom
    return f"{code(kind)} {code(name)}{said}"


def _head(change: ResourceChange) -> str:
    marks = [
        ", ".join(["because of", ", ".join(map(code, change.because))]).replace("of, ", "of ")
        if change.because
        else "",
        "left behind, with what it holds" if change.retained else "",
        {"lifted": "protected no longer", "added": "protected from now on", "": ""}[change.protection],
        f"differs in {', '.join(map(code, change.hidden))}" if change.hidden else "",
    ]
    said = "; ".join(mark for mark in marks if mark)
    return f"**{_VERBS[change.op]}** {code(change.kind)} {code(change.name)}" + (f" ({said})" if said else "")


def _resource_lines(changes: Sequence[Change]) -> Iterator[str]:
    for change, label in zip(changes, change_labels(changes), strict=True):
        for sign, side in (("-", change.before), ("+", change.after)):
            if side is not ABSENT:
                yield f"{sign} {label}: {format_change_value(side, flag=False)}"
