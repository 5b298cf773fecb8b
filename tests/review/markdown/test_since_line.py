"""News since the review of an earlier commit, in one line."""

from typing import Any

from spec_changes import compiled_revision
from spec_factory import spec
from tpucfg.review.build import join_review
from tpucfg.review.markdown.since_line import since_line
from tpucfg.review.program_runs import ProgramRuns
from tpucfg.review.review import EarlierReview, Review

IMAGE = "us-docker.pkg.dev/my-project/train/mnist"
BASE = spec(environments__dev__protect=True, sizes=["v2-8"])
LIFTED = spec(environments__dev__protect=False, sizes=["v2-8"])


def with_image(name: str, *, protect: bool = True) -> dict[str, Any]:
    """Return a spec with another image."""
    return spec(environments__dev__protect=protect, sizes=["v2-8"], trainer__image=name)


def review(before: Any, after: Any) -> Review:
    """Return a review without programs and previews."""
    return join_review(compiled_revision(before), compiled_revision(after), ProgramRuns({}, {}), {})


def line(earlier: Review, current: Review) -> str:
    """Return the line of the current review without its beginning."""
    text = since_line(EarlierReview("x", "1234567890abcdef", "1234567890abcdef", (earlier,), (current,)))
    beginning = "**Since the review of 1234567890ab**: "
    assert text.startswith(beginning)
    return text.removeprefix(beginning)


def test_equal_changes_have_no_news() -> None:
    """A commit that changes a comment or a test only has no effect."""
    assert line(review(BASE, LIFTED), review(BASE, LIFTED)) == "no change in effect."


def test_new_caution_is_named() -> None:
    """The riskiest new caution is in the line."""
    text = line(review(BASE, BASE), review(BASE, LIFTED))
    assert (
        text == "**1 new caution**, **dev**: protection lifted: resources that hold data can be replaced and deleted."
    )


def test_resolved_caution_is_counted() -> None:
    """A danger that was taken back is news too."""
    assert line(review(BASE, LIFTED), review(BASE, BASE)) == "1 caution resolved."


def test_config_that_changes_again_is_news() -> None:
    """The effect of the whole change is compared, not the last commit's."""
    text = line(review(BASE, with_image(f"{IMAGE}:2")), review(BASE, with_image(f"{IMAGE}:3")))
    assert text.startswith("1 config changed again; 1 other new effect, **dev: v2-8**: image changed from ")
    assert text.endswith("`us-docker.pkg.dev/my-project/train/mnist:3`.")


def test_change_that_was_taken_back_is_news() -> None:
    """A config that the change no longer affects is counted."""
    text = line(review(BASE, with_image(f"{IMAGE}:2")), review(BASE, BASE))
    assert text == "1 config changed again; 1 effect no longer."


def test_changes_of_the_base_are_no_news() -> None:
    """A change that others merged in the meantime is in both revisions of the current comparison."""
    now = review(with_image(f"{IMAGE}:2"), with_image(f"{IMAGE}:2", protect=False))
    assert line(review(BASE, LIFTED), now) == "no change in effect."


def test_commit_that_is_missing_is_no_error() -> None:
    """After a forced push, the line states that nothing can be compared."""
    assert since_line(EarlierReview("`x`<!--")) == (
        "**Since the last review**: unknown, as its commit, `` `x`<!-- ``, is not in this clone."
    )
    assert since_line(None) == ""
