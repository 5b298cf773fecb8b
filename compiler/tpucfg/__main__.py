"""`python -m tpucfg` and the console script."""

import gc
import sys
from typing import Final

_GARBAGE: Final = 200_000
"""Allocations between two searches for cyclic garbage. With Python's own 700 a starting command searches a dozen times
and finds nothing: a tenth of the time of a small command."""


def main() -> None:
    """Runs the command line; the process ends with its exit status."""
    gc.set_threshold(_GARBAGE)
    from tpucfg.cli.app import run

    status = run(sys.argv[1:])
    gc.freeze()  # or else the interpreter, as it ends, looks through all there is for garbage: as long as a check takes
    sys.exit(status)


if __name__ == "__main__":
    main()
