"""Run the commands in the documents, and compare their output with the documented one.

The language of a block's fence determines how its commands run:

    console     lines `$ command`, each followed by its exact output; a line `...` stands for any lines,
                and `> ` right below a command continues it
    sh          commands that have to succeed, with any output

    <!-- not run: why -->       above a block: skips it, with the reason
    <!-- not run: the tests with the TPU compiler run it -->
                                skips it without --tpu-python, which runs only such blocks, and commands in comments
    <!-- run: command -->       anywhere: runs a command that the page needs but does not show

The blocks of a page run from top to bottom in a copy of the checkout, a git repository with one commit; those of an
example's README run in its folder there. A `cd` lasts until the page ends.

    python tools/readme_blocks.py [PAGE...]            exits 1 and prints the differences
    python tools/readme_blocks.py --write [PAGE...]    writes the output into the page
    python tools/readme_blocks.py --tpu-python .venv/tpu-compiler/bin/python ...    runs the blocks for the TPU compiler
"""

import argparse
import compileall
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "examples/*/README.md")
ELISION: Final = "..."
COMPILER: Final = "the tests with the TPU compiler run it"
"""The reason for not running a block that runs with `--tpu-python`."""
TIMEOUT_SECONDS: Final = 300

_FENCE: Final = re.compile(r"(?P<indent> *)```(?P<language>\w*) *")
_COMMENT: Final = re.compile(r" *<!-- (?P<kind>not run|run): (?P<text>.+?) -->")
_SHELLS: Final = ("console", "sh", "bash", "shell")


class Step(NamedTuple):
    """One command of a page."""

    command: str
    expected: list[str] | None
    """Expected output lines; None if the command only has to succeed."""
    start: int
    """Index of the page's line with the start of the expected output."""
    indent: str = ""


class Difference(NamedTuple):
    """A step whose result differs from its page."""

    page: Path
    step: Step
    printed: list[str]
    status: int

    def __str__(self) -> str:
        """Return the location, the command and the differing lines."""
        head = f"{self.page.relative_to(ROOT)}:{self.step.start}: $ {self.step.command}"
        if self.step.expected is None:
            return "\n".join([f"{head}\n  ended with status {self.status}", *self.printed[-20:]])
        lines = difflib.unified_diff(
            self.step.expected, self.printed, "the page", "printed", lineterm="", n=1
        )
        return "\n".join([head, *lines])


def pages() -> list[Path]:
    """Return all documents that can contain blocks."""
    return sorted({page for pattern in PAGES for page in ROOT.glob(pattern)})


def steps_of(text: str, *, with_compiler: bool = False) -> Iterator[Step]:
    """Yield the commands of a page, in order.

    Args:
        text: The page.
        with_compiler: True for the blocks that need the TPU compiler, and the commands in comments; else all others.
    """
    lines = text.splitlines()
    skip_reason, index = "", 0
    while index < len(lines):
        fence, comment = _FENCE.fullmatch(lines[index]), _COMMENT.fullmatch(lines[index])
        if fence:
            start, end = index + 1, _closing_fence(lines, index)
            if fence["language"] in _SHELLS and skip_reason == (COMPILER if with_compiler else ""):
                yield from _block(fence, lines[start:end], start)
            skip_reason, index = "", end
        elif comment and comment["kind"] == "run":
            yield Step(comment["text"], None, index + 1)
        elif comment:
            skip_reason = comment["text"]
        elif lines[index].strip():
            skip_reason = ""
        index += 1


def _closing_fence(lines: Sequence[str], opening: int) -> int:
    return next(index for index in range(opening + 1, len(lines)) if lines[index].strip() == "```")


def _block(fence: re.Match[str], lines: Sequence[str], start: int) -> Iterator[Step]:
    indent = fence["indent"]
    body = [line.removeprefix(indent) for line in lines]
    if fence["language"] != "console":
        yield Step("\n".join(body), None, start, indent)
        return
    starts = [index for index, line in enumerate(body) if line.startswith("$ ")]
    for command_start, end in zip(starts, [*starts[1:], len(body)], strict=True):
        output = command_start + 1
        while output < end and body[output].startswith("> "):
            output += 1
        command = "\n".join(line[2:] for line in body[command_start:output])
        yield Step(command, body[output:end], start + output, indent)


def matches(expected: Sequence[str], printed: Sequence[str]) -> bool:
    """Return True if the lines equal the expected ones, where an elision matches any number of lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == ELISION else re.escape(line) + r"\n" for line in expected
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def refreshed(expected: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Return the new expected lines: all output, or as many lines around each elision as the page has now."""
    if ELISION not in expected:
        return list(printed)
    first, *others = _parts(expected)
    rest = list(printed[len(first) :])
    shown = list(printed[: len(first)])
    for part in others[:-1]:
        near = difflib.get_close_matches(part[0], rest, n=1, cutoff=0) if part else []
        position = rest.index(near[0]) if near else 0
        shown += [ELISION, *rest[position : position + len(part)]]
        rest = rest[position + len(part) :]
    return [*shown, ELISION, *(rest[-len(others[-1]) :] if others[-1] else [])]


