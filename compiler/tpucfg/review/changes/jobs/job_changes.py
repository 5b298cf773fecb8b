"""Changes to jobs: every field of a config that another statement does not explain, by name and with its danger."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from tpucfg.changes.config_diff import Difference
from tpucfg.changes.describe import format_keys
from tpucfg.changes.facts import ABSENT, Change, Scope, sorted_keys
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement
from tpucfg.plan import Job
from tpucfg.review.changes.jobs.changed_fields import (
    field_change,
    field_verdict,
    is_script_line,
    leaves_of,
    paired,
    rule_of,
    script_change,
    script_path,
)
from tpucfg.review.changes.jobs.field_sentences import FieldChange, field_statements
from tpucfg.review.changes.jobs.job_context import JobContext, figure_flags
from tpucfg.review.changes.jobs.job_fields import IMAGE, FieldRule
from tpucfg.review.changes.jobs.new_jobs import new_dangers
from tpucfg.review.changes.jobs.setting_changes import setting_changes
from tpucfg.review.changes.jobs.verdicts import Verdict, image_verdict
from tpucfg.yamldoc.document import KeyPath


class _JobSetting(NamedTuple):
    """A value of a job, which not every target's config contains."""

    name: str
    get: Callable[[Job], str | None]


_SETTINGS: Final = (
    _JobSetting(IMAGE, lambda job: job.image),
    _JobSetting("worker image", lambda job: job.worker_image),
    _JobSetting("package", lambda job: job.package),
    _JobSetting("module", lambda job: job.module),
    _JobSetting("runtime version", lambda job: job.runtime),
    _JobSetting("Python version", lambda job: job.python),
    _JobSetting("machine type", lambda job: job.slice.machine and job.slice.machine.name),
    _JobSetting("topology", lambda job: job.slice.topology),
    _JobSetting("zone", lambda job: job.zone),
)


def job_statements(
    before: CompiledRevision, after: CompiledRevision, difference: Difference
) -> Iterator[LocatedStatement]:
    """Yield the changed fields of the configs that both revisions have, and the dangerous fields of new ones."""
    old, new = before.jobs, after.jobs
    trainings = [revision.project.training if revision.project else None for revision in (before, after)]
    changes = _changes_by_key(difference)
    kept = [key for key in new if key in old]
    owned = []
    for key in kept:
        figures = figure_flags(old[key], trainings[0]), figure_flags(new[key], trainings[1])
        context = JobContext.of(key, old[key], new[key], figures)
        owned += [(key, change) for change in setting_changes(context)]
        owned += [(key, change) for change in _field_changes(changes.get(key, ()), context)]
    yield from field_statements(owned, lambda keys: format_keys(keys, kept))
    known = sorted_keys(new)
    yield from field_statements(new_dangers(before, after, difference), lambda keys: format_keys(keys, known))


def _changes_by_key(difference: Difference) -> dict[Scope, list[Change]]:
    changes: dict[Scope, list[Change]] = {}
    for group in difference.groups:
        for key in group.keys:
            changes.setdefault(key, []).extend(group.changes)
    return changes


# One config


def _field_changes(changes: Sequence[Change], context: JobContext) -> Iterator[FieldChange]:
    settings = [*_setting_changes(context)]
    yield from (change for _, change in settings)
    pairs = [pair for pair, _ in settings]
    leaves = [leaf for change in changes for leaf in leaves_of(change)]
    if context.has_other_target:
        leaves = [*paired(leaves, context)]
    scripts: dict[KeyPath, list[Change]] = {}
    for leaf in leaves:
        rule = rule_of(leaf.path, context)
        if is_script_line(leaf, rule):
            if not context.is_explained(leaf):
                scripts.setdefault(script_path(leaf.path), []).append(leaf)
        elif not (
            _is_kept_image(leaf, rule, context) or _values_of(leaf, context) in pairs or context.is_explained(leaf)
        ):
            yield field_change(leaf, rule, field_verdict(leaf, rule, context))
    yield from (script_change(lines) for lines in scripts.values())


def _values_of(leaf: Change, context: JobContext) -> tuple[Any, Any]:
    return context.concrete(leaf.before), context.concrete(leaf.after)


def _is_kept_image(leaf: Change, rule: FieldRule, context: JobContext) -> bool:
    """Return True for the job's image in a field that only one of two targets has: others start it in a script."""
    before, after = context.before, context.after
    if before is None or not context.has_other_target or rule.subject != IMAGE or before.image != after.image:
        return False
    return {*_values_of(leaf, context)} == {ABSENT, after.image}


def _setting_changes(context: JobContext) -> Iterator[tuple[tuple[Any, Any], FieldChange]]:
    """Yield the settings that differ, each with its two values."""
    if context.before is None:
        return
    for setting in _SETTINGS:
        old, new = setting.get(context.before), setting.get(context.after)
        # A new region always means a new zone, and has a statement of its own.
        is_moved = setting.name == "zone" and context.before.environment.region != context.after.environment.region
        if old != new and not is_moved:
            verdict = image_verdict(old, new) if "image" in setting.name else Verdict()
            if context.before.environment.project != context.after.environment.project and _follows(old, new, context):
                verdict = Verdict()
            change = Change((), *(ABSENT if value is None else value for value in (old, new)))
            rule = FieldRule("", setting.name, "")
            yield (change.before, change.after), field_change(change, rule, verdict)


def _follows(old: str | None, new: str | None, context: JobContext) -> bool:
    return context.is_explained(Change((), old, new))
