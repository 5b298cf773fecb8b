"""Fixtures for the tests of the trainers."""

import sys
from typing import Final

import pytest

import trainers
from required import missing

TOO_NEW: Final = (3, 14)
"""The first Python version without a build of TensorFlow."""


@pytest.fixture(scope="session")
def tensorflow() -> str:
    """Return the Python with TensorFlow; without it, skip the test, or fail if no test may be skipped."""
    if sys.version_info >= TOO_NEW:
        pytest.skip("TensorFlow has no build for this Python")
    if not any(trainers.TENSORFLOW.parent.parent.glob("lib/*/site-packages/tensorflow")):
        missing("trainer", "TensorFlow is not installed: make tensorflow")
    return str(trainers.TENSORFLOW)
