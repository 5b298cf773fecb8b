"""The environment with MaxText, which this project does not import."""

import os
from pathlib import Path
from typing import Final

import pytest

PYTHON: Final = Path(__file__).resolve().parents[2] / ".venv" / "maxtext" / "bin" / "python"
"""Python of the environment that `make maxtext` builds."""
REQUIRE: Final = "TPUCFG_REQUIRE_MAXTEXT"


def maxtext_python() -> str:
    """Return a Python with MaxText; without it, skip the test, or fail if no test may be skipped."""
    if not PYTHON.exists():
        if os.environ.get(REQUIRE):
            pytest.fail("MaxText is not installed: make maxtext")
        pytest.skip("MaxText is not installed: make maxtext")
    return str(PYTHON)
