"""The command line and the environment for running tpucfg in a subprocess."""

import os
import sys
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Final

from spec_factory import ROOT

COMMAND: Final = (sys.executable, "-m", "tpucfg")
ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": str(ROOT / "compiler"), "COLUMNS": "80"}
Run = Callable[..., CompletedProcess[str]]
