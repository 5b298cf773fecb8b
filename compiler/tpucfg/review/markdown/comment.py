"""What can be said where the spec of a side does not hold."""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from tpucfg.diff.compiled_revisions import CompiledRevision
from tpucfg.diff.describe import format_config_counts as counted_configs
from tpucfg.diff.describe import format_keys
from tpucfg.findings import Finding, errors
from tpucfg.findings.formats.text import report
from tpucfg.markdown import alert, code, details, fence, html, prose, table
from tpucfg.redaction import redact, redact_report
from tpucfg.review.changes.scaling_table import ScalingRow, row_label, scaling_cell, scaling_columns
from tpucfg.review.changes.statements import join_statements
from tpucfg.review.markdown.cautions import cautions
from tpucfg.review.markdown.commit_range import format_commit_range
from tpucfg.review.markdown.sections import config_sections, resource_sections
from tpucfg.review.markdown.size_limit import Section, fit_sections
from tpucfg.review.markdown.summary import counts_table, headline
from tpucfg.review.review import Review
from tpucfg.text_format import listed

_MOST_FINDINGS: Final = 12
_CHANGED: Final = "what protects the data and who has access may have changed too"


def spec_errors(review: Review) -> Iterator[str]:
    """Blocks of Markdown: what is wrong with a side, what the other holds, and what nobody compared."""
    for made in sorted((review.after, review.before), key=lambda made: not made.is_broken):
        yield from _wrong(made) if made.is_broken else _sound(made)
    if any(part.source == "preview" for part in review.parts):
        yield f"**The specs were not compared**: but for what Pulumi previewed, {_CHANGED}."
    else:
        yield f"**Nothing was compared**: {_CHANGED}."


def _wrong(made: CompiledRevision) -> Iterator[str]:
    found = errors(made.findings)
    yield f"**In {code(made.snapshot.title)} nothing can be made of the spec:**"
    yield fence(redact_report(report(found[:_MOST_FINDINGS], {made.snapshot.shown: made.text}).rstrip("\n")))
    if len(found) > _MOST_FINDINGS:
        yield f"… and {len(found) - _MOST_FINDINGS:,} more: {code('tpucfg check')} shows them all."


def _sound(made: CompiledRevision) -> Iterator[str]:
    if made.made:
        yield f"The spec of {code(made.snapshot.title)} holds: {prose(format_keys([*made.jobs]))}."


# The last line of a comment: where the resources come from.


_INSTALL: Final = "pip install 'tpucfg[infra]'"
_MOST_NAMES: Final = 16


def footer(review: Review) -> str:
    """The line; empty where there is nothing to say."""
    if review.missing:
        return f"_Resources are not shown: {prose(review.missing)}. To show them: {code(_INSTALL)}._"
    said = " ".join([*_sources(review), *map(prose, review.notes)])
    return f"_{said}_" if said else ""


def _sources(review: Review) -> Iterator[str]:
    of = {it: [part.environment for part in review.parts if part.source == it] for it in ("preview", "program", "head")}
    if of["preview"]:
        yield f"Resources of {_environments(of['preview'])}: by Pulumi's preview."
    rest = f" of {_environments(of['program'] or of['head'])}" if of["preview"] else ""
    if of["program"]:
        yield f"Resources{rest}: by {_programs(review)}, without credentials; what drifted is not seen."
    if of["head"]:
        yield f"Resources{rest}: what {_program_of_head(review)} declares; what happens to them is not known."
    if empty := [part.environment for part in review.parts if part.has_no_stack]:
        yield f"There is no stack yet of {_environments(empty)}."


def _programs(review: Review) -> str:
    """Which programs were run."""
    if not review.uses_bundled_program:
        return "the stack programs of both sides"
    if len(review.uses_bundled_program) > 1:
        return "the stack program that tpucfg carries, as neither side has one of its own"
    lacking = code(review.uses_bundled_program[0])
    return f"the stack programs of both sides, for {lacking}, which has none, by the one that tpucfg carries"


def _program_of_head(review: Review) -> str:
    head = review.after.snapshot.title
    if head in review.uses_bundled_program:
        return f"the stack program that tpucfg carries, as {code(head)} has none of its own,"
    return f"the stack program of {code(head)}"


def _environments(names: Sequence[str]) -> str:
    return listed([code(name) for name in names], _MOST_NAMES)


# A review as one comment in Markdown: the summary, what it means, and the details folded away.


