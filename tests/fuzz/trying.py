"""One command on one input, in this process: how it ended, and what has to hold of every end."""

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
from tpucfg.text_format import lines

_T = TypeVar("_T")
SLOWEST: Final = 2.0
"""Seconds of the processor's time that one command may take."""
UNMENTIONED: Final = "\u200b"
"""What Markdown has in the middle of a name, so that it is no mention of anybody."""
_HUNG: Final = 10.0
"""After as many it is stopped."""
_BLOCKED: Final = 60.0
"""Seconds of the clock after which a command that waits for something is stopped: other work may slow it down."""
_PLACED: Final = re.compile(r"^.*:\d+:\d+: error\[TPU\d{3}\]: .", re.MULTILINE)
_REFUSED: Final = re.compile(r"^tpucfg: .+", re.MULTILINE)
_ID: Final = re.compile(r"\[(TPU\d{3})\]|\"id\": \"(TPU\d{3})\"|\btitle=(TPU\d{3})|\"ruleId\": \"(TPU\d{3})\"")


class HungError(BaseException):
    """A command was stopped; not an Exception, as the outermost handler would take it for a mistake."""


class Ended(NamedTuple):
    """How a command ended."""

    words: tuple[str, ...]
    status: int
    out: str
    err: str


class Shell:
    """Runs commands in the current folder, holds each to what has to hold of all, and counts."""

    def __init__(self) -> None:
        self.commands = 0
        self.statuses: Counter[int] = Counter()
        self.ids: Counter[str] = Counter()
        self.slowest = 0.0

    def __call__(self, *words: str) -> Ended:
        """The end of `tpucfg` with these arguments.

        Raises:
            AssertionError: Something does not hold that has to hold of every end.
            HungError: It took far too long.
        """
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in "12")
        with redirect_stdout(out), redirect_stderr(err):
            status = self.timed(" ".join(words), lambda: run(words))
        ended = Ended(words, status, *(stream.buffer.getvalue().decode() for stream in (out, err)))
        self.statuses[status] += 1
        self.ids.update(next(filter(None, match.groups())) for match in _ID.finditer(ended.out + ended.err))
        assert_ended_well(ended)
        return ended

    def timed(self, name: str, action: Callable[[], _T]) -> _T:
        """What the action gives.

        Raises:
            AssertionError: It took too long.
            HungError: It took far too long.
        """
        start = time.process_time()
        with _stopwatch():
            made = action()
        seconds = time.process_time() - start
        self.commands += 1
        self.slowest = max(self.slowest, seconds)
        assert seconds <= SLOWEST, f"{name} took {seconds:.1f} s"
        return made


_MENTIONS_ERRORS: Final = ("record", "explain")
"""Commands that are done and show an error: one of what was there before, one as an example."""


def assert_ended_well(ended: Ended) -> None:
    """A known status; a refusal says what and what to do; nothing that a terminal would act on is printed."""
    words, status, out, err = ended
    assert status in (0, 1, 2, 3), f"{words} ended with {status}"
    for text in (out, err):
        assert_shown(words, text, besides=UNMENTIONED if "markdown" in words else "")
        assert "Traceback" not in text, f"{words} printed a traceback: {text}"
        assert "tpucfg: internal error" not in text, text
    if status == 1:
        by_program = words[0] == "check" and any(word.startswith("--format") for word in words)
        refused = _REFUSED.search(err)
        said = (by_program and _ID.search(out)) or _PLACED.search(out + err) or (refused and "help: " in err)
        assert said, f"{words} ended with 1 and did not say where and why: {out[:500]!r} {err[:1500]!r}"
    elif status in (2, 3):
        assert (out if status == 3 else "") + err.strip(), f"{words} ended with {status} without a word"
    elif words[0] not in _MENTIONS_ERRORS:
        assert not _PLACED.search(out + err), f"{words} ended with 0 beside an error: {out[:500]!r} {err[:500]!r}"


def assert_shown(what: object, text: str, besides: str = "") -> None:
    """Nothing in it is acted on by a terminal, or unseen, but the characters `besides`."""
    odd = next((char for char in text if not (char.isprintable() or char in f"\n{besides}")), None)
    assert odd is None, f"{what} printed {odd!r}: {text[:2000]!r}"


def judged(ended: Ended, texts: dict[str, bytes]) -> list[dict[str, Any]]:
    """The findings of a `check --format json`, each of which is one that there is, at a place that there is.

    `texts`: the files that it may be about.
    """
    found: list[dict[str, Any]] = json.loads(ended.out)
    rows = {name: _rows(content) for name, content in texts.items()}
    for finding in found:
        assert finding["id"] in RULES, finding
        for text in (finding["message"], finding["help"], *finding["details"]):
            assert text.isprintable(), finding
        assert finding["message"], finding
        assert finding["help"] or finding["level"] != "error", f"an error without an edit that ends it: {finding}"
        for location in (finding, *finding["related"]):
            _assert_there(location, rows)
    assert len({json.dumps(finding) for finding in found}) == len(found), "a finding is there twice"
    assert (ended.status == 1) == any(finding["level"] == "error" for finding in found), ended
    return found


def _rows(content: bytes) -> list[str]:
    return lines(content.decode("utf-8-sig", "replace"))


def _assert_there(location: dict[str, Any], rows: dict[str, list[str]]) -> None:
    assert location["file"] in rows, location
    there = rows[location["file"]]
    line, column = location["line"], location["column"]
    assert 1 <= line <= max(len(there), 1), location
    assert 1 <= column <= len(there[line - 1]) + 1, location
    assert (line, column) <= (location["end_line"], location["end_column"]), location


@contextmanager
def _stopwatch() -> Iterator[None]:
    """Stops what computes or waits without end."""

    def stop(number: int, _: FrameType | None) -> None:
        raise HungError(f"stopped after {_HUNG if number == signal.SIGPROF else _BLOCKED:.0f} s")

    before = {number: signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, _HUNG)
    signal.setitimer(signal.ITIMER_REAL, _BLOCKED)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def failing_loudly() -> Iterator[None]:
    """An exception that nobody expected goes up to here, and not into the message that says there was one."""
    before = os.environ.get("TPUCFG_DEBUG")
    os.environ["TPUCFG_DEBUG"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TPUCFG_DEBUG"]
        else:
            os.environ["TPUCFG_DEBUG"] = before
