"""Shellcheck, which is among the packages of the tests."""

import sysconfig
from pathlib import Path
from typing import Final

SHELLCHECK: Final = Path(sysconfig.get_path("scripts")) / "shellcheck"
