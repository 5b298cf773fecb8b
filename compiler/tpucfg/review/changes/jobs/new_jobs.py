"""Dangerous fields of configs that only the head has."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from tpucfg.diff.change import ABSENT, Change, ConfigKey, Difference
from tpucfg.diff.command_lines import parse_command_lines
from tpucfg.diff.compiled_revisions import CompiledRevision
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
from tpucfg.review.changes.jobs.setting_changes import setting_dangers
from tpucfg.review.changes.jobs.verdicts import image_verdict, references, registry_of


def new_dangers(
    before: CompiledRevision, after: CompiledRevision, difference: Difference
) -> Iterator[tuple[ConfigKey, FieldChange]]:
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
