"""A stand-in for kubectl or gcloud: it prints the first answer whose words are in its command line.

Its arguments are the folder with `answers.json`, its name, and the arguments of the client. It notes each command line
in `calls`. It imports nothing of the tests, as it is started hundreds of times.
"""

import json
import shlex
import sys
from pathlib import Path


def main(folder: Path, argv: list[str]) -> int:
    """Print the answer, and return the exit status."""
    line = shlex.join(argv)
    with (folder / "calls").open("a", encoding="utf-8") as calls:
        calls.write(f"{line}\n")
    for words, fails, answer in json.loads((folder / "answers.json").read_text(encoding="utf-8")):
        if words in " ".join(argv):
            (sys.stderr if fails else sys.stdout).write(
                answer if isinstance(answer, str) else json.dumps(answer, indent=2)
            )
            return int(fails)
    sys.stdout.write("" if argv[0] == "kubectl" else "[]")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
