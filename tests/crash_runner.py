"""Kill commands in child processes at random moments, and count what they leave in the output folder.

`python -m crash_runner TIMES FRESH COMMAND...` runs the commands, given as JSON lists of words, in turn. Each command
writes into the folder `output`, which is emptied before each run if FRESH is 1. The output of each command that was not
killed is in `complete/<number>`. Every second child is killed shortly after it has staged a file, as it then moves
files to their final paths.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tpucfg.cli.app import run

STAGED: Final = ".tpucfg-staged-"
OUTPUT: Final = Path("output")


def main() -> None:
    """Print as JSON how often the children ended in each way, and how often each state of the folder was left."""
    times, fresh = int(sys.argv[1]), sys.argv[2] == "1"
    commands = [json.loads(command) for command in sys.argv[3:]]
    outputs = [contents(Path("complete", str(number))) for number in range(len(commands))]
    rng, counts = random.Random("killing"), Counter[str]()  # noqa: S311 - nothing here is a secret
    # One run in this process imports all modules, so that the forked children spend their time on writing.
    with Path(os.devnull).open("w") as devnull:
        stdout, sys.stdout = sys.stdout, devnull
        run([*commands[0][:-1], "warm"])
        sys.stdout = stdout
    longest = max(duration(command) for command in commands)
    for number in range(times):
        if fresh:
            shutil.rmtree(OUTPUT, ignore_errors=True)
        counts[
            run_and_kill(commands[number % len(commands)], rng, longest, watching=number % 2 == 0)
        ] += 1
        counts[state_of_output(outputs)] += 1
    sys.stdout.write(json.dumps(counts))


def run_and_kill(
    command: Sequence[str], rng: random.Random, longest: float, *, watching: bool
) -> str:
    """Return `killed` if the signal ended the child, or `done` if the child had ended before."""
    child = start(command)
    if watching:
        deadline = time.monotonic() + 10 * longest
        while not has_staged_file() and time.monotonic() < deadline:
            pass
    time.sleep(rng.uniform(0, longest / 4 if watching else longest))
    os.kill(child, signal.SIGKILL)
    return "killed" if os.WIFSIGNALED(os.waitpid(child, 0)[1]) else "done"


def duration(command: Sequence[str]) -> float:
    """Return the seconds that a child takes if it is not killed."""
    begin = time.monotonic()
    os.waitpid(start(command), 0)
    return time.monotonic() - begin


def start(command: Sequence[str]) -> int:
    """Fork a child that runs the command without output, and return its process id."""
    child = os.fork()
    if child == 0:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 1)
        os.dup2(devnull, 2)
        os._exit(run(command))
    return child


def has_staged_file() -> bool:
    """Return True if the output folder contains a staged file."""
    return any(STAGED in name for _, _, names in os.walk(OUTPUT) for name in names)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def state_of_output(outputs: Sequence[dict[str, bytes]]) -> str:
    """Return whether the files are those of one command, of several or none, and whether staged files are left.

    Raises:
        AssertionError: A file is incomplete, or is not one that a command writes.
    """
    left = contents(OUTPUT)
    moved = {path: content for path, content in left.items() if STAGED not in path}
    for path, content in moved.items():
        assert content in [output.get(path) for output in outputs], (
            f"{path} is incomplete: {content!r}"
        )
    state = (
        "whole" if any(moved == output for output in outputs) else "mixed" if moved else "nothing"
    )
    return f"{state}, staged files left" if len(left) > len(moved) else state


if __name__ == "__main__":
    main()
