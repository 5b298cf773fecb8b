"""The review as one Markdown comment: heading, cautions, counts, impact, warnings, and folded details."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final
from urllib.parse import quote

from tpucfg.changes.describe import format_config_counts
from tpucfg.changes.statements import join_statements
from tpucfg.findings import Finding
from tpucfg.install_source import INSTALL_INFRA
from tpucfg.markdown import alert, code, html, items, prose, table
from tpucfg.redaction import redact
from tpucfg.review.changes.jobs.scaling_table import ScalingRow, row_label, scaling_cell, scaling_columns
from tpucfg.review.markdown.cautions import Caution, cautions, format_risks
from tpucfg.review.markdown.change_sections import config_sections, resource_sections
from tpucfg.review.markdown.commit_range import format_commit_range, format_revision
from tpucfg.review.markdown.costs import cost_block, cost_sections
from tpucfg.review.markdown.drift_lines import drift_block, drift_sections
from tpucfg.review.markdown.fits import fit_block, fit_sections
from tpucfg.review.markdown.footer import footer
from tpucfg.review.markdown.section import Section, fold, table_block
from tpucfg.review.markdown.since_line import reviewed_marker, since_line
from tpucfg.review.markdown.size_limit import join_within_limit
from tpucfg.review.markdown.spec_errors import spec_errors
from tpucfg.review.markdown.summary import counts_table, headline
from tpucfg.review.review import EarlierReview, Review
from tpucfg.spec import SPEC_NAME
from tpucfg.text_format import format_value

_MAX_STATEMENTS: Final = 40
_MAX_BLOCK_BYTES: Final = 20_000
"""Limit for the cautions, and for the statements without risk: both and the other blocks fit into a comment."""
_MAX_FINDINGS: Final = 12
_MAX_MESSAGE_LENGTH: Final = 500
_MAX_OPEN_ROWS: Final = 12
"""Rungs that can be read at a glance; a longer table is folded."""
OMISSION_HINT: Final = f"_Complete output: {code('tpucfg review --format json')}._"
"""The last line of a comment from which something is omitted."""


def comment(
    review: Review, others: str = "", earlier: EarlierReview | None = None, *, is_of_repository: bool = False
) -> str:
    """Return the comment. Equal reviews have equal bytes, so that a workflow can skip an unchanged comment.

    Args:
        review: the review of one spec.
        others: a line of Markdown about the specs that are not reviewed.
        earlier: the review of the commit that was reviewed before.
        is_of_repository: True for the only affected spec of a repository, whose next review may affect others. Their
            comment has to replace this one, so it has the same marker.
    """
    spec = review.after.snapshot.repository_path
    name = f" of {code(spec)}" if has_own_marker(spec) else ""
    commits = format_commit_range(review.before.snapshot, review.after.snapshot)
    title = f"### tpucfg review{name}: {headline(review)}"
    head = [markers("" if is_of_repository else spec, review, earlier), title, commits, since_line(earlier)]
    head += [*spec_errors(review), caution_block(cautions(review)), *description(review), *effects(review)]
    last = "\n\n".join(line for line in (others, footer(review)) if line)
    return join_within_limit("\n\n".join(filter(None, head)), folds(review), last, omission_hint=OMISSION_HINT)


def description(review: Review) -> list[str]:
    """Return the blocks below the cautions: the table of counts, or that nothing changes."""
    unchanged = "" if review.is_change else f"{format_config_counts(review.difference)}.".capitalize()
    return [unchanged, counts_table(review), _missing_packages(review)]


def _missing_packages(review: Review) -> str:
    if not review.missing_packages:
        return ""
    return f"Resource changes are not known: {prose(review.missing_packages)}. To show them: {code(INSTALL_INFRA)}."


def effects(review: Review) -> list[str]:
    """Return the blocks below the table of counts."""
    return [
        cost_block(review),
        fit_block(review),
        _impact_block(review),
        drift_block(review.environments),
        _findings_blocks(review),
    ]


def folds(review: Review) -> list[Section]:
    """Return the parts that can be cut."""
    return [
        *cost_sections(review),
        *fit_sections(review),
        *_long_table(review),
        *resource_sections(review.environments),
        *drift_sections(review.environments),
        *config_sections(review.difference),
    ]


def markers(spec: str, review: Review, earlier: EarlierReview | None) -> str:
    """Return the first two lines of a comment, which are for workflows."""
    return "\n".join(filter(None, (marker(spec), reviewed_marker(review.after.snapshot, earlier))))


def marker(spec: str) -> str:
    """Return the first line of a comment, by which a workflow finds the comment again.

    Args:
        spec: the spec's path in the repository. The marker of a spec other than tpucfg.yaml at the root contains it, so
            that each spec has a comment of its own.
    """
    # `--` would end the HTML comment: https://html.spec.whatwg.org/multipage/syntax.html#comments
    path = f": {quote(spec, safe='/').replace('--', '%2D%2D')}" if has_own_marker(spec) else ""
    return f"<!-- tpucfg-review{path} -->"


def has_own_marker(spec: str) -> bool:
    """Return True for a spec whose comment is not that of the default spec."""
    return spec not in {"", SPEC_NAME}


def caution_block(listed: Sequence[Caution]) -> str:
    """Return the cautions as an alert, the first ones in full and a summary of the rest; empty without cautions."""
    lines = _first_lines([caution.text for caution in listed])
    if omitted := listed[len(lines) :]:
        lines.append(f"… and {len(omitted):,} more: {format_risks(omitted)}")
    return alert("CAUTION", lines) if lines else ""


def _first_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines that are few and short enough to leave room for the other parts of a comment."""
    ends = accumulate(len(line.encode(errors="replace")) for line in lines[:_MAX_STATEMENTS])
    return [line for line, end in zip(lines, ends, strict=False) if end <= _MAX_BLOCK_BYTES]


