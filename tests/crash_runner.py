"""A program for tests: commands in children that are killed at random moments, again and again.

`python -m killing TIMES FRESH COMMAND...` takes the commands, JSON lists of words, in turns; each writes into the
folder `made`, which is emptied before each of them if FRESH is 1. What a command makes where nobody kills it is in
`whole/<number>`. Every second child is killed a moment after something that was staged was seen: files are moved then.
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
MADE: Final = Path("made")


def main() -> None:
    """Prints how the children ended and what lay in the folder then, each as often as it was so, as JSON."""
    times, fresh = int(sys.argv[1]), sys.argv[2] == "1"
    commands = [json.loads(command) for command in sys.argv[3:]]
    whole = [contents(Path("whole", str(number))) for number in range(len(commands))]
    rng, seen = random.Random("killing"), Counter[str]()  # noqa: S311 - nothing here is a secret
    with Path(os.devnull).open("w") as nothing:
        sys.stdout, said = nothing, sys.stdout
        run([*commands[0][:-1], "warm"])  # so that the children find everything imported
        sys.stdout = said
    longest = max(lasting(command) for command in commands)
    for number in range(times):
        if fresh:
            shutil.rmtree(MADE, ignore_errors=True)
        seen[killed(commands[number % len(commands)], rng, longest, watching=number % 2 == 0)] += 1
        seen[judged(whole)] += 1
    sys.stdout.write(json.dumps(seen))


def killed(command: Sequence[str], rng: random.Random, longest: float, *, watching: bool) -> str:
    """`killed` where the child was still at work, else `done`."""
    child = start(command)
    if watching:
        until = time.monotonic() + 10 * longest
        while not staged() and time.monotonic() < until:
            pass
    time.sleep(rng.uniform(0, longest / 4 if watching else longest))
    os.kill(child, signal.SIGKILL)
    return "killed" if os.WIFSIGNALED(os.waitpid(child, 0)[1]) else "done"


def lasting(command: Sequence[str]) -> float:
    """Seconds that a child takes where nobody kills it."""
    begin = time.monotonic()
    os.waitpid(start(command), 0)
    return time.monotonic() - begin


def start(command: Sequence[str]) -> int:
    """A child that runs the command and says nothing."""
    child = os.fork()
    if child == 0:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os._exit(run(command))
    return child


def staged() -> bool:
    """Whether a file that is staged can be seen."""
    return any(STAGED in name for _, _, names in os.walk(MADE) for name in names)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def judged(whole: Sequence[dict[str, bytes]]) -> str:
    """Whether all files are one command's, or each is one of theirs, and whether something that was staged is left.

    Raises:
        AssertionError: A file is half there, or is none that a command makes.
    """
    found = contents(MADE)
    moved = {path: content for path, content in found.items() if STAGED not in path}
    for path, content in moved.items():
        assert content in [one.get(path) for one in whole], f"{path} is half there: {content!r}"
    kinds = "whole" if any(moved == one for one in whole) else "mixed" if moved else "nothing"
    return f"{kinds}, staged files left" if len(found) > len(moved) else kinds


if __name__ == "__main__":
    main()
