"""The whole review in a line, and in a table of counts."""

from typing import Final

from tpucfg.findings import errors
from tpucfg.findings.formats import format_counts as counted_findings
from tpucfg.markdown import code, table
from tpucfg.review.changes.environment_changes import LIFTED
from tpucfg.review.changes.resource_change import count_resources as counted_resources
from tpucfg.review.review import Part, Review

_MOST_BRIEFS: Final = 4


def headline(review: Review) -> str:
    """The whole review in a line."""
    for made, what in ((review.after, "the spec does not hold"), (review.before, "the spec before it did not hold")):
        if made.is_broken:
            return _with_briefs(f"{what} ({counted_findings(errors(made.findings))})", review)
    if not review.is_change:
        return "nothing changes" if review.is_known else "nothing changes, as far as is known"
    counts = counted_resources(review.resources)
    configs = review.difference
    parts = [
        (counts.delete, "{} deleted", "resource"),
        (counts.replace, "{} replaced", "resource"),
        (counts.lifted, "{} no longer protected", "resource"),
        (counts.create, "{} created", "resource"),
        (counts.update, "{} updated", "resource"),
        (len(configs.changed), "{} changed", "config"),
        (len(configs.added), "{} added", "config"),
        (len(configs.removed), "{} removed", "config"),
    ]
    said = [form.format(f"{count:,} {noun}{'s' * (count != 1)}") for count, form, noun in parts if count]
    return _with_briefs(", ".join(said) or "no config and no resource changes", review)


def _with_briefs(said: str, review: Review) -> str:
    """What no count tells besides: what the spec itself lifts, allows or asks for, the grave first."""
    told = [it for it in review.meaning.statements if it.statement.headline]
    if any(change.protection == "lifted" for change in review.resources):
        told = [it for it in told if it.statement.headline != LIFTED]
    briefs = dict.fromkeys(
        f"{it.statement.headline} in {it.scope}" if it.scope else it.statement.headline for it in told
    )
    return "; ".join([said, ", ".join([*briefs][:_MOST_BRIEFS])]) if briefs else said


def counts_table(review: Review) -> str:
    """A row for each environment; empty where there is nothing to count."""
    names = sorted(
        {*(part.environment for part in review.parts), *(key.environment for key in review.difference.known)}
    )
    if review.is_broken:
        names = [part.environment for part in review.parts if part.source == "preview"]
    if not names or not (review.is_change or any(part.problem for part in review.parts)):
        return ""
    header = ["environment", "create", "update", "replace", "delete", "protection lifted", "IAM widened", "configs"]
    parts = {part.environment: part for part in review.parts}
    rows = [[code(name), *_resources(parts.get(name)), _configs(review, name)] for name in names]
    return table(header, rows, range(1, 7))


def _resources(part: Part | None) -> list[str]:
    """The six counts; a dash where there is nothing to count, a question mark where it is not known."""
    if part is None or part.source == "none":
        return ["–" if part is None else "?"] * 6
    counts = counted_resources(part.changes)
    shown = [
        counts.create + counts.imported,
        counts.update,
        counts.replace,
        counts.delete,
        counts.lifted,
        counts.widened,
    ]
    if part.problem and not any(shown):
        return ["?"] * 6
    cells = [f"{count:,}" for count in shown]
    return [*cells[:2], *(f"**{text}**" if text != "0" else text for text in cells[2:])]


def _configs(review: Review, name: str) -> str:
    if review.is_broken:
        return "?"
    found = review.difference
    pairs = (("changed", found.changed), ("added", found.added), ("removed", found.removed))
    counts = [(sum(key.environment == name for key in keys), verb) for verb, keys in pairs]
    return ", ".join(f"{count:,} {verb}" for count, verb in counts if count) or "0"
