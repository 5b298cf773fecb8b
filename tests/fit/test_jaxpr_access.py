"""Arguments of traced programs that need not be read or written in whole."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from spec_factory import ROOT

PROGRAM: Final = Path(__file__).parent / "programs" / "accessed.py"
WORKER: Final = ROOT / "compiler" / "tpucfg" / "fit" / "worker"
HALF: Final = 100
"""The bytes of the buffer, of which either the reading or the writing is left out."""
BOTH: Final = 200

EXPECTED: Final = {
    "replaced": BOTH,
    "replaced copy": 0,
    "replaced in a call": BOTH,
    "replaced in a loop": BOTH - 9,
    "replaced often": BOTH,
    "doubled in a loop": 0,
    "replaced, and read later": HALF,
    "scattered": BOTH,
    "halves": 0,
    "a row": 99,
    "gathered": HALF,
    "gradient": 0,
    "returned": HALF,
    "returned, and not read": BOTH,
    "not used": 0,
    "exchanged": BOTH * (1 + 10),
    "rows by index in a loop": 0,
    "read by a loop": 0,
    "branch": BOTH,
    "both branches": 0,
    "rows in branches": 99,
    "read for nothing": 99,
    "parts of rows": 75,
    "loop of unknown length": BOTH,
    "computed again": 99,
    "on each device": BOTH,
}


def test_only_what_a_step_touches_is_counted() -> None:
    """Rows that are replaced in place leave the others alone; a copy, and a gradient of all rows, do not."""
    process = subprocess.run([sys.executable, str(PROGRAM), str(WORKER)], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == EXPECTED
