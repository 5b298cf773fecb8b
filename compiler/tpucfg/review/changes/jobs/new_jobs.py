"""Configs that only the head has: their dangerous fields, and how their settings differ from those of a known rung."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from tpucfg.changes.command_lines import parse_command_lines
from tpucfg.changes.config_diff import Difference
from tpucfg.changes.describe import format_keys
from tpucfg.changes.facts import ABSENT, Change, Scope, sorted_keys
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Statement, group_statements
from tpucfg.plan import Job
from tpucfg.review.changes.jobs.changed_fields import (
    KnownValues,
    field_change,
    field_verdict,
    is_in_first_items,
    is_script_line,
    leaves_of,
    rule_of,
    script_change,
)
from tpucfg.review.changes.jobs.field_sentences import FieldChange
from tpucfg.review.changes.jobs.job_context import JobContext
from tpucfg.review.changes.jobs.job_fields import IMAGE
from tpucfg.review.changes.jobs.job_settings import FIT_STEP
from tpucfg.review.changes.jobs.scaling_table import rung_baselines
from tpucfg.review.changes.jobs.setting_changes import setting_changes, setting_dangers
from tpucfg.review.changes.jobs.verdicts import image_verdict, references, registry_of
from tpucfg.text_format import listed

_COMPARED: Final = frozenset(
    ("capacity", "restarts", "maximum run duration", "queue", "priority class", "compute class", FIT_STEP)
)
"""The settings that a new rung is expected to share with the rung below; `new_dangers` judges the others."""


def new_dangers(
    before: CompiledRevision, after: CompiledRevision, difference: Difference
) -> Iterator[tuple[Scope, FieldChange]]:
    """Yield the dangerous fields of new configs, without those that their environment had before."""
    if not difference.added:
        return
    configs, jobs = after.configs, after.jobs
    known = _known(before)
    for key in difference.added:
        context = JobContext.of(key, None, jobs[key])
        for change in _dangers(configs[key], context, known):
            if _identity(change) not in known.dangers.get(key.environment, frozenset()):
                yield key, change


def new_rung_statements(before: Mapping[Scope, Job], after: Mapping[Scope, Job]) -> Iterator[LocatedStatement]:
    """Yield what a new rung sets in another way than the rung below, or than the one that it replaces.

    Without either, as of a ladder that becomes shorter, it is compared with the largest rung that its environment had.
    """
    largest = {key.environment: key.size for key in before}
    owned = []
    for key, (baseline, is_rung_below) in rung_baselines(before, after):
        if size := baseline or largest.get(key.environment, ""):
            other = (after if is_rung_below else before)[Scope(key.environment, size)]
            owned += [(key, statement) for statement in _differences(size, JobContext.of(key, other, after[key]))]
    yield from group_statements(owned, lambda keys: format_keys(sorted_keys(keys), sorted_keys(after)))


def _differences(size: str, context: JobContext) -> Iterator[Statement]:
    for change in setting_changes(context):
        if change.subject in _COMPARED:
            values = tuple(value for value in (change.after, size, change.before) if value is not None)
            now = "{}" if change.after is not None else "not set"
            then = "with {}" if change.before is not None else "without"
            consequence = f": {change.verdict.consequence}" if change.verdict.risk else ""
            yield Statement(f"{change.subject} {now}, unlike {{}} {then}{consequence}", values, change.verdict.risk)
    assert context.before is not None  # noqa: S101 - the rung that a new one is compared with
    old, new = (_program_settings(job) for job in (context.before, context.after))
    if names := [name for name in {**old, **new} if old.get(name) != new.get(name)]:
        yield Statement("{} set in another way than on {}", (listed(names), size))


def _program_settings(job: Job) -> Mapping[str, object]:
    """Return the arguments and variables as the spec has them, with placeholders, which are alike on all rungs."""
    trainer = job.settings.trainer
    arguments = {f"--{arg.key}": arg.values for arg in trainer.args}
    return {**arguments, **dict(trainer.env)}


def _dangers(config: Any, context: JobContext, known: KnownValues) -> Iterator[FieldChange]:
    if known.registries:
        for image in dict.fromkeys((context.after.image, context.after.worker_image)):
            verdict = image_verdict(None, image, known.registries)
            if image and verdict.risk:
                yield FieldChange(IMAGE, "", None, image, verdict=verdict)
    yield from setting_dangers(context)
    scripts = []
    for leaf in leaves_of(Change((), ABSENT, parse_command_lines(config))):
        rule = rule_of(leaf.path, context)
        is_image = rule.subject == IMAGE and leaf.after in (context.after.image, context.after.worker_image)
        is_own_name = leaf.path[-1:] == ("name",) and is_in_first_items(leaf.path)
        if is_image or is_own_name or context.is_explained(leaf):
            continue
        if is_script_line(leaf, rule):
            scripts.append(leaf)
        elif (verdict := field_verdict(leaf, rule, context, known)).risk:
            yield field_change(leaf, rule, verdict)
    if scripts:
        yield script_change(scripts)


def _known(before: CompiledRevision) -> KnownValues:
    configs, jobs = before.configs, before.jobs
    images = {image for job in jobs.values() for image in (job.image, job.worker_image) if image}
    texts = chain.from_iterable((job.args, (value for _, value in job.env)) for job in jobs.values())
    known = KnownValues(
        frozenset(map(registry_of, images)),
        frozenset(reference for values in texts for text in values for reference in references(text)),
        {},
    )
    dangers: dict[str, set[object]] = {}
    for key, job in jobs.items():
        context = JobContext.of(key, None, job)
        own = _dangers(configs[key], context, known)
        dangers.setdefault(key.environment, set()).update(map(_identity, own))
    return known._replace(dangers={name: frozenset(values) for name, values in dangers.items()})


def _identity(change: FieldChange) -> object:
    return change.subject, change.label, change.verdict
