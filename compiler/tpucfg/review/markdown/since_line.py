"""The news of a comment: one line on what differs from the review of an earlier commit of the same pull request."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tpucfg.changes.config_diff import config_difference
from tpucfg.changes.facts import Scope
from tpucfg.changes.statements import join_statements
from tpucfg.git.snapshots import Snapshot
from tpucfg.markdown import code
from tpucfg.review.markdown.cautions import Caution, cautions
from tpucfg.review.markdown.commit_range import short_id
from tpucfg.review.markdown.fits import fit_lines
from tpucfg.review.review import EarlierReview, Review
from tpucfg.text_format import format_count

_MAX_REVISION_LENGTH: Final = 64


class _Lines(NamedTuple):
    """The part of a comment about one spec that is above its folds."""

    cautions: tuple[Caution, ...] = ()
    effects: tuple[str, ...] = ()
    """The statements that are no cautions, and the rungs whose fit differs, as Markdown."""
    is_broken: bool = False


def reviewed_marker(head: Snapshot, earlier: EarlierReview | None) -> str:
    """Return the second line of a comment, from which the next run of a workflow reads what was reviewed.

    It has the commit of this review and the one that it was compared with, for another run of the same commit. The line
    is in a fixed place because a text from a spec could contain a line like it. The working tree has none.
    """
    if head.commit is None:
        return ""
    since = f" since {earlier.id}" if earlier and earlier.id else ""
    return f"<!-- tpucfg-reviewed: {head.commit.id}{since} -->"


def since_line(earlier: EarlierReview | None) -> str:
    """Return the line; empty if there was no earlier review."""
    if earlier is None:
        return ""
    if not earlier.commit:
        revision = code(earlier.revision[:_MAX_REVISION_LENGTH])
        return f"**Since the last review**: unknown, as its commit, {revision}, is not in this clone."
    news = [*_news(earlier)] or ["no change in effect"]
    # The id is not code, because GitHub and GitLab link plain ids.
    return f"**Since the review of {short_id(earlier.commit)}**: {'; '.join(news)}."


def _news(earlier: EarlierReview) -> Iterator[str]:
    """Yield a phrase for each kind of news, the most important first."""
    old, new = _by_spec(earlier.reviews), _by_spec(earlier.current)
    lines = [_pair_of_lines(old.get(path), new.get(path)) for path in sorted({*old, *new})]
    if any(after.is_broken and not before.is_broken for before, after in lines):
        yield "**the spec has errors now**"
    added = [caution for before, after in lines for caution in after.cautions if caution not in before.cautions]
    added.sort(key=lambda caution: -caution.risk)
    if added:
        first = "" if len(added) == 1 else "the first: "
        yield f"**{format_count(len(added), 'new caution')}**, {first}{added[0].text}"
    if resolved := sum(caution not in after.cautions for before, after in lines for caution in before.cautions):
        yield f"{format_count(resolved, 'caution')} resolved"
    if configs := sum(_count_changed_configs(old.get(path), new.get(path)) for path in {*old, *new}):
        yield f"{format_count(configs, 'config')} changed again"
    effects = [effect for before, after in lines for effect in after.effects if effect not in before.effects]
    if effects:
        yield f"{format_count(len(effects), 'other new effect')}, {'the first: ' * (len(effects) > 1)}{effects[0]}"
    elif gone := sum(effect not in after.effects for before, after in lines for effect in before.effects):
        yield f"{format_count(gone, 'effect')} no longer"


def _by_spec(reviews: Sequence[Review]) -> dict[str, Review]:
    return {review.after.snapshot.repository_path: review for review in reviews}


def _pair_of_lines(before: Review | None, after: Review | None) -> tuple[_Lines, _Lines]:
    """Return the lines of both reviews of a spec; one without the spec in its scope has none."""
    titles = _titles(before, after) if before and after else {}
    return _lines(before, titles), _lines(after, {})


def _titles(before: Review, after: Review) -> dict[str, str]:
    """Return the current titles of the revisions by the earlier ones, which some reasons contain."""
    pairs = ((before.before, after.before), (before.after, after.after))
    return {old.snapshot.title: new.snapshot.title for old, new in pairs}


def _lines(review: Review | None, titles: Mapping[str, str]) -> _Lines:
    if review is None:
        return _Lines()
    listed = [*cautions(review)]
    for old, new in titles.items():
        listed = [caution._replace(text=caution.text.replace(f"({old})", f"({new})")) for caution in listed]
    harmless = (located for located in review.impact.statements if not located.statement.risk)
    return _Lines(tuple(listed), (*fit_lines(review.fits), *join_statements(harmless)), review.is_broken)


def _count_changed_configs(before: Review | None, after: Review | None) -> int:
    """Return the number of configs on which the change now has another effect than it had."""
    old, new = (_configs(review) for review in (before, after))
    return sum(_effect(old, key) != _effect(new, key) for key in {*old, *new} if old.get(key) != new.get(key))


_Pair = tuple[Any, Any]
"""A config before and after the change; None where it does not exist."""


def _configs(review: Review | None) -> dict[Scope, _Pair]:
    """Return the configs that the change affects."""
    if review is None:
        return {}
    before, after, unchanged = review.before.configs, review.after.configs, {*review.difference.unchanged}
    return {key: (before.get(key), after.get(key)) for key in {*before, *after} - unchanged}


def _effect(configs: Mapping[Scope, _Pair], key: Scope) -> tuple[Any, ...]:
    """Return what the change does to a config, without what it leaves as it is, which may come from the base."""
    if key not in configs:
        return ()
    before, after = ({key: config} if config is not None else {} for config in configs[key])
    difference = config_difference(before, after)
    return difference.added, difference.removed, difference.groups
