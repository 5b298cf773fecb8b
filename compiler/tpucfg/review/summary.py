"""The review in one line, as a table of counts, and the sources of both."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tpucfg.changes.drift import RefreshScope
from tpucfg.changes.project_meanings import LIFTED
from tpucfg.changes.resources import count_resources, reported_widenings
from tpucfg.changes.statements import format_environments
from tpucfg.findings import errors
from tpucfg.findings.formats import format_counts
from tpucfg.markdown import code, prose, table
from tpucfg.review.costs import cost_phrase
from tpucfg.review.effects import fit_phrase
from tpucfg.review.review import EnvironmentReview, RepositoryReview, Review, Source
from tpucfg.review.revisions import format_revision
from tpucfg.text_format import format_count, listed

_MAX_NAMES: Final = 16
_DRIFT_EFFECTS: Final[Mapping[RefreshScope, str]] = {
    "none": f"is not detected, as its preview was taken without {code('--refresh')}",
    "changed": (
        "is shown only of resources that the update changes, as its preview was taken without "
        f"{code('PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true')}"
    ),
}
"""Limits of the comment, by the scope of the preview's refresh."""
_MAX_PHRASES: Final = 4
_UNKNOWN: Final = "?"
_NOT_APPLICABLE: Final = "–"
_UNCHANGED: Final = "unchanged"
_RESOURCE_COLUMNS: Final = ("create", "update", "replace", "delete", "protection lifted", "wider access")
_PLAIN_COLUMNS: Final = 2
"""Number of columns before those that count risks, which are set in bold."""


def repository_headline(reviewed: RepositoryReview) -> str:
    """Return the sum of all reviews in one line; of one review, its own headline."""
    if only := reviewed.only:
        return headline(only)
    changed = sum(review.is_change for review in reviewed.reviews)
    total = len(reviewed.reviews) + len(reviewed.failures) + len(reviewed.others)
    broken = sum(review.is_broken for review in reviewed.reviews) + len(reviewed.failures)
    destructive = sum(review.is_destructive for review in reviewed.reviews)
    unknown = sum(not review.is_known for review in reviewed.reviews if not review.is_broken)
    phrases = [
        f"{changed:,} of {format_count(total, 'spec')} changed",
        f"{broken:,} with errors" if broken else "",
        f"{destructive:,} {'loses' if destructive == 1 else 'lose'} data or protection" if destructive else "",
        f"resource changes of {unknown:,} unknown" if unknown else "",
        *dict.fromkeys(located.statement.headline for located in reviewed.statements),
    ]
    return ", ".join(phrase for phrase in phrases if phrase)


def headline(review: Review) -> str:
    """Return the review of one spec in one line."""
    drifted = sum(bool(drift.risk) for environment in review.environments for drift in environment.drift)
    drift = f"; {format_count(drifted, 'resource')} differ{'s' * (drifted == 1)} in the cloud" if drifted else ""
    return f"{_change_headline(review)}{drift}"


def _change_headline(review: Review) -> str:
    for revision, subject in ((review.after, "the spec"), (review.before, "the spec of the base")):
        if revision.is_broken:
            counts = format_counts(errors(revision.findings))
            return _with_phrases(f"{subject} has {counts}", review)
    if not review.is_change:
        return _with_phrases("no changes" if review.is_known else "no known changes", review)
    resources = count_resources(review.resources)
    # A deletion rule or a shorter retention is only an update, but the reason to read on.
    weakened = sum(any(statement.destructive for statement in change.statements) for change in review.resources)
    widened = sum(
        bool(reported_widenings(change, is_new=environment.is_new))
        for environment in review.environments
        for change in environment.changes
    )
    configs = review.difference
    counts_by_phrase = [
        (resources.delete, "{} deleted", "resource"),
        (resources.replace, "{} replaced", "resource"),
        (resources.lifted, "{} no longer protected", "resource"),
        (weakened, "{} with data at risk", "resource"),
        (widened, "{} with wider access", "resource"),
        (resources.create, "{} created", "resource"),
        (resources.update, "{} updated", "resource"),
        (len(configs.changed), "{} changed", "config"),
        (len(configs.added), "{} added", "config"),
        (len(configs.removed), "{} removed", "config"),
    ]
    phrases = [template.format(format_count(count, noun)) for count, template, noun in counts_by_phrase if count]
    nothing = "no config or resource changes" if review.is_known else "no known config or resource changes"
    return _with_phrases(", ".join(phrases) or nothing, review)


def _with_phrases(counts: str, review: Review) -> str:
    """Add what no count includes: a higher cost, and changes such as a lifted protection, the riskiest first."""
    located = [item for item in review.impact.statements if item.statement.headline]
    if any(change.protection == "lifted" for change in review.resources):
        # Already counted as resources that are no longer protected.
        located = [item for item in located if item.statement.headline != LIFTED]
    located.sort(key=lambda item: -item.statement.risk)
    phrases = dict.fromkeys(
        f"{item.statement.headline} in {item.scope}" if item.scope else item.statement.headline for item in located
    )
    parts = (
        counts,
        _unknown_phrase(review.environments),
        cost_phrase(review.costs),
        fit_phrase(review.fits),
        listed([*phrases], _MAX_PHRASES),
    )
    return "; ".join(part for part in parts if part)