_DEFAULT: Final = "tpucfg.yaml"
_MOST_REMARKS: Final = 40
_MOST_ROWS: Final = 12
"""Rungs that are read at a glance; a longer table is folded away."""
_EVERYTHING: Final = "tpucfg review --format json"


def comment(review: Review) -> str:
    """The comment; its bytes follow from the review alone."""
    spec = review.after.snapshot.repository_path
    of = f" of {code(spec)}" if spec not in {"", _DEFAULT} else ""
    sides = format_commit_range(review.before.snapshot, review.after.snapshot)
    head = [marker(spec), f"### tpucfg review{of}: {headline(review)}", sides]
    if review.is_broken:
        head += spec_errors(review)
    elif not review.is_change:
        head.append(f"{counted_configs(review.difference)}.".capitalize())
    head += [block for block in (counts_table(review), _cautions(review), _means(review), _findings(review)) if block]
    folds = [*_long_table(review), *resource_sections(review.parts), *config_sections(review.difference)]
    return fit_sections("\n\n".join(head), folds, footer(review), elsewhere=f"_All of it: {code(_EVERYTHING)}._")


def marker(spec: str) -> str:
    """The first line, by which the comment is found again; it names a spec that is not the only one.

    Args:
        spec: its path in the repository.
    """
    # Nothing in it ends the HTML comment: https://html.spec.whatwg.org/multipage/syntax.html#comments
    of = f": {quote(spec, safe='/').replace('--', '%2D%2D')}" if spec not in {"", _DEFAULT} else ""
    return f"<!-- tpucfg-review{of} -->"


def _cautions(review: Review) -> str:
    said = cautions(review)
    more = [f"… and {len(said) - _MOST_REMARKS:,} more"] if len(said) > _MOST_REMARKS else []
    return alert("CAUTION", [*said[:_MOST_REMARKS], *more]) if said else ""


def _means(review: Review) -> str:
    remarks = [
        f"- {line}" for line in join_statements(it for it in review.meaning.statements if not it.statement.destructive)
    ]
    if len(remarks) > _MOST_REMARKS:
        remarks = [*remarks[:_MOST_REMARKS], f"- … and {len(remarks) - _MOST_REMARKS:,} more"]
    rows = _told(review)
    blocks = ["**What it means**"] if remarks or rows else []
    blocks += ["\n".join(remarks)] if remarks else []
    blocks += [_rungs(review, rows)] if 0 < len(rows) <= _MOST_ROWS else []
    return "\n\n".join(blocks)


def _long_table(review: Review) -> list[Section]:
    rows = _told(review)
    said = f"the figures of {len(rows):,} rungs"
    return [Section(said, details(html(said), _rungs(review, rows)))] if len(rows) > _MOST_ROWS else []


def _told(review: Review) -> tuple[ScalingRow, ...]:
    """The rungs with figures to show: one that came in the place of its like has none."""
    return review.meaning.rows if scaling_columns(review.meaning.rows) else ()


def _rungs(review: Review, rows: Sequence[ScalingRow]) -> str:
    names = scaling_columns(rows)
    rule = review.after.project.training.learning_rate_rule if review.after.project else "keep"
    heads = [f"{name} ({rule} rule)" if name == "learning rate" and rule != "keep" else _head(name) for name in names]
    shown = [[prose(row_label(row)), *(scaling_cell(row, name) for name in names)] for row in rows]
    return table(["rung", *heads], shown, range(1, len(heads) + 1))


def _head(name: str) -> str:
    return code(name) if "_" in name else prose(name)


def _findings(review: Review) -> str:
    new, gone = review.meaning.new_warnings, review.meaning.ended_warnings
    came = "New warnings" if review.before.project else "Warnings"
    if review.before.is_broken:
        came += f" of {code(review.after.snapshot.title)}"
    blocks = [(f"**{came}**", new), ("**Warnings that end**", gone)]
    blocks.append(("**Only a note from now on, as the spec allows it**", review.meaning.allowed))
    return "\n\n".join(f"{title}\n\n{_listed(found)}" for title, found in blocks if found)


def _listed(found: Sequence[Finding]) -> str:
    lines = [f"- {code(it.id)} {prose(redact(it.message))}" for it in found[:_MOST_FINDINGS]]
    more = [f"- … and {len(found) - _MOST_FINDINGS:,} more"] if len(found) > _MOST_FINDINGS else []
    return "\n".join([*lines, *more])
