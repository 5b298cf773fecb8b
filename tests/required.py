"""Parts that a test needs and a machine may lack: without one the test is skipped, or fails where it is required."""

import os
from typing import NoReturn

import pytest

REQUIRED = frozenset(os.environ.get("TPUCFG_REQUIRE", "").split())
"""The parts without which tests fail, such as `cluster`; `.ci/run` names all that it installs."""


def missing(part: str, reason: str) -> NoReturn:
    """Skip the running test because a part is missing, or fail it if TPUCFG_REQUIRE names the part."""
    if part in REQUIRED:
        pytest.fail(f"TPUCFG_REQUIRE names {part}, and {reason}")
    pytest.skip(reason)
