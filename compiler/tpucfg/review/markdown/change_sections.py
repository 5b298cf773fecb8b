"""Folded sections of a comment: changed configs, and the changed resources of each environment."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.changes.config_diff import Difference, Group, redact_difference
from tpucfg.changes.describe import (
    ALL_CONFIGS,
    change_diff,
    change_labels,
    format_config_counts,
    format_keys,
    is_flag,
)
from tpucfg.changes.facts import Change, Scope
from tpucfg.infra.resources import Resource
from tpucfg.markdown import code, html, html_code, prose
from tpucfg.redaction import redact, redact_report
from tpucfg.review.changes.resources.resource_change import ResourceChange
from tpucfg.review.markdown.section import Block, Item, Section, code_block, fold
from tpucfg.review.markdown.size_limit import join_within_limit
from tpucfg.review.review import EnvironmentReview
from tpucfg.text_format import dotted, listed

_MAX_SUMMARY_LABELS: Final = 4
"""Changes that the summary line of a fold names."""
_MAX_NAMES: Final = 16
_VERBS: Final = {
    "create": "create",
    "update": "update",
    "replace": "replace",
    "delete": "delete",
    "import": "import",
    "same": "keep",
}
_PROTECTION_TEXTS: Final = {"lifted": "no longer protected", "added": "now protected", "": ""}


def difference_markdown(difference: Difference) -> str:
    """Return a difference without a review, as `tpucfg diff` prints it, without a final line break."""
    counts = format_config_counts(difference)
    head = f"**{counts[0].upper()}{counts[1:]}.**"
    for verb, keys in (("Added", difference.added), ("Removed", difference.removed)):
        if keys:
            head += f"\n\n{verb}: {prose(format_keys(keys))}"
    return join_within_limit(head, config_sections(difference)).rstrip("\n")


# Configs


def config_sections(difference: Difference) -> list[Section]:
    """Return a fold for each set of configs that change in the same way."""
    common = difference.common
    return [_config_section(group, common) for group in redact_difference(difference).groups]


def _config_section(group: Group, common: tuple[Scope, ...]) -> Section:
    keys, labels = format_keys(group.keys, common), change_labels(group.changes)
    # A script can have the same line several times.
    items = dict.fromkeys(
        _diff_item(change, label, flag=is_flag(change)) for change, label in zip(group.changes, labels, strict=True)
    )
    short = dict.fromkeys(_short_label(change, label) for change, label in zip(group.changes, labels, strict=True))
    short_labels = listed([*short], _MAX_SUMMARY_LABELS)
    prefix = "" if keys == ALL_CONFIGS else "configs of "
    summary = f"{prefix}{html_code(keys)}: {html(short_labels)}"
    return fold(f"{prefix}{prose(keys)}", summary, [code_block([*items], "diff")])


def _short_label(change: Change, label: str) -> str:
    """Return the last key of a field's path, which is enough to recognize it and can contain dots itself."""
    if label != dotted(change.path):
        return label
    keys = [index for index, step in enumerate(change.path) if isinstance(step, str)]
    return dotted(change.path[keys[-1] :]) if keys else label


# Resources


def resource_sections(environments: Sequence[EnvironmentReview]) -> list[Section]:
    """Return a fold for each set of environments whose resources change in the same way."""
    names_by_content: dict[tuple[str, tuple[Block, ...]], list[str]] = {}
    for environment in environments:
        if blocks := tuple(block for block in _resource_blocks(environment) if block.items):
            names_by_content.setdefault((_summarize(environment), blocks), []).append(environment.environment)
    return [_resource_section(names, summary, blocks) for (summary, blocks), names in names_by_content.items()]


def _resource_section(environments: Sequence[str], summary: str, blocks: tuple[Block, ...]) -> Section:
    names = listed(environments, _MAX_NAMES)
    return fold(f"resources of {prose(names)}", f"resources of {html_code(names)}: {html(summary)}", blocks)


def _summarize(environment: EnvironmentReview) -> str:
    counts = Counter(_VERBS[change.op] for change in environment.changes)
    phrases = [f"{counts[verb]:,} to {verb}" for verb in _VERBS.values() if counts[verb]]
    if environment.declared:
        count, protected = len(environment.declared), sum(resource.protect for resource in environment.declared)
        quantity = {0: "none", count: "all"}.get(protected, f"{protected:,}")
        phrases.append(f"{count:,} declared, {quantity} of them protected")
    phrases += ["failed"] if environment.problem else []
    phrases += ["policies"] if environment.violations else []
    return ", ".join(phrases) or "warnings"


def _resource_blocks(environment: EnvironmentReview) -> Iterator[Block]:
    problem = environment.problem
    if problem:
        yield Block((Item(prose(redact(problem.reason)), "the problem"),))
        if problem.output:
            yield code_block([Item(redact_report(line)) for line in problem.output])
    if environment.warnings:
        yield Block(tuple(Item(f"- warning: {prose(line)}", "a warning") for line in environment.warnings))
    if environment.is_new:
        # Only the names: with every input the fold would repeat the whole program.
        yield Block(tuple(Item(_created_resource(change), change.name) for change in environment.changes))
        return
    if environment.declared:
        yield Block(tuple(_declared_resource(resource) for resource in environment.declared))
    if unlisted := [change for change in environment.changes if not change.inputs]:
        yield Block(tuple(Item(f"- {_change_title(change)}", change.name) for change in unlisted))
    for change in environment.changes:
        if change.inputs:
            yield Block((Item(_change_title(change), change.name),))
            yield code_block([*_input_items(change)], "diff")


def _declared_resource(resource: Resource) -> Item:
    return Item(f"- {_resource_label(resource.kind, resource.name, resource.inputs)}", resource.name)


def _created_resource(change: ResourceChange) -> str:
    inputs = {str(item.path[0]): item.after for item in change.inputs if len(item.path) == 1}
    return f"- create {_resource_label(change.kind, change.name, inputs)}"


def _resource_label(kind: str, name: str, inputs: Mapping[str, Any]) -> str:
    """Return a resource without its inputs; for an IAM grant, with its role and member."""
    label = f"{code(kind)} {code(name)}"
    role, member = inputs.get("role"), inputs.get("member")
    if isinstance(role, str) and isinstance(member, str):
        label += f": {code(role)} to {code(member)}"
    return label


def _change_title(change: ResourceChange) -> str:
    marks = [
        f"because of {', '.join(map(code, change.because))}" if change.because else "",
        "kept in the cloud with its content" if change.retained else "",
        _PROTECTION_TEXTS[change.protection],
        f"differs in {', '.join(map(code, change.hidden))}" if change.hidden else "",
        "not in the preview" if change.only_declared else "",
    ]
    text = "; ".join(mark for mark in marks if mark)
    return f"**{_VERBS[change.op]}** {code(change.kind)} {code(change.name)}" + (f" ({text})" if text else "")


def _input_items(change: ResourceChange) -> Iterator[Item]:
    for item, label in zip(change.inputs, change_labels(change.inputs), strict=True):
        diff = _diff_item(item, label, flag=False)
        yield diff._replace(label=f"{change.name} {label}")


def _diff_item(change: Change, label: str, *, flag: bool) -> Item:
    """Return the value before and after, which stay together where a fold is cut."""
    return Item("\n".join(change_diff(change, label, flag=flag)), label)
