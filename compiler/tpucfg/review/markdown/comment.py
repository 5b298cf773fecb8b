"""The review as one Markdown comment: summary, cautions, impact, warnings, and folded details."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from tpucfg.diff.describe import format_config_counts
from tpucfg.findings import Finding
from tpucfg.markdown import alert, code, details, html, prose, table
from tpucfg.redaction import redact
from tpucfg.review.changes.scaling_table import ScalingRow, row_label, scaling_cell, scaling_columns
from tpucfg.review.changes.statements import join_statements
from tpucfg.review.markdown.cautions import cautions
from tpucfg.review.markdown.commit_range import format_commit_range
from tpucfg.review.markdown.footer import footer
from tpucfg.review.markdown.sections import config_sections, resource_sections
from tpucfg.review.markdown.size_limit import Section, fit_sections
from tpucfg.review.markdown.spec_errors import spec_errors
from tpucfg.review.markdown.summary import counts_table, headline
from tpucfg.review.review import Review

_DEFAULT_SPEC: Final = "tpucfg.yaml"
_MAX_STATEMENTS: Final = 40
_MAX_FINDINGS: Final = 12
_MAX_OPEN_ROWS: Final = 12
"""Rungs that can be read at a glance; a longer table is folded."""
_JSON_COMMAND: Final = "tpucfg review --format json"


def comment(review: Review) -> str:
    """Return the comment. Equal reviews have equal bytes, so that a workflow can skip an unchanged comment."""
    spec = review.after.snapshot.repository_path
    name = f" of {code(spec)}" if _has_own_marker(spec) else ""
    commits = format_commit_range(review.before.snapshot, review.after.snapshot)
    head = [marker(spec), f"### tpucfg review{name}: {headline(review)}", commits]
    if review.is_broken:
        head += spec_errors(review)
    elif not review.is_change:
        head.append(f"{format_config_counts(review.difference)}.".capitalize())
    blocks = (counts_table(review), _caution_block(review), _impact_block(review), _findings_blocks(review))
    head += [block for block in blocks if block]
    folds = [*_long_table(review), *resource_sections(review.environments), *config_sections(review.difference)]
    hint = f"_Complete output: {code(_JSON_COMMAND)}._"
    return fit_sections("\n\n".join(head), folds, footer(review), omission_hint=hint)


def marker(spec: str) -> str:
    """Return the first line of a comment, by which a workflow finds the comment again.

    Args:
        spec: the spec's path in the repository. The marker of a spec other than tpucfg.yaml at the root contains it, so
            that each spec has a comment of its own.
    """
    # `--` would end the HTML comment: https://html.spec.whatwg.org/multipage/syntax.html#comments
    path = f": {quote(spec, safe='/').replace('--', '%2D%2D')}" if _has_own_marker(spec) else ""
    return f"<!-- tpucfg-review{path} -->"


def _has_own_marker(spec: str) -> bool:
    return spec not in {"", _DEFAULT_SPEC}


def _caution_block(review: Review) -> str:
    lines = cautions(review)
    if len(lines) > _MAX_STATEMENTS:
        lines = [*lines[:_MAX_STATEMENTS], f"… and {len(lines) - _MAX_STATEMENTS:,} more"]
    return alert("CAUTION", lines) if lines else ""


def _impact_block(review: Review) -> str:
    """Return the statements that are no cautions, and the table of rungs if it is short."""
    harmless = (located for located in review.impact.statements if not located.statement.destructive)
    lines = [f"- {line}" for line in join_statements(harmless)]
    if len(lines) > _MAX_STATEMENTS:
        lines = [*lines[:_MAX_STATEMENTS], f"- … and {len(lines) - _MAX_STATEMENTS:,} more"]
    rows = _rows_to_show(review)
    blocks = ["**Impact**"] if lines or rows else []
    blocks += ["\n".join(lines)] if lines else []
    blocks += [_rung_table(review, rows)] if 0 < len(rows) <= _MAX_OPEN_ROWS else []
    return "\n\n".join(blocks)


def _long_table(review: Review) -> list[Section]:
    rows = _rows_to_show(review)
    title = f"the figures of {len(rows):,} rungs"
    return [Section(title, details(html(title), _rung_table(review, rows)))] if len(rows) > _MAX_OPEN_ROWS else []


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
        title = f"Warnings in {code(review.after.snapshot.title)}"
    else:
        title = "New warnings" if review.before.project else "Warnings"
    blocks = (
        (title, impact.new_warnings),
        ("Resolved warnings", impact.ended_warnings),
        ("Now allowed by the spec, and reported as notes", impact.allowed),
    )
    return "\n\n".join(f"**{title}**\n\n{_finding_list(findings)}" for title, findings in blocks if findings)


def _finding_list(findings: Sequence[Finding]) -> str:
    lines = [f"- {code(finding.id)} {prose(redact(finding.message))}" for finding in findings[:_MAX_FINDINGS]]
    more = [f"- … and {len(findings) - _MAX_FINDINGS:,} more"] if len(findings) > _MAX_FINDINGS else []
    return "\n".join([*lines, *more])