def _unknown_phrase(environments: Sequence[EnvironmentReview]) -> str:
    """Name the environments of which a failed program or preview hides changes; a failure is not `no change`."""
    names = [environment.environment for environment in environments if environment.problem or environment.unverified]
    return f"changes to resources unknown in {format_environments(names)}" if names else ""


def counts_table(review: Review) -> str:
    """Return a table with a row for each environment; empty if there is nothing to count."""
    by_name = {environment.environment: environment for environment in review.environments}
    names = sorted({*by_name, *(key.environment for key in review.difference.all_keys)})
    if review.is_broken:
        # Only a preview compares resources if the specs cannot be compared.
        names = [name for name, environment in by_name.items() if environment.source == "preview"]
    has_problem = any(environment.problem for environment in review.environments)
    if not names or not (review.is_change or has_problem):
        return ""
    if all(environment.source == "none" for environment in review.environments):
        # Nothing is known of resources, or there are none.
        return table(["environment", "configs"], [[code(name), _config_cell(review, name)] for name in names])
    cells = {name: _resource_cells(by_name.get(name)) for name in names}
    if not any(cell != "0" for row in cells.values() for cell in row):
        # Most changes leave the resources alone; six columns of zeros would hide that.
        rows = [[code(name), _UNCHANGED, _config_cell(review, name)] for name in names]
        return table(["environment", "resources", "configs"], rows)
    rows = [[code(name), *cells[name], _config_cell(review, name)] for name in names]
    return table(["environment", *_RESOURCE_COLUMNS, "configs"], rows, range(1, len(_RESOURCE_COLUMNS) + 1))


def _resource_cells(environment: EnvironmentReview | None) -> list[str]:
    if environment is None:
        return [_NOT_APPLICABLE] * len(_RESOURCE_COLUMNS)
    counts = count_resources(environment.changes)
    numbers = [
        counts.create + counts.imported,
        counts.update,
        counts.replace,
        counts.delete,
        counts.lifted,
        counts.widened,
    ]
    # A problem without any count means that nothing is known, and 0 would be misleading.
    if environment.source == "none" or (environment.problem and not any(numbers)):
        return [_UNKNOWN] * len(_RESOURCE_COLUMNS)
    cells = [f"{number:,}" for number in numbers]
    risks = (f"**{cell}**" if cell != "0" else cell for cell in cells[_PLAIN_COLUMNS:])
    return [*cells[:_PLAIN_COLUMNS], *risks]


def _config_cell(review: Review, name: str) -> str:
    if review.is_broken:
        return _UNKNOWN
    difference = review.difference
    keys_by_verb = (("changed", difference.changed), ("added", difference.added), ("removed", difference.removed))
    counts = [(sum(key.environment == name for key in keys), verb) for verb, keys in keys_by_verb]
    return ", ".join(f"{count:,} {verb}" for count, verb in counts if count) or _UNCHANGED


# Sources


def footer(review: Review) -> str:
    """Return the line; empty if there are no resources."""
    sentences = [*_source_sentences(review), *map(prose, review.notes)]
    return f"_{' '.join(sentences)}_" if sentences else ""


def _source_sentences(review: Review) -> Iterator[str]:
    previewed, compared, declared = (_names(review, source) for source in ("preview", "program", "head"))
    if previewed:
        yield f"Resources of {_listed(previewed)}: from Pulumi's preview."
        for scope, effect in _DRIFT_EFFECTS.items():
            if names := [name.environment for name in review.environments if _has_scope(name, scope)]:
                yield f"Drift of {_listed(names)} {effect}."
    # Environments are named only if there are several sources.
    others = f" of {_listed(compared or declared)}" if previewed else ""
    if compared:
        yield f"Resources{others}: from {_programs(review)}, run without credentials; drift is not detected."
    if declared:
        yield f"Resources{others}: declared by {_program_of_head(review)}; how they change is unknown."
    if missing := [environment.environment for environment in review.environments if environment.has_no_stack]:
        subject, verb = ("stack", "does") if len(missing) == 1 else ("stacks", "do")
        yield f"The {subject} of {_listed(missing)} {verb} not exist yet."


def _names(review: Review, source: Source) -> list[str]:
    return [environment.environment for environment in review.environments if environment.source == source]


def _has_scope(environment: EnvironmentReview, scope: RefreshScope) -> bool:
    is_previewed = environment.source == "preview" and not environment.problem
    return is_previewed and environment.refresh == scope


def _programs(review: Review) -> str:
    """Return which stack programs were run."""
    if not review.revisions_with_bundled_program:
        return "the stack programs of both revisions"
    if len(review.revisions_with_bundled_program) > 1:
        return "the stack program bundled with tpucfg, as neither revision has its own"
    snapshots = (review.before.snapshot, review.after.snapshot)
    without = next(snapshot for snapshot in snapshots if snapshot.title in review.revisions_with_bundled_program)
    bundled = f"{format_revision(without)} has none, so the one bundled with tpucfg was used"
    return f"the stack programs of both revisions ({bundled})"


def _program_of_head(review: Review) -> str:
    head = review.after.snapshot
    if head.title in review.revisions_with_bundled_program:
        return f"the stack program bundled with tpucfg, as {format_revision(head)} has none"
    return f"the stack program of {format_revision(head)}"


def _listed(names: Sequence[str]) -> str:
    return listed([code(name) for name in names], _MAX_NAMES)
