"""A pull request for the workflow and its scripts."""

from collections.abc import Iterator

import pytest

from github_comments import Comments, serving


@pytest.fixture
def comments() -> Iterator[Comments]:
    """Pull request 7, without comments."""
    with serving(Comments()) as served:
        yield served
