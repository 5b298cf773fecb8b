"""Running of single commands in this process, and the checks that apply to every command."""

import io
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar

from tpucfg.cli.app import run
from tpucfg.findings import RULES
from tpucfg.text_format import split_lines

_T = TypeVar("_T")
MAX_SECONDS: Final = 2.0
"""Limit of processor seconds for one command."""
ZERO_WIDTH_SPACE: Final = "\u200b"
"""Zero-width space in the Markdown of names, so that GitHub does not notify a user of that name."""
_HANG_SECONDS: Final = 10.0
"""Processor seconds after which a command is stopped."""
_BLOCKED_SECONDS: Final = 60.0
"""Wall-clock seconds after which a blocked command is stopped; generous, as the machine may be busy."""
_LOCATED_ERROR: Final = re.compile(r"^.*:\d+:\d+: error\[TPU\d{3}\]: .", re.MULTILINE)
_ERROR: Final = re.compile(r"^tpucfg: .+", re.MULTILINE)
_ID: Final = re.compile(
    r"\[(TPU\d{3})\]|\"id\": \"(TPU\d{3})\"|\btitle=(TPU\d{3})|\"ruleId\": \"(TPU\d{3})\""
)


class HungError(BaseException):
    """A command was stopped. A BaseException, because the command's outermost handler catches every Exception."""


class Completed(NamedTuple):
    """Result of a command."""

    words: tuple[str, ...]
    status: int
    out: str
    err: str


class Shell:
    """Runs commands in the current folder, checks each result and counts them."""

    def __init__(self) -> None:
        self.commands = 0
        self.statuses: Counter[int] = Counter()
        self.ids: Counter[str] = Counter()
        self.slowest = 0.0

    def __call__(self, *words: str) -> Completed:
        """Run `tpucfg` with these arguments and return the result.

        Raises:
            AssertionError: The result violates a rule for every command.
            HungError: The command was stopped.
        """
        out, err = (
            io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)
            for _ in "12"
        )
        with redirect_stdout(out), redirect_stderr(err):
            status = self.timed(" ".join(words), lambda: run(words))
        completed = Completed(
            words, status, *(stream.buffer.getvalue().decode() for stream in (out, err))
        )
        self.statuses[status] += 1
        self.ids.update(
            next(filter(None, match.groups()))
            for match in _ID.finditer(completed.out + completed.err)
        )
        check_exit(completed)
        return completed

    def timed(self, name: str, action: Callable[[], _T]) -> _T:
        """Run an action and return its result.

        Raises:
            AssertionError: The action took too long.
            HungError: The command was stopped.
        """
        start = time.process_time()
        with _time_limit():
            result = action()
        seconds = time.process_time() - start
        self.commands += 1
        self.slowest = max(self.slowest, seconds)
        assert seconds <= MAX_SECONDS, f"{name} took {seconds:.1f} s"
        return result


_INTERNAL_ERRORS: Final = ("internal error", "mistake in tpucfg itself")
"""Phrases of the message for an unexpected exception."""
_SHOWS_ERRORS: Final = ("record", "explain")
"""Commands that succeed and print an error: `record` about existing lines, `explain` as an example."""


def check_exit(completed: Completed) -> None:
    """Check that the status is known, a failure has location or help, and no control character is printed."""
    words, status, out, err = completed
    assert status in (0, 1, 2, 3), f"{words} exited with {status}"
    for text in (out, err):
        in_markdown = not {"markdown", "--format=markdown"}.isdisjoint(words)
        check_printable(words, text, allowed=ZERO_WIDTH_SPACE if in_markdown else "")
        assert "Traceback" not in text, f"{words} printed a traceback: {text}"
        assert not any(phrase in text for phrase in _INTERNAL_ERRORS), text
    if status == 1:
        by_program = words[0] == "check" and any(word.startswith("--format") for word in words)
        refused = _ERROR.search(err)
        is_explained = (
            (by_program and _ID.search(out))
            or _LOCATED_ERROR.search(out + err)
            or (refused and "help: " in err)
        )
        assert is_explained, (
            f"{words} exited with 1 without location and help: {out[:500]!r} {err[:1500]!r}"
        )
    elif status in (2, 3):
        assert (out if status == 3 else "") + err.strip(), (
            f"{words} exited with {status} without output"
        )
    elif words[0] not in _SHOWS_ERRORS:
        assert not _LOCATED_ERROR.search(out + err), (
            f"{words} exited with 0 and printed an error: {out[:500]!r} {err[:500]!r}"
        )


def check_printable(name: object, text: str, allowed: str = "") -> None:
    """Check that the text has no control or invisible characters, except for those in `allowed`."""
    unprintable = next(
        (char for char in text if not (char.isprintable() or char in f"\n{allowed}")), None
    )
    assert unprintable is None, f"{name} printed {unprintable!r}: {text[:2000]!r}"


def check_findings(completed: Completed, texts: dict[str, bytes]) -> list[dict[str, Any]]:
    """Return the findings of `check --format json`, after checking that ids and locations exist.

    `texts`: contents of the files that the findings may be in.
    """
    findings: list[dict[str, Any]] = json.loads(completed.out)
    rows = {name: _rows(content) for name, content in texts.items()}
    for finding in findings:
        assert finding["id"] in RULES, finding
        for text in (finding["message"], finding["help"], *finding["details"]):
            assert text.isprintable(), finding
        assert finding["message"], finding
        assert finding["help"] or finding["level"] != "error", (
            f"an error without a help line: {finding}"
        )
        for location in (finding, *finding["related"]):
            _check_location(location, rows)
    assert len({json.dumps(finding) for finding in findings}) == len(findings), (
        "a finding is duplicated"
    )
    assert (completed.status == 1) == any(finding["level"] == "error" for finding in findings), (
        completed
    )
    return findings


def _rows(content: bytes) -> list[str]:
    return split_lines(content.decode("utf-8-sig", "replace"))


def _check_location(location: dict[str, Any], rows: dict[str, list[str]]) -> None:
    assert location["file"] in rows, location
    file_rows = rows[location["file"]]
    line, column = location["line"], location["column"]
    assert 1 <= line <= max(len(file_rows), 1), location
    assert 1 <= column <= len(file_rows[line - 1]) + 1, location
    assert (line, column) <= (location["end_line"], location["end_column"]), location


@contextmanager
def _time_limit() -> Iterator[None]:
    """Stop the block after its time limit."""

    def stop(number: int, _: FrameType | None) -> None:
        raise HungError(
            f"stopped after {_HANG_SECONDS if number == signal.SIGPROF else _BLOCKED_SECONDS:.0f} s"
        )

    before = {number: signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, _HANG_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, _BLOCKED_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def raising_internal_errors() -> Iterator[None]:
    """Let unexpected exceptions propagate, instead of turning them into an internal error message."""
    before = os.environ.get("TPUCFG_DEBUG")
    os.environ["TPUCFG_DEBUG"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TPUCFG_DEBUG"]
        else:
            os.environ["TPUCFG_DEBUG"] = before