def _parts(lines: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in lines:
        if line == ELISION:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def differences(page: Path, tpu_python: Path | None = None) -> Iterator[Difference]:
    """Run a page's commands and yield the differences.

    With a Python that has the TPU compiler, only the blocks that need it run.
    """
    steps = list(steps_of(page.read_text(encoding="utf-8"), with_compiler=tpu_python is not None))
    if not steps or (tpu_python and COMPILER not in page.read_text(encoding="utf-8")):
        return
    with tempfile.TemporaryDirectory(prefix="tpucfg-") as folder:
        home = Path(folder)
        checkout = home / "tpucfg"
        # With the times of the files, so that git's index and Python's bytecode stay valid.
        subprocess.run(["cp", "-Rp", _committed_checkout().name, checkout], check=True)
        here = (
            checkout / page.parent.relative_to(ROOT)
            if page.is_relative_to(ROOT / "examples")
            else checkout
        )
        programs = [Path(sys.executable).parent]
        if tpu_python:
            programs.insert(0, _python3(home / "python", tpu_python))
        for step in steps:
            printed, status, here = _run(step.command, here, home, checkout, programs)
            if status if step.expected is None else not matches(step.expected, printed):
                yield Difference(page, step, printed, status)


@cache
def _committed_checkout() -> tempfile.TemporaryDirectory[str]:
    """Copy the files that git would commit, as a new repository, and compile them; the folder lasts for the process."""
    folder = tempfile.TemporaryDirectory(prefix="tpucfg-")
    location = Path(folder.name)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(
        listed, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (location / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, location / name)
    author = ("-c", "user.name=reader", "-c", "user.email=reader@example.com")
    commit = (*author, "commit", "-qm", "start")
    for arguments in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "."),
        commit,
        ("gc", "--quiet"),
    ):
        subprocess.run(["git", *arguments], cwd=location, check=True, capture_output=True)
    compileall.compile_dir(location / "compiler", quiet=1)
    return folder


def _python3(folder: Path, python: Path) -> Path:
    """Create a folder with that Python as `python3`, and return it. A link would not find its environment."""
    folder.mkdir()
    program = folder / "python3"
    program.write_text(
        f'#!/bin/sh\nexec {shlex.quote(str(python.absolute()))} "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    return folder


def _run(
    command: str, here: Path, home: Path, checkout: Path, programs: Sequence[Path]
) -> tuple[list[str], int, Path]:
    """Run a command; return its output on both streams, its status, and the shell's folder at its end."""
    end_folder = home / "left"
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("MAKE", "MFLAGS", "PYTEST"))
    }
    environment |= {
        "PATH": ":".join([*map(str, programs), environment["PATH"]]),
        "PYTHONPATH": str(checkout / "compiler"),  # the copy's code, which a page may change
        "HOME": str(home),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONUNBUFFERED": "1",  # so that the two streams are in a terminal's order
        "LEFT": str(end_folder),
    }
    process = subprocess.run(
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
    return process.stdout.splitlines(), process.returncode, Path(end_folder.read_text().strip())


def write(page: Path, changes: Sequence[Difference]) -> None:
    """Write the output into the page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for _, step, printed, _ in sorted(changes, key=lambda difference: -difference.step.start):
        if step.expected is not None:
            shown = refreshed(step.expected, printed)
            lines[step.start : step.start + len(step.expected)] = [
                f"{step.indent}{line}".rstrip() for line in shown
            ]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Check or refresh the pages; return the exit status."""
    parser = argparse.ArgumentParser(description="Run the commands in the documents.")
    parser.add_argument("--write", action="store_true", help="write the output into the pages")
    parser.add_argument(
        "--tpu-python",
        type=Path,
        metavar="PYTHON",
        help="run the blocks that need the TPU compiler",
    )
    parser.add_argument(
        "pages", nargs="*", type=Path, metavar="PAGE", help="default: all documents"
    )
    options = parser.parse_args(arguments)
    difference_count = 0
    for page in [page.resolve() for page in options.pages] or pages():
        changes = list(differences(page, options.tpu_python))
        if options.write:
            write(page, changes)
            changes = [difference for difference in changes if difference.step.expected is None]
        difference_count += len(changes)
        print(*changes, sep="\n\n", end="\n" if changes else "", file=sys.stderr)
    return int(difference_count > 0)


if __name__ == "__main__":
    sys.exit(main())
