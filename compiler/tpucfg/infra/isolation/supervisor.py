"""Process between tpucfg and a stack program: `python -m tpucfg.infra.isolation.supervisor SPEC PIPE ENVIRONMENT...`.

It confines the program, and ends only after every process that the program started. Where the system allows it, they
are in a process namespace, which the kernel ends as a whole; otherwise this process adopts all orphans and kills them.
On systems other than Linux, only the processes of the program's own group are killed.
"""

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tpucfg.infra.isolation import kernel, landlock, system_calls

NOT_STOPPED: Final = 125
"""Exit status if processes of the program are still alive."""
SIGNAL_BASE: Final = 128
"""Added to the number of the signal that ended the program, as shells do."""
_STOP_SECONDS: Final = 10.0
"""Time to kill processes that start new ones as they are killed."""


def main() -> None:
    """Run the worker in a child process, stop everything that it left behind, and exit with its status."""
    kernel.end_with_parent(signal.SIGTERM)
    has_namespace = kernel.enter_pid_namespace()
    kernel.adopt_orphans()
    kernel.hide_memory()
    child = os.fork()
    if not child:
        kernel.end_with_parent(signal.SIGKILL)
        # A namespace ends with its first process, which therefore waits for the worker instead of being it.
        os._exit(_exit_status(_start_worker()) if has_namespace else _work())
    # Sent by tpucfg after its timeout, or by the kernel if tpucfg ends.
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    status = _exit_status(child)
    os._exit(status if _stop_all(child) else NOT_STOPPED)


def _start_worker() -> int:
    child = os.fork()
    if not child:
        os._exit(_work())
    return child


def _work() -> int:
    """Run the stack program, confined as far as the system can; return the exit status."""
    try:
        os.setsid()
        kernel.forbid_new_privileges()
        kernel.drop_capabilities()
        landlock.limit_writes(Path(os.environ["TMPDIR"]))
        system_calls.refuse_connections()
        from tpucfg.infra.isolation.worker import main as run_worker

        run_worker(*sys.argv[1:])
    except BaseException:  # noqa: BLE001 - a child process must not return to the code of its parent
        traceback.print_exc()
        return 1
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
    return 0


def _exit_status(child: int) -> int:
    """Wait for a child, and meanwhile for every orphan; return the child's exit status as a shell gives it."""
    while True:
        process, status = os.wait()
        if process == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else SIGNAL_BASE - code


def _stop_all(child: int) -> bool:
    """Kill every process that is left; return False if some are still alive after some seconds."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        for process in _descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        time.sleep(0.005)
    return False


def _descendants(ancestor: int) -> Iterator[int]:
    """Yield the processes below a process; none on systems without /proc."""
    parents = dict(_parents())
    for process in parents:
        above = process
        while above in parents and above != ancestor:
            above = parents[above]
        if above == ancestor and process != ancestor:
            yield process


def _parents() -> Iterator[tuple[int, int]]:
    """Yield each process with its parent: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html."""
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdecimal():
                with contextlib.suppress(OSError, ValueError):
                    # The name before it, in parentheses, can contain anything.
                    fields = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
                    yield int(entry.name), int(fields[1])


if __name__ == "__main__":
    main()
