"""The last line of a comment: the source of the resource changes, and what that source cannot show."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.markdown import code, prose
from tpucfg.review.review import Review, Source
from tpucfg.text_format import listed

_INSTALL: Final = "pip install 'tpucfg[infra]'"
_MAX_NAMES: Final = 16


def footer(review: Review) -> str:
    """Return the line; empty if there are no resources."""
    if review.missing_packages:
        return f"_Resource changes are not shown: {prose(review.missing_packages)}. To include them: {code(_INSTALL)}._"
    sentences = [*_source_sentences(review), *map(prose, review.notes)]
    return f"_{' '.join(sentences)}_" if sentences else ""


def _source_sentences(review: Review) -> Iterator[str]:
    previewed, compared, declared = (_names(review, source) for source in ("preview", "program", "head"))
    if previewed:
        yield f"Resources of {_listed(previewed)}: from Pulumi's preview."
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


def _programs(review: Review) -> str:
    """Return which stack programs were run."""
    if not review.revisions_with_bundled_program:
        return "the stack programs of both revisions"
    if len(review.revisions_with_bundled_program) > 1:
        return "the stack program bundled with tpucfg, as neither revision has its own"
    title = code(review.revisions_with_bundled_program[0])
    return f"the stack programs of both revisions ({title} has none: the one bundled with tpucfg)"


def _program_of_head(review: Review) -> str:
    head = review.after.snapshot.title
    if head in review.revisions_with_bundled_program:
        return f"the stack program bundled with tpucfg, as {code(head)} has none"
    return f"the stack program of {code(head)}"


def _listed(names: Sequence[str]) -> str:
    return listed([code(name) for name in names], _MAX_NAMES)
