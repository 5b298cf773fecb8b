"""The last line of a comment: where the resources come from."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.review.markdown import code, prose
from tpucfg.review.model import Review
from tpucfg.wording import listed

_INSTALL: Final = "pip install 'tpucfg[infra]'"
_MOST_NAMES: Final = 16


def foot(review: Review) -> str:
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
    if not review.carried:
        return "the stack programs of both sides"
    if len(review.carried) > 1:
        return "the stack program that tpucfg carries, as neither side has one of its own"
    lacking = code(review.carried[0])
    return f"the stack programs of both sides, for {lacking}, which has none, by the one that tpucfg carries"


def _program_of_head(review: Review) -> str:
    head = review.after.side.title
    if head in review.carried:
        return f"the stack program that tpucfg carries, as {code(head)} has none of its own,"
    return f"the stack program of {code(head)}"


def _environments(names: Sequence[str]) -> str:
    return listed([code(name) for name in names], _MOST_NAMES)
