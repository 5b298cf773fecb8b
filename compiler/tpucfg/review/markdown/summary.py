"""The review in one line, and as a table of counts."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.changes.statements import format_environments
from tpucfg.findings import errors
from tpucfg.findings.formats import format_counts
from tpucfg.markdown import code, table
from tpucfg.review.changes.environment_changes import LIFTED
from tpucfg.review.changes.resources.resource_change import count_resources, reported_widenings
from tpucfg.review.markdown.costs import cost_phrase
from tpucfg.review.markdown.fits import fit_phrase
from tpucfg.review.review import EnvironmentReview, Review
from tpucfg.text_format import format_count, listed

_MAX_PHRASES: Final = 4
_UNKNOWN: Final = "?"
_NOT_APPLICABLE: Final = "–"
_UNCHANGED: Final = "unchanged"
_RESOURCE_COLUMNS: Final = ("create", "update", "replace", "delete", "protection lifted", "wider access")
_PLAIN_COLUMNS: Final = 2
"""Number of columns before those that count risks, which are set in bold."""


def headline(review: Review) -> str:
    """Return the review in one line."""
    return "; ".join([_change_headline(review), *_drift_phrases(review.environments)])


def _drift_phrases(environments: Sequence[EnvironmentReview]) -> Iterator[str]:
    """Yield what differs in the cloud, without what is known or harmless."""
    drifted = sum(bool(drift.risk) for environment in environments for drift in environment.drift)
    if drifted:
        yield f"{format_count(drifted, 'resource')} differ{'s' * (drifted == 1)} in the cloud"
    grants = sum(len(environment.bucket_access.grants) for environment in environments if environment.bucket_access)
    if grants:
        yield f"{format_count(grants, 'undeclared grant')} in the cloud"


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
    if review.missing_packages and all(environment.source == "none" for environment in review.environments):
        # The packages of the stack programs are missing, which a line below the table reports once.
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
