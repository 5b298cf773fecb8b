"""Fixtures for the workflow and its scripts."""

from collections.abc import Iterator

import pytest

from github_comments import Comments, serving


@pytest.fixture
def comments() -> Iterator[Comments]:
    """Serve the comments of pull request 7, which has none."""
    with serving(Comments()) as served:
        yield served