def _impact_block(review: Review) -> str:
    """Return the statements that are no cautions, and the table of rungs if it is short."""
    harmless = (located for located in review.impact.statements if not located.statement.risk)
    lines = [f"- {line}" for line in join_statements(harmless)]
    if omitted := len(lines) - len(shown := _first_lines(lines)):
        lines = [*shown, f"- … and {omitted:,} more"]
    rows = _rows_to_show(review)
    blocks = ["**Impact**"] if lines or rows else []
    blocks += ["\n".join(lines)] if lines else []
    blocks += [_rung_table(review, rows)] if 0 < len(rows) <= _MAX_OPEN_ROWS else []
    return "\n\n".join(blocks)


def _long_table(review: Review) -> list[Section]:
    rows = _rows_to_show(review)
    if len(rows) <= _MAX_OPEN_ROWS:
        return []
    title = f"the figures of {len(rows):,} rungs"
    return [fold(title, html(title), [table_block(_rung_table(review, rows), [*map(row_label, rows)])])]


def _rows_to_show(review: Review) -> tuple[ScalingRow, ...]:
    """Return the rungs; none if no figure differs, as when a rung replaces one with equal figures."""
    return review.impact.rows if scaling_columns(review.impact.rows) else ()


def _rung_table(review: Review, rows: Sequence[ScalingRow]) -> str:
    names = scaling_columns(rows)
    rule = review.after.project.training.learning_rate_rule if review.after.project else "keep"
    header = ["rung", *(_column_title(name, rule) for name in names)]
    cells = [[prose(row_label(row)), *(scaling_cell(row, name) for name in names)] for row in rows]
    return table(header, cells, range(1, len(header)))


def _column_title(name: str, learning_rate_rule: str) -> str:
    if name == "learning rate" and learning_rate_rule != "keep":
        return f"{name} ({learning_rate_rule} rule)"
    # A name with an underscore is a key of `steps` in the spec.
    return code(name) if "_" in name else prose(name)


def _findings_blocks(review: Review) -> str:
    impact = review.impact
    if review.before.is_broken:
        title = f"Warnings in {format_revision(review.after.snapshot)}"
    else:
        title = "New warnings" if review.before.project else "Warnings"
    blocks = (
        (title, impact.new_warnings),
        ("Resolved warnings", impact.ended_warnings),
        ("Now allowed by the spec, and reported as notes", impact.allowed),
    )
    return "\n\n".join(f"**{title}**\n\n{_finding_list(findings)}" for title, findings in blocks if findings)


def _finding_list(findings: Sequence[Finding]) -> str:
    return items([f"{code(finding.id)} {prose(_message(finding))}" for finding in findings], _MAX_FINDINGS)


def _message(finding: Finding) -> str:
    return format_value(redact(finding.message), quoted=False, max_length=_MAX_MESSAGE_LENGTH)
