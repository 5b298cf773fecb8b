"""A fixture that builds the documentation site like `make docs`."""

from pathlib import Path

import build_site
import pytest


@pytest.fixture(scope="session")  # one worker has all its tests, by their group
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site in strict mode into an empty folder, and return the folder."""
    return build_site.build(tmp_path_factory.mktemp("site"))
