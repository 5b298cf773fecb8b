"""The environment with MaxText, which this project does not import."""

from pathlib import Path
from typing import Final

from required import missing

ENVIRONMENT: Final = Path(__file__).resolve().parents[2] / ".venv" / "tpu-compiler"
"""The environment that `make tpu-compiler` builds."""


def maxtext_python() -> str:
    """Return a Python with MaxText; without it, skip the test, or fail if it is required."""
    if not any(ENVIRONMENT.glob("lib/*/site-packages/maxtext")):
        missing("tpu_compiler", "MaxText is not installed: make tpu-compiler")
    return str(ENVIRONMENT / "bin" / "python")
