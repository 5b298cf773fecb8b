"""The shell blocks of the documentation, compared with real output."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import readme_blocks

pytestmark = pytest.mark.documents


TELLING: Final = ("README.md", "docs/first-steps.md")
"""The pages that a new user follows. They have most commands, and catch an output that changed with the compiler."""


def _name(page: Path) -> str:
    return page.relative_to(readme_blocks.ROOT).as_posix()


def _pages() -> Iterator[Any]:
    for page in readme_blocks.pages():
        yield pytest.param(page, marks=pytest.mark.telling if _name(page) in TELLING else ())


@pytest.mark.parametrize("page", [*_pages()], ids=_name)
def test_shell_blocks_are_up_to_date(page: Path) -> None:
    """Each shell block of the page, run in a copy of the checkout, prints exactly the output that the page shows."""
    differences = [str(difference) for difference in readme_blocks.differences(page)]

    assert not differences, "\n\n".join(["refresh it with: make readme", *differences])


def test_important_pages_are_checked() -> None:
    """The README and the examples are among the checked pages, so that an empty list does not pass."""
    names = [_name(page) for page in readme_blocks.pages()]

    assert "README.md" in names
    assert "examples/monorepo/README.md" in names
    assert {"docs/first-steps.md", "docs/extend/generation.md", "docs/extend/target.md"} <= {*names}
