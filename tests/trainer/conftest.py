"""Fixtures for the tests of the trainers."""

import os
import sys
from typing import Final

import pytest

import trainers

TOO_NEW: Final = (3, 14)
"""The first Python version without a build of TensorFlow."""


@pytest.fixture(scope="session")
def tensorflow() -> str:
    """Return the Python with TensorFlow; without it, skip the test, or fail if no test may be skipped."""
    if sys.version_info >= TOO_NEW:
        pytest.skip("TensorFlow has no build for this Python")
    if not any(trainers.TENSORFLOW.parent.parent.glob("lib/*/site-packages/tensorflow")):
        if os.environ.get("TPUCFG_REQUIRE_TENSORFLOW"):
            pytest.fail("TensorFlow is not installed: make tensorflow")
        pytest.skip("TensorFlow is not installed: make tensorflow")
    return str(trainers.TENSORFLOW)
