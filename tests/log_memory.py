"""What reading a log takes, by a process that reads it from a pipe as `tpucfg record --from -` does."""

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


def kilobytes_taken(log: Iterable[bytes]) -> int:
    """By how much the memory of the process grows over a log without figures, given part by part."""
    with subprocess.Popen([sys.executable, "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdin
        assert reader.stdout
        with reader.stdin as pipe:
            pipe.writelines(log)
        return int(reader.stdout.read())
