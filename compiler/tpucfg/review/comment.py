"""A review as one comment in Markdown: the summary, what it means, and the details folded away."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from tpucfg.diff.wording import counted as counted_configs
from tpucfg.findings import Finding
from tpucfg.review.between import between
from tpucfg.review.broken import broken
from tpucfg.review.budget import Section, fitted
from tpucfg.review.configs import sections as config_sections
from tpucfg.review.foot import foot
from tpucfg.review.infra_sections import infra_sections
from tpucfg.review.markdown import alert, code, details, html, prose, table
from tpucfg.review.model import Review
from tpucfg.review.redact import redacted
from tpucfg.review.remarks import joined
from tpucfg.review.rungs import Row, cell, columns, named
from tpucfg.review.summary import counts_table, headline
from tpucfg.review.warning import cautions

_DEFAULT: Final = "tpucfg.yaml"
_MOST_REMARKS: Final = 40
_MOST_ROWS: Final = 12
"""Rungs that are read at a glance; a longer table is folded away."""
_MOST_FINDINGS: Final = 12
_EVERYTHING: Final = "tpucfg review --format json"


def comment(review: Review) -> str:
    """The comment; its bytes follow from the review alone."""
    spec = review.after.side.inside
    of = f" of {code(spec)}" if spec not in {"", _DEFAULT} else ""
    sides = between(review.before.side, review.after.side)
    head = [marker(spec), f"### tpucfg review{of}: {headline(review)}", sides]
    if review.is_broken:
        head += broken(review)
    elif not review.is_change:
        head.append(f"{counted_configs(review.difference)}.".capitalize())
    head += [block for block in (counts_table(review), _cautions(review), _means(review), _findings(review)) if block]
    folds = [*_long_table(review), *infra_sections(review.parts), *config_sections(review.difference)]
    return fitted("\n\n".join(head), folds, foot(review), elsewhere=f"_All of it: {code(_EVERYTHING)}._")


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
    remarks = [f"- {line}" for line in joined(it for it in review.meaning.remarks if not it.fact.grave)]
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


def _told(review: Review) -> tuple[Row, ...]:
    """The rungs with figures to show: one that came in the place of its like has none."""
    return review.meaning.rows if columns(review.meaning.rows) else ()


def _rungs(review: Review, rows: Sequence[Row]) -> str:
    names = columns(rows)
    rule = review.after.project.training.learning_rate_rule if review.after.project else "keep"
    heads = [f"{name} ({rule} rule)" if name == "learning rate" and rule != "keep" else _head(name) for name in names]
    shown = [[prose(named(row)), *(cell(row, name) for name in names)] for row in rows]
    return table(["rung", *heads], shown, range(1, len(heads) + 1))


def _head(name: str) -> str:
    return code(name) if "_" in name else prose(name)


def _findings(review: Review) -> str:
    new, gone = review.meaning.new, review.meaning.gone
    came = "New warnings" if review.before.project else "Warnings"
    if review.before.is_broken:
        came += f" of {code(review.after.side.title)}"
    blocks = [(f"**{came}**", new), ("**Warnings that end**", gone)]
    blocks.append(("**Only a note from now on, as the spec allows it**", review.meaning.allowed))
    return "\n\n".join(f"{title}\n\n{_listed(found)}" for title, found in blocks if found)


def _listed(found: Sequence[Finding]) -> str:
    lines = [f"- {code(it.id)} {prose(redacted(it.message))}" for it in found[:_MOST_FINDINGS]]
    more = [f"- … and {len(found) - _MOST_FINDINGS:,} more"] if len(found) > _MOST_FINDINGS else []
    return "\n".join([*lines, *more])
