"""Memory that reading a log takes, measured in a subprocess that reads from a pipe, like `tpucfg record --from -`."""

import subprocess
import sys
from collections.abc import Iterable
from typing import Final

_SCRIPT: Final = """\
import resource, sys
from tpucfg.results.log_metrics import LogError, last_metrics
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    last_metrics(sys.stdin.buffer, "-", ["accuracy"])
except LogError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def peak_kilobytes(log: Iterable[bytes]) -> int:
    """Return by how much the peak memory of the process grows while it reads a log without metrics."""
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reader:
        assert reader.stdin
        assert reader.stdout
        with reader.stdin as pipe:
            pipe.writelines(log)
        return int(reader.stdout.read())
