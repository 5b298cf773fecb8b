"""Run the commands that the documents show, and compare what they print with what the documents say.

A block of shell is run in one of two ways, by the language of its fence:

    console     lines `$ command`, each followed by its output to the byte; a line `...` stands for any lines,
                and `> ` right below a command continues it
    sh          commands that have to succeed, whatever they print

    <!-- not run: why -->       above a block: it is left out, and this is the reason
    <!-- run: command -->       anywhere: it is run and not shown, for what a page needs and does not talk about

The blocks of a page are run from top to bottom in a copy of the checkout, a git repository with one commit; those of an
example's README in its folder there. A `cd` lasts until the page ends.

    python tools/readme_blocks.py [PAGE...]            exits 1 and says where a page is not true
    python tools/readme_blocks.py --write [PAGE...]    puts what was printed into the page
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "examples/*/README.md")
ELISION: Final = "..."
TIMEOUT_SECONDS: Final = 300

_FENCE: Final = re.compile(r"(?P<indent> *)```(?P<language>\w*) *")
_COMMENT: Final = re.compile(r" *<!-- (?P<kind>not run|run): (?P<text>.+?) -->")
_SHELLS: Final = ("console", "sh", "bash", "shell")


class Step(NamedTuple):
    """One command of a page."""

    command: str
    expected: list[str] | None
    """What it prints, line by line; None where it only has to succeed."""
    start: int
    """Index of the page's line where the expected output begins."""
    indent: str = ""


class Difference(NamedTuple):
    """A step that did otherwise than its page says."""

    page: Path
    step: Step
    printed: list[str]
    status: int

    def __str__(self) -> str:
        """The place, the command, and the lines that differ."""
        head = f"{self.page.relative_to(ROOT)}:{self.step.start}: $ {self.step.command}"
        if self.step.expected is None:
            return "\n".join([f"{head}\n  ended with status {self.status}", *self.printed[-20:]])
        lines = difflib.unified_diff(self.step.expected, self.printed, "the page", "printed", lineterm="", n=1)
        return "\n".join([head, *lines])


def pages() -> list[Path]:
    """All documents that can hold blocks."""
    return sorted({page for pattern in PAGES for page in ROOT.glob(pattern)})


def steps_of(text: str) -> Iterator[Step]:
    """The commands of a page, in its order."""
    lines = text.splitlines()
    above, index = "", 0
    while index < len(lines):
        fence, comment = _FENCE.fullmatch(lines[index]), _COMMENT.fullmatch(lines[index])
        if fence:
            start, end = index + 1, _end(lines, index)
            if fence["language"] in _SHELLS and not above:
                yield from _block(fence, lines[start:end], start)
            above, index = "", end
        elif comment and comment["kind"] == "run":
            yield Step(comment["text"], None, index + 1)
        elif comment:
            above = comment["text"]
        elif lines[index].strip():
            above = ""
        index += 1


def _end(lines: Sequence[str], opening: int) -> int:
    return next(index for index in range(opening + 1, len(lines)) if lines[index].strip() == "```")


def _block(fence: re.Match[str], lines: Sequence[str], start: int) -> Iterator[Step]:
    indent = fence["indent"]
    body = [line.removeprefix(indent) for line in lines]
    if fence["language"] != "console":
        yield Step("\n".join(body), None, start, indent)
        return
    begins = [index for index, line in enumerate(body) if line.startswith("$ ")]
    for begin, end in zip(begins, [*begins[1:], len(body)], strict=True):
        output = begin + 1
        while output < end and body[output].startswith("> "):
            output += 1
        command = "\n".join(line[2:] for line in body[begin:output])
        yield Step(command, body[output:end], start + output, indent)


def matches(expected: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether the lines are those that the page shows, where an elision stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == ELISION else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def refreshed(expected: Sequence[str], printed: Sequence[str]) -> list[str]:
    """What the page should show: all that was printed, or as many lines around each elision as it shows now."""
    if ELISION not in expected:
        return list(printed)
    first, *others = _parts(expected)
    rest = list(printed[len(first) :])
    shown = list(printed[: len(first)])
    for part in others[:-1]:
        near = difflib.get_close_matches(part[0], rest, n=1, cutoff=0) if part else []
        at = rest.index(near[0]) if near else 0
        shown += [ELISION, *rest[at : at + len(part)]]
        rest = rest[at + len(part) :]
    return [*shown, ELISION, *(rest[-len(others[-1]) :] if others[-1] else [])]


def _parts(lines: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in lines:
        if line == ELISION:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def differences(page: Path) -> Iterator[Difference]:
    """Run a page's commands and yield those that did otherwise than it says."""
    steps = list(steps_of(page.read_text(encoding="utf-8")))
    if not steps:
        return
    with tempfile.TemporaryDirectory(prefix="tpucfg-") as folder:
        home = Path(folder)
        checkout = _copied_checkout(home / "tpucfg")
        here = checkout / page.parent.relative_to(ROOT) if page.is_relative_to(ROOT / "examples") else checkout
        for step in steps:
            printed, status, here = _run(step.command, here, home, checkout)
            if status if step.expected is None else not matches(step.expected, printed):
                yield Difference(page, step, printed, status)


def _copied_checkout(location: Path) -> Path:
    """A copy of what git would commit, as a repository of its own."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (location / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, location / name)
    author = ("-c", "user.name=reader", "-c", "user.email=reader@example.com")
    for words in (("init", "--quiet", "--initial-branch=main"), ("add", "."), (*author, "commit", "-qm", "start")):
        subprocess.run(["git", *words], cwd=location, check=True, capture_output=True)
    return location


def _run(command: str, here: Path, home: Path, checkout: Path) -> tuple[list[str], int, Path]:
    """What a command printed on both streams, its status, and the folder it left the shell in."""
    left = home / "left"
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "PYTEST"))}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}",
        "PYTHONPATH": str(checkout / "compiler"),  # the copy's own code, which a page may add to
        "HOME": str(home),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONUNBUFFERED": "1",  # so that the two streams come in the order of a terminal
        "LEFT": str(left),
    }
    done = subprocess.run(
        ["bash", "-c", f"trap 'pwd > \"$LEFT\"' EXIT\nset -e\n{command}\n"],
        cwd=here,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return done.stdout.splitlines(), done.returncode, Path(left.read_text().strip())


def write(page: Path, found: Sequence[Difference]) -> None:
    """Put what was printed into the page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for _, step, printed, _ in sorted(found, key=lambda difference: -difference.step.start):
        if step.expected is not None:
            shown = refreshed(step.expected, printed)
            lines[step.start : step.start + len(step.expected)] = [f"{step.indent}{line}".rstrip() for line in shown]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Check or refresh the pages; return the exit status."""
    parser = argparse.ArgumentParser(description="Run the commands in the documents.")
    parser.add_argument("--write", action="store_true", help="put what was printed into the pages")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="default: all documents")
    given = parser.parse_args(arguments)
    wrong = 0
    for page in [page.resolve() for page in given.pages] or pages():
        found = list(differences(page))
        if given.write:
            write(page, found)
            found = [difference for difference in found if difference.step.expected is None]
        wrong += len(found)
        print(*found, sep="\n\n", end="\n" if found else "", file=sys.stderr)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
